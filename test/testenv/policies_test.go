package testenv

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A policy without a probe would be raced by every test that starts right after Start.
func TestEveryPolicyHasAProbe(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(RepositoryRoot(), "config", "admission", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("config/admission holds %d manifests, error %v", len(files), err)
	}
	policy := regexp.MustCompile(`(?m)^kind: (?:Validating|Mutating)AdmissionPolicy\nmetadata:\n  name: (\S+)$`)
	seen := map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // a test names its own files
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range policy.FindAllStringSubmatch(string(content), -1) {
			seen[match[1]] = true
			if policyProbes[match[1]] == nil {
				t.Errorf("policy %s has no probe in policyProbes", match[1])
			}
		}
	}
	for name := range policyProbes {
		if !seen[name] {
			t.Errorf("policyProbes has %s, which config/admission does not", name)
		}
	}
}
