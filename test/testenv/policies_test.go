package testenv

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// For up to half a minute after its start, kube-apiserver may not know the kind of a policy's parameters if that kind
// is a custom resource. With failurePolicy Fail, the policy would then refuse every write. All writes that it matches
// evaluate it once per parameter, so it must match few.
func TestPoliciesWithParametersIgnoreTheirFailuresAndMatchFewWrites(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(harness.Root(), "config", "admission", "*.yaml"))
	harness.Must(t, err)
	var found int
	for _, file := range files {
		content := harness.File(t, file)
		for document := range strings.SplitSeq(content, "\n---\n") {
			if !strings.Contains(document, "\n  paramKind:\n") {
				continue
			}
			found++
			if !strings.Contains(document, "\n  failurePolicy: Ignore\n") {
				t.Errorf("%s has a policy with parameters that does not ignore its failures", filepath.Base(file))
			}
			if !strings.Contains(document, "\n        resources: [projects, repositories]\n        operations: [CREATE]\n") {
				t.Errorf("%s has a policy with parameters for more than the creation of projects and repositories", filepath.Base(file))
			}
		}
	}
	if found == 0 {
		t.Error("no policy with parameters was found")
	}
}

// Without a probe for a policy, every test that starts right after Start would race with the
// policy.
func TestEveryPolicyHasAProbe(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(harness.Root(), "config", "admission", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("config/admission holds %d manifests, error %v", len(files), err)
	}
	policy := regexp.MustCompile(`(?m)^kind: (?:Validating|Mutating)AdmissionPolicy\nmetadata:\n  name: (\S+)$`)
	seen := map[string]bool{}
	for _, file := range files {
		content := harness.File(t, file)
		for _, match := range policy.FindAllStringSubmatch(content, -1) {
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
