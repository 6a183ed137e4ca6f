package findingquery

import (
	"fmt"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// selected returns a finding with a value for everything that selections can ask for.
func selected() *v1alpha1.Finding {
	detected := v1alpha1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return builder.Finding("f-1").In("org-x").Mutate(func(f *v1alpha1.Finding) {
		f.Labels = map[string]string{"team": "payments"}
		f.Generation, f.Status.ObservedGeneration = 2, 2
		f.Spec.RepositoryRef.Name, f.Spec.ProjectRef.Name = "shop", "api"
		f.Spec.Tool, f.Spec.RuleID, f.Spec.Class, f.Spec.Category = "gosec", "G201", "CWE-89", v1alpha1.CategoryCode
		f.Spec.DetectedAt = &detected
		f.Spec.Details.Title, f.Spec.Details.Severity, f.Spec.Details.Score = "SQL injection", v1alpha1.LevelHigh, "8.1"
		f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: "api/orders.go"}
		f.Spec.Vulnerability = &v1alpha1.FindingVulnerability{ID: "CVE-2019-1549", Aliases: []string{"GHSA-1"}}
		f.Spec.Package = &v1alpha1.FindingPackage{Name: "lodash", PURL: "pkg:npm/lodash@4.17.15"}
		f.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: "inSource"}
		f.Spec.Triage.UserStatus = v1alpha1.UserStatusActive
		f.Status.State, f.Status.UpdatedAt = v1alpha1.FindingStateOpenMuted, &detected
	}).Build()
}

func TestASelectionMeansWhatHasEverythingAskedFor(t *testing.T) {
	at := func(hour int) *v1alpha1.Time {
		at := v1alpha1.NewTime(time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC))
		return &at
	}
	type spec = v1alpha1.FindingSelection
	for _, c := range []struct {
		is, isNot spec
	}{
		{spec{IDs: []v1alpha1.ResourceName{"f-2", "f-1"}}, spec{IDs: []v1alpha1.ResourceName{"f-2"}}},
		{spec{State: []v1alpha1.FindingState{"closed", "open_muted"}}, spec{State: []v1alpha1.FindingState{"open"}}},
		{spec{UserStatus: []v1alpha1.UserStatus{"active"}}, spec{UserStatus: []v1alpha1.UserStatus{"open", "muted"}}},
		{spec{Severity: []v1alpha1.Level{"high", "low"}}, spec{Severity: []v1alpha1.Level{"low"}}},
		{spec{Repository: "shop"}, spec{Repository: "sho"}},
		{spec{Project: "api"}, spec{Project: "web"}},
		{spec{Class: new("CWE-89")}, spec{Class: new("")}},
		{spec{Tool: "gosec"}, spec{Tool: "Gosec"}},
		{spec{Rule: "G201"}, spec{Rule: "G20"}},
		{spec{Vulnerability: "ghsa-1"}, spec{Vulnerability: "CVE-2019-154"}},
		{spec{Package: "pkg:npm/lodash"}, spec{Package: "lodash-es"}},
		{spec{Owner: "payments"}, spec{Owner: "platform"}},
		{spec{Category: []v1alpha1.FindingCategory{"Code"}}, spec{Category: []v1alpha1.FindingCategory{"Secret"}}},
		{spec{CreatedSince: at(12)}, spec{CreatedSince: at(13)}},
		{spec{CreatedUntil: at(13)}, spec{CreatedUntil: at(12)}},
		{spec{UpdatedSince: at(12)}, spec{UpdatedSince: at(13)}},
		{spec{UpdatedUntil: at(13)}, spec{UpdatedUntil: at(12)}},
		{spec{MinScore: "8.1"}, spec{MinScore: "8.2"}},
		{spec{Text: "ORDERS sql"}, spec{Text: "sql xss"}},
		{spec{Text: "injection api"}, spec{Text: "injectionapi"}},
		{spec{Stale: new(false)}, spec{Stale: new(true)}},
		{spec{Suppressed: new(true)}, spec{Suppressed: new(false)}},
		{spec{File: "api/"}, spec{File: "ap"}},
		{spec{File: "api/orders.go"}, spec{File: "api"}},
		{spec{LabelSelector: "team in (payments),!env"}, spec{LabelSelector: "team!=payments"}},
		{spec{FieldSelector: "spec.class=CWE-89,status.state!=closed"}, spec{FieldSelector: "spec.tool!=gosec"}},
	} {
		for want, asked := range map[bool]spec{true: c.is, false: c.isNot} {
			selection, err := NewSelection(&asked)
			if err != nil {
				t.Fatalf("%+v: %v", asked, err)
			}
			owners := func(project v1alpha1.ResourceName) string {
				return map[v1alpha1.ResourceName]string{"api": "payments"}[project]
			}
			harness.Same(t, fmt.Sprintf("%+v matches", asked), want, selection.Matches(selected(), owners))
			asked.Tool = "trivy"
			if also, _ := NewSelection(&asked); asked.IDs == nil && also.Matches(selected(), owners) {
				t.Errorf("%+v matches one that does not have all of it", asked)
			}
		}
	}
}

