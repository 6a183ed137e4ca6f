package findingstate_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// imported returns a finding of code as created by an import.
func imported() *v1alpha1.Finding {
	f := finding()
	f.Spec.Evidence = "message1.code1111"
	f.Spec.Scan = &v1alpha1.FindingScan{ScanID: "s-1"}
	return f
}

func packaged() *v1alpha1.Finding {
	f := imported()
	f.Spec.Category = v1alpha1.CategoryPackage
	f.Spec.Package = &v1alpha1.FindingPackage{Name: "lodash", Version: "4.17.15", FixedVersion: "4.17.21"}
	return f
}

// decide returns a change that decides like a user, with the admission policy.
func decide(status v1alpha1.UserStatus) func(*v1alpha1.Finding) {
	return func(f *v1alpha1.Finding) {
		f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: status, By: "ann"}
		if status != v1alpha1.UserStatusOpen {
			f.Spec.Triage.Basis = findingstate.Basis(&f.Spec)
		}
	}
}

func severity(level v1alpha1.Level) func(*v1alpha1.Finding) {
	return func(f *v1alpha1.Finding) { f.Spec.Details.Severity = level }
}

func evidence(text string) func(*v1alpha1.Finding) {
	return func(f *v1alpha1.Finding) { f.Spec.Evidence = text }
}

func version(v string) func(*v1alpha1.Finding) {
	return func(f *v1alpha1.Finding) { f.Spec.Package.Version = v }
}

func doubt(scan string) func(*v1alpha1.Finding) {
	return func(f *v1alpha1.Finding) {
		f.Spec.Doubt = nil
		if scan != "" {
			f.Spec.Doubt = &v1alpha1.FindingDoubt{Reason: "line moved", ScanID: scan}
		}
	}
}

func TestTheFactsThatADecisionRestsOn(t *testing.T) {
	with := func(f *v1alpha1.Finding, change ...func(*v1alpha1.Finding)) *v1alpha1.Finding {
		for _, c := range change {
			c(f)
		}
		return f
	}
	cases := []struct {
		reason  string
		finding *v1alpha1.Finding
		want    string
	}{
		{"code and its severity", imported(), "severity=high;code=code1111"},
		{"of a package the version, and not the lock file's code", packaged(), "severity=high;version=4.17.15"},
		{"of a package whose version is not known the code", with(packaged(), version("")), "severity=high;code=code1111"},
		{"a scanner that shows no code", with(imported(), evidence("message1")), "severity=high"},
		{"a high one of 9.8 is critical", with(imported(), func(f *v1alpha1.Finding) { f.Spec.Details.Score = "9.8" }), "severity=critical;code=code1111"},
		{"a high one of 8.9 is not", with(imported(), func(f *v1alpha1.Finding) { f.Spec.Details.Score = "8.9" }), "severity=high;code=code1111"},
		{"the tool's own word is critical", with(imported(), func(f *v1alpha1.Finding) { f.Spec.Details.ToolSeverity = "Critical" }), "severity=critical;code=code1111"},
		{"the service rates it medium, whatever the tool's word", with(imported(), severity("medium"), func(f *v1alpha1.Finding) { f.Spec.Details.ToolSeverity = "CRITICAL" }), "severity=medium;code=code1111"},
		{"a doubt is decided upon too", with(imported(), doubt("s-7")), "severity=high;code=code1111;doubt=s-7"},
		{"a finding without evidence compares with its like alone", with(finding(), func(f *v1alpha1.Finding) { f.Spec.Details.Code = "a  =\tb" }), "rated=high;text=iike6ojz"},
		{"separators in what somebody wrote by hand", with(imported(), evidence("m.c;version=1"), doubt("s;1"), func(f *v1alpha1.Finding) {
			f.Spec.Package = &v1alpha1.FindingPackage{Name: "x"}
		}), "severity=high;code=c,version=1;doubt=s,1"},
		{"a version may hold anything", with(packaged(), version("1;code=x")), "severity=high;version=1;code=x"},
		{"a long version", with(packaged(), version(strings.Repeat("1", 65))), "severity=high;version=" + strings.Repeat("1", 64)},
		{"a long name of a scan", with(imported(), doubt(strings.Repeat("ä", 33))), "severity=high;code=code1111;doubt=" + strings.Repeat("ä", 32)},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, findingstate.Basis(&c.finding.Spec))
	}
}

