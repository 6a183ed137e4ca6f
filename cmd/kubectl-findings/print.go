package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/internal/importer"
)

const (
	outputJSON = "json"
	outputYAML = "yaml"
)

// print writes the summaries; failed says that the import did not come to its end.
func (o *importOptions) print(summaries []*importer.Summary, failed bool) error {
	var out []byte
	var err error
	switch {
	case o.output == outputJSON:
		out, err = json.MarshalIndent(summaries, "", "  ")
		out = append(out, '\n')
	case o.output == outputYAML:
		out, err = yaml.Marshal(summaries)
	default:
		out = o.text(summaries, failed)
	}
	if err != nil {
		return err
	}
	_, err = o.streams.Out.Write(out)
	return err
}

func (o *importOptions) text(summaries []*importer.Summary, failed bool) []byte {
	var b bytes.Buffer
	for _, s := range summaries {
		for _, c := range s.Changes {
			fmt.Fprintf(&b, "%-7s %s  %-6s  %s", c.Action, c.Name, c.Severity, c.Title)
			if c.Place != "" {
				fmt.Fprintf(&b, "  (%s)", c.Place)
			}
			b.WriteByte('\n')
		}
		if o.dryRun {
			unlisted(&b, s)
		}
		head := fmt.Sprintf("%s (%s)", s.Tool, s.Category)
		switch {
		case o.dryRun:
			head += ", dry run"
		case failed:
			head += ", not finished"
		}
		fmt.Fprintf(&b, "%s: %d results = %d created + %d updated + %d reopened + %d unchanged + %d skipped; %d closed\n",
			head, s.Results, s.Created, s.Updated, s.Reopened, s.Unchanged, s.Skipped, s.Closed)
		if s.Scan != "" {
			fmt.Fprintf(&b, "  scan %s\n", s.Scan)
		}
		for _, reason := range slices.Sorted(maps.Keys(s.SkippedBecause)) {
			fmt.Fprintf(&b, "  skipped %d: %s\n", s.SkippedBecause[reason], reason)
		}
		for _, example := range s.SkippedExamples {
			fmt.Fprintf(&b, "    %s\n", example)
		}
		for _, note := range slices.Sorted(maps.Keys(s.Notes)) {
			fmt.Fprintf(&b, "  note %d: %s\n", s.Notes[note], note)
		}
		if s.LeftOpen > 0 {
			fmt.Fprintf(&b, "  left open %d: changed by somebody at the moment of closing; the next import sees to them\n", s.LeftOpen)
		}
		if len(s.Incomplete) > 0 {
			fmt.Fprintf(&b, "  nothing closed, %d open findings are not reported: %s\n", s.NotReported, strings.Join(s.Incomplete, "; "))
		}
	}
	return b.Bytes()
}

// unlisted says how many changes of a dry run are not shown.
func unlisted(b *bytes.Buffer, s *importer.Summary) {
	all := s.Created + s.Updated + s.Reopened + s.Closed
	if more := all - len(s.Changes); more > 0 {
		fmt.Fprintf(b, "... and %d more\n", more)
	}
}
