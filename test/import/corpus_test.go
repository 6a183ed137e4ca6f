package import_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

func collectFile(path string, choices importer.Choices) ([]*importer.Batch, error) {
	file, err := os.Open(path) //nolint:gosec // a test names its own files
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read from
	log, err := sarif.Parse(file, sarif.Options{})
	if err != nil {
		return nil, err
	}
	return importer.Collect([]importer.File{{Name: filepath.Base(path), Log: log}}, choices, time.Now())
}

// A second import, at another commit, must find everything unchanged.
func TestEveryCorpusFileImportsTwiceWithoutASecondWrite(t *testing.T) {
	for _, file := range needs.SARIF(t, "") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sarif"), func(t *testing.T) {
			p := newProject(t)
			first, err := collectFile(file, importer.Choices{Commit: commitA})
			harness.Must(p, err)
			created := 0
			for _, s := range p.importsAll(importer.Options{}, first) {
				if s.Created != s.Results-s.Skipped {
					p.Errorf("first import of %s: %d of %d created: %+v", s.Tool, s.Created, s.Results-s.Skipped, *s)
				}
				created += s.Created
				t.Logf("%s (%s): %d results, %d created, %d skipped %v, notes %v", s.Tool, s.Category, s.Results, s.Created, s.Skipped, s.SkippedBecause, s.Notes)
			}
			before := p.versions()
			harness.Same(t, "findings in the cluster, compared with those counted as created", created, len(before))

			second, err := collectFile(file, importer.Choices{Commit: commitB})
			harness.Must(p, err)
			for _, s := range p.importsAll(importer.Options{}, second) {
				if s.Unchanged != s.Results-s.Skipped || s.Closed != 0 {
					p.Errorf("second import of %s wrote: %+v", s.Tool, *s)
				}
			}
			harness.Same(t, "resource versions after the second import", before, p.versions())
		})
	}
}

// A malformed file is refused before anything is written; an unusual one is imported, and each
// entry that is not a finding is counted.
func TestEveryBadCorpusFileIsRefusedOrItsSkipsCounted(t *testing.T) {
	refused := map[string]string{
		"binskim-v1-bom":                `version is "1.0.0"`,
		"binskim-v200-bom":              `version is "2.0.0"`,
		"comprehensive-prerelease-v200": `version is "2.0.0"`,
		"empty-runs":                    "holds no run",
		"invalid-json-controlchar":      "not JSON",
		"malformed-json":                "not JSON",
		"no-runs":                       "runs",
		"sariftool-invalid":             `no member "runs"`,
		"zero-byte":                     "empty",
	}
	for _, file := range needs.SARIF(t, "bad") {
		name := strings.TrimSuffix(filepath.Base(file), ".sarif")
		t.Run(name, func(t *testing.T) {
			batches, err := collectFile(file, importer.Choices{Commit: commitA})
			harness.Says(t, "reading it", err, refused[name])
			if err != nil || refused[name] != "" {
				return
			}
			p := newProject(t)
			created := 0
			for _, s := range p.importsAll(importer.Options{}, batches) {
				created += s.Created
				t.Logf("%s: %d results, %d created, skipped %v, notes %v, incomplete %v", s.Tool, s.Results, s.Created, s.SkippedBecause, s.Notes, s.Incomplete)
			}
			harness.Same(t, "findings in the cluster, compared with those counted as created", created, len(p.findings()))
			for _, scan := range p.scans() {
				if scan.Spec.CompletedAt == nil {
					p.Errorf("scan %s has no end", scan.Name)
				}
			}
		})
	}
}
