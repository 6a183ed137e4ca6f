package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Both writes must have about the same size, and the controllers must not revert the bare one.
func TestABareStatusIsAboutAsLongAsThatOfAVerdict(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	finding := dataset.New(dataset.Options{Namespace: "org-a", Findings: 10, Now: now, Undecided: true}).Finding(3)
	finding.ResourceVersion = "1"
	policy := manyPolicyOf(named("org-a", manyPolicy), 0, now.Add(-dataset.Span), 10)
	status := verdictStatus(finding, policy, now)
	if status.Verdict == nil || findingstate.SameVerdict(status.Verdict, finding.Status.Verdict) {
		t.Fatalf("the policy decides nothing: %+v", status)
	}
	bare := bareStatus(status, &finding.Status)
	if !findingstate.SameVerdict(bare.Verdict, finding.Status.Verdict) {
		t.Errorf("the controllers would look at the finding: %+v", bare)
	}
	stored, storedBare := len(encoded(status)), len(encoded(bare))
	if storedBare < stored*19/20 || storedBare > stored*21/20 {
		t.Errorf("the status has %d bytes, and that of a verdict %d", storedBare, stored)
	}
	full, err := statusPatch(finding, status)
	harness.Must(t, err)
	short, err := statusPatch(finding, bare)
	harness.Must(t, err)
	// A list of conditions is patched as a whole.
	t.Logf("a verdict is a patch of %d bytes, a bare write one of %d", len(full), len(short))
	if len(short) > len(full)*6/5 || len(short) < len(full) {
		t.Errorf("a bare write is a patch of %d bytes, and a verdict one of %d", len(short), len(full))
	}
}

// Findings with the same detection time must not be divided between two groups.
func TestFindingsAreToldApartByTheTimeAtWhichTheyWereFound(t *testing.T) {
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	var findings []manyFinding
	for _, second := range []int{0, 1, 1, 1, 2, 3} {
		findings = append(findings, manyFinding{found: at.Add(time.Duration(second) * time.Second)})
	}
	for index, want := range map[int]int{0: 0, 1: 1, 2: 4, 3: 4, 4: 4, 5: 5} {
		harness.Same(t, fmt.Sprintf("from %d on", index), want, from(findings, index))
	}
}