// Each step is followed by a reconcile; the result after the last one counts.
func TestADecisionGoesStale(t *testing.T) {
	type change = func(*v1alpha1.Finding)
	muted, active, undecided := decide(v1alpha1.UserStatusMuted), decide(v1alpha1.UserStatusActive), decide(v1alpha1.UserStatusOpen)
	code := imported
	cases := []struct {
		reason string
		of     func() *v1alpha1.Finding
		steps  []change
		want   string
	}{
		{"nothing has changed", code, []change{muted, func(*v1alpha1.Finding) {}}, ""},
		{"another severity", code, []change{muted, severity("medium")}, "severity high, now medium"},
		{"a confirmed one is decided about too", code, []change{active, severity("medium")}, "severity high, now medium"},
		{"nobody has decided", code, []change{severity("medium"), evidence("m.other")}, ""},
		{"nobody has decided any more", code, []change{muted, severity("medium"), undecided}, ""},
		{"other code", code, []change{muted, evidence("message1.code2222")}, "other code at the place"},
		{"other words about the same code", code, []change{muted, evidence("message2.code1111")}, ""},
		{"the scanner shows the code no longer", code, []change{muted, evidence("message1")}, ""},
		{"the scanner shows other code than it showed when it was decided", code, []change{muted, evidence("message1"), evidence("message1.code2222")}, "other code at the place"},
		{"the scanner shows the code only later", code, []change{evidence("message1"), muted, evidence("message1.code2222")}, ""},
		{"and then other code", code, []change{evidence("message1"), muted, evidence("message1.code2222"), evidence("message1.code3333")}, "other code at the place"},
		{"another version", packaged, []change{muted, version("4.17.16")}, `version "4.17.15", now "4.17.16"`},
		{"another fixed version", packaged, []change{muted, func(f *v1alpha1.Finding) { f.Spec.Package.FixedVersion = "5" }}, ""},
		{"other code of a package in its version", packaged, []change{muted, evidence("message1.code2222")}, ""},
		{"a doubt", code, []change{muted, doubt("s-2")}, "in doubt: line moved"},
		{"a doubt that was decided upon", code, []change{muted, doubt("s-2"), muted}, ""},
		{"another doubt", code, []change{muted, doubt("s-2"), muted, doubt("s-3")}, "in doubt: line moved"},
		{"a doubt that is gone", code, []change{doubt("s-2"), muted, doubt("")}, ""},
		{"several", packaged, []change{muted, func(f *v1alpha1.Finding) { version("5")(f); severity("low")(f) }}, `version "4.17.15", now "5"; severity high, now low`},
		{"the decision is repeated", code, []change{muted, severity("medium"), muted}, ""},
		{"and the facts change again", code, []change{muted, severity("medium"), muted, severity("low")}, "severity medium, now low"},
		{"a comment alone is no decision", code, []change{muted, severity("medium"), func(f *v1alpha1.Finding) { f.Spec.Triage.Comments = "why" }}, "severity high, now medium"},
		{"the facts are as they were", code, []change{muted, severity("medium"), severity("high")}, ""},
		{"closed, and back with other facts", code, []change{muted, func(f *v1alpha1.Finding) { f.Spec.Closed = &v1alpha1.FindingClosure{} }, func(f *v1alpha1.Finding) {
			f.Spec.Closed = nil
			severity("low")(f)
		}}, "severity high, now low"},
		{"decided while the facts changed, upon what was seen before", code, []change{func(f *v1alpha1.Finding) { muted(f); severity("medium")(f) }}, "severity high, now medium"},
		{"decided without a basis", code, []change{func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = "muted" }, severity("medium")}, "severity high, now medium"},
		{"decided without a basis, and otherwise", code, []change{func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = "muted" }, severity("medium"), func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = "active" }}, ""},
		{"decided without a basis about one in doubt", code, []change{doubt("s-2"), func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = "muted" }}, ""},
		{"a basis that says nothing", code, []change{func(f *v1alpha1.Finding) { muted(f); f.Spec.Triage.Basis = "nonsense" }, severity("medium")}, "severity high, now medium"},
		{"written by hand", finding, []change{muted, severity("medium")}, "severity high, now medium"},
		{"the first import that stores evidence rates otherwise than its predecessor", finding, []change{muted, func(f *v1alpha1.Finding) { severity("medium")(f); evidence("m.c")(f) }}, ""},
		{"and the scanner rates otherwise later", finding, []change{muted, func(f *v1alpha1.Finding) { severity("medium")(f); evidence("m.c")(f) }, severity("low")}, "severity medium, now low"},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			f := c.of()
			reconcile(f, now)
			for _, step := range c.steps {
				step(f)
				f.Generation++
				if before := findingstate.WhyStale(f); before != whyAfter(f) {
					t.Errorf("the facade says %q before the controllers have looked, and %q afterwards", before, whyAfter(f))
				}
				reconcile(f, now)
			}
			if got := findingstate.WhyStale(f); got != c.want || findingstate.Stale(f) != (c.want != "") {
				t.Errorf("stale is %q, want %q; the basis is %q and was declared as %q", got, c.want, f.Status.Basis, f.Spec.Triage.Basis)
			}
			if stale := v1alpha1.IsConditionTrue(f.Status.Conditions, v1alpha1.ConditionDecisionStale); stale != (c.want != "") {
				t.Errorf("the condition is %v: %+v", stale, f.Status.Conditions)
			}
			harness.Same(t, "a further look", f.Status, findingstate.Observe(f, nil, now.Add(time.Hour)))
		})
	}
}

