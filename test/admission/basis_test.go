package admission_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// wantDecision compares the whole triage.
func wantDecision(t *testing.T, object *unstructured.Unstructured, want map[string]any) {
	t.Helper()
	got, _, _ := unstructured.NestedMap(object.Object, "spec", "triage")
	harness.Same(t, "spec.triage", want, got)
}

// The policy and the controllers derive the same text from the same facts.
func TestADecisionIsStampedWithTheFactsThatItRestsOn(t *testing.T) {
	type finding = v1alpha1.Finding
	inPackage := func(version string) func(*finding) {
		return func(f *finding) {
			f.Spec.Evidence = "m.code1111"
			f.Spec.Package = &v1alpha1.FindingPackage{Name: "lodash", Version: version}
		}
	}
	table := map[string]func(*finding){
		"written by hand":           func(*finding) {},
		"code":                      func(f *finding) { f.Spec.Evidence = "m.code1111..7" },
		"no code":                   func(f *finding) { f.Spec.Evidence = "m" },
		"long code":                 func(f *finding) { f.Spec.Evidence = "m." + strings.Repeat("c", 62) },
		"hidden code":               func(f *finding) { f.Spec.Evidence = "m..resource" },
		"separators in evidence":    func(f *finding) { f.Spec.Evidence = "m;1.c;version=1" },
		"a package":                 inPackage("4.17.15"),
		"an odd version":            inPackage("1;code=x\n\"'\\é"),
		"a package, no version":     inPackage(""),
		"critical by score":         func(f *finding) { f.Spec.Details.Severity, f.Spec.Details.Score = "high", "9.0" },
		"critical by full score":    func(f *finding) { f.Spec.Details.Severity, f.Spec.Details.Score = "high", "10.0" },
		"high by score":             func(f *finding) { f.Spec.Details.Severity, f.Spec.Details.Score = "high", "8.9" },
		"critical by its word":      func(f *finding) { f.Spec.Details.Severity, f.Spec.Details.ToolSeverity = "high", "CriTical" },
		"medium, whatever its word": func(f *finding) { f.Spec.Details.Severity, f.Spec.Details.ToolSeverity = "medium", "critical" },
		"a doubt of a scan":         func(f *finding) { f.Spec.Doubt = &v1alpha1.FindingDoubt{Reason: "r", ScanID: "s;1"} },
		"a doubt of nobody":         func(f *finding) { f.Spec.Doubt = &v1alpha1.FindingDoubt{Reason: "line; moved"} },
		"a long doubt":              func(f *finding) { f.Spec.Doubt = &v1alpha1.FindingDoubt{Reason: strings.Repeat("é", 33)} },
		"everything at its longest": func(f *finding) {
			inPackage(strings.Repeat("é", 128))(f)
			f.Spec.Details.Severity, f.Spec.Details.Score = "high", "9.9"
			f.Spec.Doubt = &v1alpha1.FindingDoubt{Reason: "r", ScanID: strings.Repeat("ü", 253)}
		},
	}
	c := newCast(t, "basis")
	next := nextName()
	for name, change := range table {
		t.Run(name, func(t *testing.T) {
			object := builder.Finding(next()).In(c.namespace).Mutate(change).Build()
			live := applied(t, object)
			harness.Must(t, c.decide(t, triager, live, map[string]any{"userStatus": "muted"}))
			wantDecision(t, env.Stored(t, live), map[string]any{
				"userStatus": "muted", "by": c.members[triager].username, "basis": findingstate.Basis(&object.Spec),
			})
		})
	}
}