func TestASelectionByPolicyMeansTheVerdictInForce(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(*v1alpha1.Finding)
		want   bool
	}{
		{"its verdict", func(*v1alpha1.Finding) {}, true},
		{"another's verdict", func(f *v1alpha1.Finding) { f.Status.Verdict.Policy = "mute" }, false},
		{"a person's decision about an issue", func(f *v1alpha1.Finding) {
			f.Status.Verdict.Policy, f.Status.Verdict.ReviewIssue = "", "mute-tests"
		}, false},
		{"no verdict", func(f *v1alpha1.Finding) { f.Status.Verdict = nil }, false},
		{"a person's decision", func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted }, false},
		{"closed", func(f *v1alpha1.Finding) { f.Spec.Closed = &v1alpha1.FindingClosure{} }, false},
	} {
		f := selected()
		f.Spec.Triage.UserStatus = v1alpha1.UserStatusOpen
		f.Status.Verdict = &v1alpha1.FindingVerdict{Policy: "mute-tests", UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted)}
		c.change(f)
		selection, err := NewSelection(&v1alpha1.FindingSelection{Policy: "mute-tests"})
		harness.Must(t, err)
		harness.Same(t, c.reason, c.want, selection.Matches(f, nil))
	}
}

func TestTheCurrentStateIsTheRecordedOneUntilTheFindingChanges(t *testing.T) {
	f := selected()
	f.Status.State = v1alpha1.FindingStateOpen // as an earlier version recorded it
	harness.Same(t, "recorded", v1alpha1.FindingStateOpen, StateOf(f))
	f.Spec.Closed = &v1alpha1.FindingClosure{}
	f.Generation++
	harness.Same(t, "closed since", v1alpha1.FindingStateClosed, StateOf(f))
}

func TestASelectionThatCannotBeReadSaysWhy(t *testing.T) {
	for _, asked := range []v1alpha1.FindingSelection{
		{LabelSelector: "a in"}, {FieldSelector: "a=b=c=d,,="}, {FieldSelector: "spec.colour=red"}, {MinScore: "11"},
		{Text: "a b c d e f g h i"}, {Text: " \t"}, {LabelSelector: " "}, {FieldSelector: ","},
		{CreatedSince: &v1alpha1.Time{}}, {UpdatedSince: &v1alpha1.Time{}},
		{CreatedSince: &v1alpha1.Time{Time: time.Time{}.Add(5 * time.Hour)}}, // written with an offset
		{UpdatedSince: &v1alpha1.Time{Time: time.Unix(0, 0)}},
		{UpdatedSince: &v1alpha1.Time{Time: time.Unix(0, 0).Add(12 * time.Hour)}}, // written with an offset
		{CreatedUntil: &v1alpha1.Time{Time: firstUnsetEnd}}, {UpdatedUntil: &v1alpha1.Time{Time: firstUnsetEnd}},
	} {
		if _, err := NewSelection(&asked); err == nil {
			t.Errorf("%+v is read", asked)
		}
	}
}