func whyAfter(f *v1alpha1.Finding) string {
	after := f.DeepCopy()
	reconcile(after, now)
	return findingstate.WhyStale(after)
}

// An earlier version has recorded the decision without a basis.
func TestDecisionsOfAnEarlierVersionRestOnTheFactsOfTheFirstReconcile(t *testing.T) {
	earlier := func(doubtful string) *v1alpha1.Finding {
		f := imported()
		f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "ann"}
		doubt(doubtful)(f)
		reconcile(f, now)
		f.Status.Basis, f.Status.Conditions = "", nil
		return f
	}
	f := earlier("")
	history := len(f.Status.Transitions)
	reconcile(f, now)
	if f.Status.Basis != "severity=high;code=code1111" || findingstate.Stale(f) || len(f.Status.Transitions) != history {
		t.Errorf("after the first look the status is %+v", f.Status)
	}
	f = earlier("")
	f.Generation++
	severity("low")(f)
	reconcile(f, now)
	if findingstate.Stale(f) {
		t.Error("nobody knows what it was before the facts changed, so it is not stale")
	}
	severity("high")(f)
	f.Generation++
	reconcile(f, now)
	harness.Same(t, "why it is stale from then on", "severity low, now high", findingstate.WhyStale(f))
	f = earlier("s-2")
	reconcile(f, now)
	harness.Same(t, "a doubt, which says itself that nobody has looked at it since", "in doubt: line moved", findingstate.WhyStale(f))
}

// transitionsOf makes the changes, each followed by a reconcile, and returns what the history tells of them. It leaves out
// that facts were updated.
func transitionsOf(f *v1alpha1.Finding, changes ...func(*v1alpha1.Finding)) (out []string) {
	for _, change := range changes {
		seq := findingstate.History(&f.Status).LastSeq()
		change(f)
		f.Generation++
		reconcile(f, now)
		for _, tr := range f.Status.Transitions {
			if tr.Seq > seq && tr.Type != v1alpha1.TransitionUpdated {
				out = append(out, strings.Join([]string{string(tr.Type), tr.From, tr.To, tr.By, tr.Scan, tr.Comment}, " "))
			}
		}
	}
	return out
}

func TestTheHistoryRecordsStaleDecisions(t *testing.T) {
	f := imported()
	reconcile(f, now)
	got := transitionsOf(f,
		decide(v1alpha1.UserStatusMuted),
		func(f *v1alpha1.Finding) { severity("medium")(f); f.Spec.Scan.ScanID = "s-2" },
		func(f *v1alpha1.Finding) { f.Spec.Details.Title = "other" },
		func(f *v1alpha1.Finding) { evidence("m.code2222")(f); f.Spec.Scan.ScanID = "s-3" },
		decide(v1alpha1.UserStatusMuted),
		severity("high"),
		func(f *v1alpha1.Finding) { severity("medium")(f); f.Spec.Scan.ScanID = "s-4" },
	)
	want := []string{
		"triaged open muted ann  ",
		"stale muted muted scanner/gosec s-2 severity high, now medium",
		"stale muted muted scanner/gosec s-3 other code at the place; severity high, now medium",
		"triaged muted muted ann  ",
		"stale muted muted scanner/gosec s-3 severity medium, now high",
		"fresh muted muted scanner/gosec s-4 ",
	}
	harness.Same(t, "history", want, got)
}