func TestWhatADecisionRestsOn(t *testing.T) {
	const now, seen = "rated=high", "severity=low;code=seen1111"
	steps := []struct {
		reason string
		by     who
		patch  map[string]any
		// status and basis are expected afterwards; signed is set if this requester signs, and
		// otherwise the last signer stays.
		status, basis string
		signed        bool
	}{
		{"a comment on an undecided one rests on nothing", triager, map[string]any{"comments": "look"}, "open", "", true},
		{"the facts as they are stored", triager, map[string]any{"userStatus": "muted"}, "muted", now, true},
		{"the same decision about the same facts is none", admin, map[string]any{"userStatus": "muted"}, "muted", now, false},
		{"nor is one by its basis", admin, map[string]any{"basis": "now"}, "muted", now, false},
		{"what was seen counts where the decision says it", triager, map[string]any{"userStatus": "active", "basis": seen}, "active", seen, true},
		{"a comment leaves the decision as it is", admin, map[string]any{"comments": "why"}, "active", seen, true},
		{"now repeats it upon the facts as they are", triager, map[string]any{"basis": "now"}, "active", now, true},
		{"a basis of one's own repeats it upon that", admin, map[string]any{"basis": seen}, "active", seen, true},
		{"to take the basis away repeats it too", triager, map[string]any{"basis": nil}, "active", now, true},
		{"without a decision there is none", admin, map[string]any{"userStatus": "open"}, "open", "", true},
		{"and none can be declared", triager, map[string]any{"basis": seen}, "open", "", false},
	}
	c := newCast(t, "basis-steps")
	live := applied(t, builder.Finding("f").In(c.namespace).Severity(v1alpha1.LevelHigh).Build())
	signer, comments := "", ""
	for _, step := range steps {
		if err := c.decide(t, step.by, live, step.patch); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if step.signed {
			signer = c.members[step.by].username
		}
		if comment, given := step.patch["comments"]; given {
			comments = comment.(string)
		}
		want := map[string]any{"userStatus": step.status, "comments": comments, "by": signer}
		if step.basis != "" {
			want["basis"] = step.basis
		}
		wantDecision(t, env.Stored(t, live), want)
		if t.Failed() {
			t.Fatal(step.reason)
		}
	}
}

// A decision that has ended is not stale, so nobody was warned that the facts have changed since.
func TestADecisionThatIsInForceAgainRestsOnTheFactsOfNow(t *testing.T) {
	const end, seen = "2020-01-01T00:00:00Z", "severity=low"
	c := newCast(t, "basis-again")
	for reason, again := range map[string]struct {
		patch map[string]any
		basis string
	}{
		"another end":                   {map[string]any{"expiresAt": "2999-01-01T00:00:00Z"}, "rated=high"},
		"no end":                        {map[string]any{"expiresAt": nil}, "rated=high"},
		"a comment leaves it as it was": {map[string]any{"comments": "c"}, seen},
	} {
		live := applied(t, builder.Finding("f").In(c.namespace).Severity(v1alpha1.LevelHigh).Build())
		decision := map[string]any{"userStatus": "muted", "basis": seen, "expiresAt": end}
		harness.Must(t, c.decide(t, triager, live, decision))
		harness.Must(t, sendMergePatch(t, c.as(controller), live, fragment{"status": map[string]any{"endedAt": end}}, "status"))
		harness.Must(t, c.decide(t, triager, live, again.patch))
		got, _, _ := unstructured.NestedString(env.Stored(t, live).Object, "spec", "triage", "basis")
		harness.Same(t, reason+": basis", again.basis, got)
		harness.Must(t, env.Client.Delete(t.Context(), live))
	}
}

func TestTheFacadeSaysWhatWasDecidedUpon(t *testing.T) {
	c := newCast(t, "basis-facade")
	live := applied(t, builder.Finding("f").In(c.namespace).Build())
	decide := func(members map[string]any) error {
		members["by"] = "apikey/ci"
		return c.decide(t, facade, live, members)
	}
	harness.Must(t, decide(map[string]any{"userStatus": "muted", "basis": "severity=high"}))
	want := map[string]any{"userStatus": "muted", "basis": "severity=high", "by": "apikey/ci"}
	wantDecision(t, env.Stored(t, live), want)
	wantRefusal(t, "nobody puts the facts in its place", decide(map[string]any{"basis": "now"}))
	unsigned := triage(map[string]any{"basis": "rated=low", "by": "somebody"})
	wantRefusal(t, "to repeat a decision is one, and signed", sendMergePatch(t, c.as(facade), live, unsigned, ""))
	wantDecision(t, env.Stored(t, live), want)
}

func TestOnlyWhoMayTriageRepeatsADecision(t *testing.T) {
	c := newCast(t, "basis-others")
	live := decided(t, c, "f")
	for _, name := range []who{scanner, viewer, editor, reporter, controller} {
		for _, basis := range []any{"now", "rated=high"} {
			if err := c.decide(t, name, live, map[string]any{"basis": basis}); basis != "now" && !apierrors.IsForbidden(err) {
				t.Errorf("%s sets the basis to %v: want a refusal, got %v", name, basis, err)
			}
		}
	}
	harness.Same(t, "the finding's generation", live.GetGeneration(), env.Stored(t, live).GetGeneration())
}
