package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// print writes the summaries.
func (o *importOptions) print(summaries []*importer.Summary) error {
	if o.silent() {
		return nil
	}
	return write(o.streams.Out, o.output, summaries, func() []byte { return o.text(summaries) })
}

func (o *importOptions) text(summaries []*importer.Summary) []byte {
	var b bytes.Buffer
	for _, s := range summaries {
		provisioned(&b, s.Provisioned, o.dryRun)
		for _, c := range s.Changes {
			changeLine(&b, string(c.Action), c.Name, c.Severity, c.Title, c.Place)
			if c.Because != "" {
				fmt.Fprintf(&b, "        %s\n", printable(c.Because))
			}
		}
		if o.dryRun {
			unlisted(&b, s.Unlisted)
		}
		head := printable(s.Name())
		switch {
		case o.dryRun:
			head += ", dry run"
		case !s.Finished:
			head += ", not finished"
		}
		fmt.Fprintf(&b, "%s: %s = %d created + %d updated + %d reopened + %d unchanged + %d skipped; %d closed\n",
			head, results(s.Results), s.Created, s.Updated, s.Reopened, s.Unchanged, s.Skipped, s.Closed)
		if s.Scan != "" {
			fmt.Fprintf(&b, "  scan %s\n", s.Scan)
		}
		if s.SettledAt != nil {
			fmt.Fprintf(&b, "  all states recorded at %s\n", s.SettledAt.UTC().Format(time.RFC3339))
		}
		for _, rung := range slices.Sorted(maps.Keys(s.Recognised)) {
			fmt.Fprintf(&b, "  recognised %d by: %s\n", s.Recognised[rung], rung)
		}
		if s.InDoubt > 0 {
			fmt.Fprintf(&b, "  in doubt %d: they may be other problems of the same kind, and a decision about one is marked\n",
				s.InDoubt)
		}
		if s.Suppressed > 0 {
			fmt.Fprintf(&b, "  suppressed in the source %d: they stay findings, open_muted\n", s.Suppressed)
		}
		takenOver(&b, s)
		explain(&b, s.SkippedBecause, s.SkippedExamples, s.Notes)
		warn(&b, s.Warnings)
		if s.LeftOpen > 0 {
			fmt.Fprintf(&b, "  left open %d: changed while being closed, or not closed by the API server; the next import tries again\n",
				s.LeftOpen)
		}
		if len(s.Incomplete) > 0 {
			fmt.Fprintf(&b, "  nothing closed, %d open findings are not reported: %s\n", s.NotReported,
				printable(strings.Join(s.Incomplete, "; ")))
		}
	}
	return b.Bytes()
}

// provisioned lists the objects that were created for the import, or would be.
func provisioned(to io.Writer, objects []importer.Provisioned, dryRun bool) {
	verb := "created"
	if dryRun {
		verb = "would create"
	}
	for _, object := range objects {
		fmt.Fprintf(to, "%s %s\n", verb, printable(object.String()))
		if object.ScanBranch != "" {
			fmt.Fprintf(to, "  its branch is %s: set spec.scanBranch if that is not its main branch\n", printable(object.ScanBranch))
		}
		if object.HasNoBranch() {
			fmt.Fprintln(to, "  it has no branch: until you set spec.scanBranch, uploads that name a branch are refused")
		}
		if hint := object.IfRenamed(); hint != "" {
			fmt.Fprintf(to, "  %s\n", hint)
		}
	}
}

// takenOver reports how many findings came from another name of the tool, or from before analyses were distinguished.
func takenOver(b *bytes.Buffer, s *importer.Summary) {
	for _, name := range slices.Sorted(maps.Keys(s.Renamed)) {
		fmt.Fprintf(b, "  took over %d of: %s\n", s.Renamed[name], printable(name))
	}
	if s.Adopted > 0 {
		fmt.Fprintf(b, "  took over %d findings without an analysis\n", s.Adopted)
	}
	if s.NotAdopted > 0 {
		fmt.Fprintf(b, "  left %d findings without an analysis: only an import without an analysis closes them\n", s.NotAdopted)
	}
}
