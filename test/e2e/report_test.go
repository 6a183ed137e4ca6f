package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// dropped is how many results of a report writeShortened omits: few enough for an import to close
// them without confirmation.
const dropped = 4

// importer returns the path of the kubectl plugin.
func (r *run) importer() string {
	return filepath.Join(testenv.RepositoryRoot(), "bin", "kubectl-findings")
}

// writeShortened writes a SARIF file without its last results and returns its path.
func writeShortened(t *testing.T, report string) string {
	t.Helper()
	content, err := os.ReadFile(report)
	harness.Must(t, err)
	var log map[string]any
	harness.Must(t, json.Unmarshal(content, &log))
	scan := log["runs"].([]any)[0].(map[string]any)
	results := scan["results"].([]any)
	scan["results"] = results[:len(results)-dropped]
	if content, err = json.Marshal(log); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "shortened.sarif")
	harness.Must(t, os.WriteFile(path, content, 0o600))
	return path
}