func TestTheHistoryRecordsSuppressions(t *testing.T) {
	f := imported()
	reconcile(f, now)
	suppress := func(kind v1alpha1.SuppressionKind, why string) func(*v1alpha1.Finding) {
		return func(f *v1alpha1.Finding) {
			f.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: kind, Justification: why}
		}
	}
	got := transitionsOf(f,
		suppress("inSource", ""),
		func(f *v1alpha1.Finding) { f.Spec.Scan.ScanID = "s-2" },
		suppress("external", "accepted"),
		decide(v1alpha1.UserStatusActive),
		func(f *v1alpha1.Finding) { f.Spec.Closed = &v1alpha1.FindingClosure{ScanID: "s-3"} },
		func(f *v1alpha1.Finding) { f.Spec.Closed, f.Spec.Suppression = nil, nil },
	)
	want := []string{
		"suppressed open open_muted scanner/gosec s-1 inSource",
		"suppressed open_muted open_muted scanner/gosec s-2 external: accepted",
		"triaged open active ann  ",
		"closed open_muted closed scanner/gosec s-3 ",
		"reopened closed open scanner/gosec s-2 ",
		"unsuppressed closed open scanner/gosec s-2 ",
	}
	harness.Same(t, "history", want, got)
}

func TestTheConditionHasRoomForAnyVersion(t *testing.T) {
	f := packaged()
	for _, odd := range []string{"\uE000", "\uE001"} {
		f.Spec.Package.Version = strings.Repeat(odd, 128)
		if f.Spec.Triage.UserStatus == v1alpha1.UserStatusOpen {
			decide(v1alpha1.UserStatusMuted)(f)
		}
		f.Generation++
		reconcile(f, now)
	}
	stale := v1alpha1.FindCondition(f.Status.Conditions, v1alpha1.ConditionDecisionStale)
	if stale == nil || len(stale.Message) > 1024 || !strings.HasSuffix(stale.Message, "decide anew.") {
		t.Errorf("got %+v", stale)
	}
	last := f.Status.Transitions[len(f.Status.Transitions)-1]
	harness.Same(t, "characters of the transition's comment", v1alpha1.MaxTransitionComment, utf8.RuneCountInString(last.Comment))
}

// Whatever text was written as a basis, the status can hold what it is completed to, and a decision that is repeated with
// the current facts is not stale.
func TestARepeatedDecisionIsNotStale(t *testing.T) {
	const maxBasis = 168 // of the status
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`((severity|rated|code|text|doubt|version)=[a-z;=]{0,5};?){0,4}`),
		rapid.StringMatching(`(severity|rated|code|text|doubt|version)=[a-z]{150}`))
	rapid.Check(t, func(t *rapid.T) {
		f := imported()
		draw := func() {
			f.Generation++
			f.Spec.Evidence = rapid.SampledFrom([]string{"", "m", "m.c", "m.d;version=1", "m.e.f.g"}).Draw(t, "evidence")
			f.Spec.Details.Code = rapid.SampledFrom([]string{"", "x"}).Draw(t, "code")
			f.Spec.Details.Severity = rapid.SampledFrom([]v1alpha1.Level{"high", "low"}).Draw(t, "severity")
			f.Spec.Package = nil
			if rapid.Bool().Draw(t, "package") {
				f.Spec.Package = &v1alpha1.FindingPackage{Name: "p", Version: text.Draw(t, "version")}
			}
			doubt(rapid.SampledFrom([]string{"", "s-1", "s;2"}).Draw(t, "doubt"))(f)
		}
		for range 4 {
			draw()
			f.Spec.Triage = v1alpha1.FindingTriage{
				UserStatus: rapid.SampledFrom([]v1alpha1.UserStatus{"open", "active", "muted"}).Draw(t, "user status"), Basis: text.Draw(t, "basis"),
			}
			reconcile(f, now)
			if n := utf8.RuneCountInString(f.Status.Basis); n > maxBasis {
				t.Fatalf("%d characters; declared %q, recorded %q", n, f.Spec.Triage.Basis, f.Status.Basis)
			}
		}
		f.Generation++
		decide(v1alpha1.UserStatusMuted)(f)
		reconcile(f, now)
		if findingstate.Stale(f) {
			t.Fatalf("stale: %s; declared %q, recorded %q", findingstate.WhyStale(f), f.Spec.Triage.Basis, f.Status.Basis)
		}
	})
}
