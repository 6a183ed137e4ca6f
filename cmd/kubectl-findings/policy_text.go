package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// maxShown bounds how many findings per kind of change the text lists; JSON and YAML list all.
const maxShown = 20

func (r *policyTestResult) text() []byte {
	var b bytes.Buffer
	for _, policy := range r.Policies {
		policy.text(&b)
	}
	if r.Gate != nil {
		fmt.Fprintf(&b, "gate %s %s\n", r.Gate.FailOn, map[bool]string{true: "passed", false: "failed"}[r.Gate.Passed])
	}
	return b.Bytes()
}

func (r *policyReport) text(b *bytes.Buffer) {
	set := string(r.Set.UserStatus)
	if r.Set.Reason != "" {
		set += " (" + string(r.Set.Reason) + ")"
	}
	fmt.Fprintf(b, "%s in %s: %s, priority %d\n", r.Policy, r.Namespace, printable(set), r.Priority)
	fmt.Fprintf(b, "  in the cluster: %s\n", r.Cluster.text())
	fmt.Fprintf(b, "  matched %d of %d findings = %d applied + %d shadowed + %d overridden by people + %d decided alike by people; %d failed\n",
		r.Matched, r.Findings, r.Applied, r.Shadowed, r.Overridden, r.Agreed, r.Failed)
	for _, name := range slices.Sorted(maps.Keys(r.ShadowedBy)) {
		fmt.Fprintf(b, "  shadowed by %s: %d\n", name, r.ShadowedBy[name])
	}
	if f := r.Failure; f != nil {
		fmt.Fprintf(b, "  failed, and so not matched, for example %s: %s\n", f.Finding, printable(f.Message))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "  note: %s\n", note)
	}
	if r.Stopped != "" {
		fmt.Fprintf(b, "  WARNING: STOPPED (%s): %s\n", r.Stopped, r.stoppedBecause())
	}
	fmt.Fprintf(b, "  gained %d, lost %d, decided differently %d\n", len(r.Gained), len(r.Lost), len(r.Changed))
	listChanges(b, "gained", r.Gained)
	listChanges(b, "lost", r.Lost)
	listChanges(b, "changed", r.Changed)
}

// stoppedBecause explains why the policy could not come into force, and what that means for the counts.
func (r *policyReport) stoppedBecause() string {
	switch r.Stopped {
	case v1alpha1.ReasonTooMany:
		bound := fmt.Sprintf("maxFindings is %d", r.MaxFindings)
		if r.Limit < r.MaxFindings {
			bound = fmt.Sprintf("it stays stopped until no more than %d do", r.Limit)
		}
		return fmt.Sprintf("%d findings match and %s, so it would not come into force; what follows is as if it did",
			r.Matched, bound)
	case v1alpha1.ReasonTooManyPolicies:
		return fmt.Sprintf("%d other policies are in force, so it would not come into force; what follows is as if it did",
			rules.MaxInForce)
	case v1alpha1.ReasonTooCostly:
		return "the policy in the cluster has this expression, which takes too long to evaluate over all findings, so it " +
			"would not come into force; what follows is as if it did"
	default:
		return "spec.validUntil has passed, so it would decide about nothing"
	}
}

func (c *policyInCluster) text() string {
	switch {
	case !c.Exists:
		return "no policy of this name"
	case c.InForce == 0:
		return fmt.Sprintf("generation %d, not in force (%s)", c.Generation, cmp.Or(c.Why, "not seen yet"))
	default:
		return fmt.Sprintf("generation %d in force, %d applied", c.InForce, c.Applied)
	}
}

// listChanges lists the first findings in the format of the import summaries.
func listChanges(b *bytes.Buffer, action string, changes []verdictChange) {
	for _, c := range changes[:min(len(changes), maxShown)] {
		changeLine(b, action, c.Finding, c.Severity, shortened(c.Title, titleLength), c.Was.text()+" -> "+c.Becomes.text())
	}
	if more := len(changes) - maxShown; more > 0 {
		fmt.Fprintf(b, "... and %d more %s: -o json lists all\n", more, action)
	}
}

func (v *policyVerdict) text() string {
	if v == nil {
		return string(v1alpha1.UserStatusOpen)
	}
	return string(v.UserStatus) + " by " + string(v.Policy)
}
