package finding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// inBase returns a finding of the base branch with that code.
func inBase(ns, name, code string) *v1alpha1.Finding {
	return builder.Finding(name).In(ns).Mutate(func(f *v1alpha1.Finding) {
		f.Spec.RuleID, f.Spec.Evidence, f.Spec.Details.Code = "G401", "message."+code, code
		f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: "a.go", LineNumber: 7}
	}).Build()
}

// secretInBase returns a secret of the base branch, whose code is not stored.
func secretInBase(ns, name, evidence string) *v1alpha1.Finding {
	f := inBase(ns, name, "")
	f.Spec.Evidence = evidence
	return f
}

// Evidence of a secret in masked code, which an earlier version stored without the mark.
const marked, unmarked = "message.dummy..5..masked", "message.dummy..5"

// inPullRequest returns an issue with the same result as the finding.
func inPullRequest(name string, of *v1alpha1.Finding) *v1alpha1.ReviewIssue {
	return builder.ReviewIssue(name).In(of.Namespace).SeenIn("a").Mutate(func(i *v1alpha1.ReviewIssue) {
		i.Spec.File, i.Spec.Line = of.Spec.Details.Location.FilePath, of.Spec.Details.Location.LineNumber
		i.Spec.Result = &v1alpha1.ReviewIssueResult{
			Key: fingerprints.Key(&of.Spec), Tool: of.Spec.Tool, RuleID: of.Spec.RuleID, Evidence: of.Spec.Evidence,
			Vulnerability: of.Spec.Vulnerability, Package: of.Spec.Package,
		}
	}).Build()
}

// shows waits for the state, and for the issue that the verdict names; "" for no verdict.
func shows(t *testing.T, reason string, f *v1alpha1.Finding, state v1alpha1.FindingState, issue string) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, env, f)
		got := ""
		if f.Status.Verdict != nil {
			got = f.Status.Verdict.ReviewIssue
		}
		g.Expect([]string{string(f.Status.State), got}).To(Equal([]string{string(state), issue}), reason)
		g.Expect(f.Status.ObservedGeneration).To(Equal(f.Generation))
	})
}

func TestTheBaseBranchsFindingShowsTheDecisionAboutTheIssueWithItsAuthor(t *testing.T) {
	ns := beside(t, storing)
	g := NewWithT(t)
	f := inBase(ns, "f-1", "md5")
	issue, other := inPullRequest("i-1", f), inPullRequest("i-2", inBase(ns, "f-2", "sha1"))
	env.Create(t, issue, other)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted","reason":"used-in-tests","comments":"only a test"}}}`)
	env.Patch(t, other, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	env.Create(t, f)
	shows(t, "the result stands in the base branch", f, v1alpha1.FindingStateOpenMuted, "i-1")
	g.Expect(*f.Status.Verdict).To(Equal(v1alpha1.FindingVerdict{
		ReviewIssue: "i-1", UserStatus: "muted", Reason: v1alpha1.DecisionUsedInTests, Comment: "only a test",
		By: issue.Spec.Triage.By, Since: *f.Status.UpdatedAt,
	}))
	g.Expect(issue.Spec.Triage.By).NotTo(BeEmpty(), "the decision is signed")
	g.Expect(f.Spec.Triage).To(Equal(v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen}), "nobody decided about the finding")

	env.Patch(t, issue, `{"spec":{"file":"b.go"}}`)
	shows(t, "a scanner moved the issue to another file", f, v1alpha1.FindingStateOpen, "")
	env.Patch(t, issue, `{"spec":{"file":"a.go"}}`)
	shows(t, "the issue is back", f, v1alpha1.FindingStateOpenMuted, "i-1")

	env.Patch(t, f, `{"spec":{"details":{"severity":"high"}}}`)
	shows(t, "the base branch rates it higher", f, v1alpha1.FindingStateOpen, "")
	env.Patch(t, issue, `{"spec":{"severity":"high"}}`)
	shows(t, "so does the pull request", f, v1alpha1.FindingStateOpenMuted, "i-1")

	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"active"}}}`)
	shows(t, "it was confirmed instead", f, v1alpha1.FindingStateOpen, "i-1")
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"open"}}}`)
	shows(t, "it was taken back", f, v1alpha1.FindingStateOpen, "")

	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	shows(t, "it was muted again", f, v1alpha1.FindingStateOpenMuted, "i-1")
	env.Patch(t, f, `{"spec":{"triage":{"userStatus":"active"}}}`)
	shows(t, "a person decided about the finding itself", f, v1alpha1.FindingStateOpen, "")
	env.Patch(t, f, `{"spec":{"triage":{"userStatus":"open"}}}`)
	shows(t, "that was taken back", f, v1alpha1.FindingStateOpenMuted, "i-1")

	g.Expect(env.Client.Delete(t.Context(), issue)).To(Succeed())
	shows(t, "the issue is gone", f, v1alpha1.FindingStateOpen, "")
	var judged []string
	for _, tr := range f.Status.Transitions {
		if tr.Type == v1alpha1.TransitionJudged {
			judged = append(judged, strings.Join([]string{tr.From, tr.To, tr.By, tr.Author}, " "))
		}
	}
	by := " review-issue/i-1 " + issue.Spec.Triage.By
	g.Expect(judged[len(judged)-2:]).To(Equal([]string{"open muted" + by, "muted open" + by}), "the history names issue and author")
}

// The key does not contain code in which the tool masks a secret.
func TestTheVerdictDoesNotPassToAnotherSecretInMaskedCode(t *testing.T) {
	ns := beside(t, storing)
	f := secretInBase(ns, "f-1", "message.dummy....masked")
	issue := inPullRequest("i-1", f)
	env.Create(t, issue, f)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	shows(t, "the secret is in the base branch", f, v1alpha1.FindingStateOpenMuted, "i-1")
	env.Patch(t, f, `{"spec":{"evidence":"message.real....masked"}}`)
	shows(t, "another secret is at its place", f, v1alpha1.FindingStateOpen, "")
	env.Patch(t, f, `{"spec":{"evidence":"message.dummy....masked"}}`)
	shows(t, "the first one is back", f, v1alpha1.FindingStateOpenMuted, "i-1")
}

func TestADecisionAboutAMaskedSecretReachesTheFindingOfAnEarlierImporter(t *testing.T) {
	ns := beside(t, storing)
	issue := inPullRequest("i-1", secretInBase(ns, "f-1", marked))
	env.Create(t, issue)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	f := secretInBase(ns, "f-1", unmarked)
	env.Create(t, f)
	shows(t, "the secret is in the base branch", f, v1alpha1.FindingStateOpenMuted, "i-1")
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"open"}}}`)
	shows(t, "the decision was taken back", f, v1alpha1.FindingStateOpen, "")
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	shows(t, "it was muted again", f, v1alpha1.FindingStateOpenMuted, "i-1")
	env.Patch(t, f, `{"spec":{"evidence":"message.real..5"}}`)
	shows(t, "another secret is at its place", f, v1alpha1.FindingStateOpen, "")
}

func TestTheVerdictOnAMaskedSecretOutlivesAnEarlierImporter(t *testing.T) {
	ns := beside(t, storing)
	g := NewWithT(t)
	f := secretInBase(ns, "f-1", marked)
	issue := inPullRequest("i-1", f)
	env.Create(t, issue)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	env.Create(t, f)
	for _, evidence := range []string{marked, unmarked, marked} {
		env.Patch(t, f, `{"spec":{"evidence":"`+evidence+`"}}`)
		shows(t, "imported as "+evidence, f, v1alpha1.FindingStateOpenMuted, "i-1")
	}
	for _, tr := range f.Status.Transitions {
		g.Expect(tr.Type).To(BeElementOf(v1alpha1.TransitionCreated, v1alpha1.TransitionJudged))
	}
	g.Expect(f.Status.Transitions).To(HaveLen(2), "it was judged once")
}

func TestTheVerdictEndsWithTheDecisionAboutTheIssue(t *testing.T) {
	ns := beside(t, storing)
	f := inBase(ns, "f-1", "md5")
	issue := inPullRequest("i-1", f)
	env.Create(t, issue, f)
	ends := func(in time.Duration) {
		end := time.Now().Add(in).UTC().Format(time.RFC3339)
		env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted","expiresAt":"`+end+`"}}}`)
	}
	ends(time.Hour)
	shows(t, "the decision is in force", f, v1alpha1.FindingStateOpenMuted, "i-1")
	ends(3 * time.Second)
	shows(t, "the decision has ended", f, v1alpha1.FindingStateOpen, "")
}

// The scanner of the base branch may report another of its names than that of the pull request.
func TestTheVerdictStaysUnderAnotherNameOfTheTool(t *testing.T) {
	ns := beside(t, storing)
	f := inBase(ns, "f-1", "md5")
	f.Spec.Tool = "Semgrep OSS"
	issue := inPullRequest("i-1", f)
	env.Create(t, issue, f)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	shows(t, "the tool is the same", f, v1alpha1.FindingStateOpenMuted, "i-1")
	env.Patch(t, f, `{"spec":{"tool":"Semgrep PRO"}}`)
	shows(t, "the tool has another name", f, v1alpha1.FindingStateOpenMuted, "i-1")
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"open"}}}`)
	shows(t, "the decision was taken back", f, v1alpha1.FindingStateOpen, "")
	other := inBase(ns, "f-2", "md5")
	other.Spec.Tool = "Semgrep OSS"
	env.Create(t, other)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	shows(t, "a job of the other name reports it too", f, v1alpha1.FindingStateOpenMuted, "i-1")
	shows(t, "so does this one", other, v1alpha1.FindingStateOpenMuted, "i-1")
	env.Patch(t, f, `{"spec":{"tool":"another"}}`)
	shows(t, "another tool", f, v1alpha1.FindingStateOpen, "")
}

// If two findings differ only in their lines, it is unknown which one the decision was about.
func TestNoFindingShowsADecisionThatMayBeAboutAnother(t *testing.T) {
	ns := beside(t, storing)
	f := inBase(ns, "f-1", "md5")
	issue := inPullRequest("i-1", f)
	env.Create(t, issue, f)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	shows(t, "it is alone", f, v1alpha1.FindingStateOpenMuted, "i-1")
	alike := inBase(ns, "f-2", "md5")
	alike.Spec.Details.Location.LineNumber = 90
	env.Create(t, alike)
	shows(t, "another is like it", f, v1alpha1.FindingStateOpen, "")
	shows(t, "it is like another", alike, v1alpha1.FindingStateOpen, "")
	env.Patch(t, alike, `{"spec":{"closed":{"at":"2026-01-01T00:00:00Z","scanID":"s-2"}}}`)
	shows(t, "it is alone again", f, v1alpha1.FindingStateOpenMuted, "i-1")

	was := inBase(ns, "f-3", "sha1")
	was.Spec.Details.Location.FilePath = "caf\uFFFD.c"
	issue = inPullRequest("i-3", was)
	env.Create(t, issue, was)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	env.Patch(t, was, `{"spec":{"details":{"location":{"filePath":"caf%E9.c"}}}}`)
	shows(t, "an earlier version gave its file another name", was, v1alpha1.FindingStateOpenMuted, "i-3")
	alike = inBase(ns, "f-4", "sha1")
	alike.Spec.Details.Location.FilePath = "caf%E8.c"
	env.Create(t, alike)
	shows(t, "and the same to the file of another", was, v1alpha1.FindingStateOpen, "")
	shows(t, "which may be the one", alike, v1alpha1.FindingStateOpen, "")
	issue = inPullRequest("i-4", was)
	env.Create(t, issue)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	shows(t, "a decision under its own name", was, v1alpha1.FindingStateOpenMuted, "i-4")
	env.Patch(t, was, `{"spec":{"closed":{"at":"2026-01-01T00:00:00Z","scanID":"s-2"}}}`)
	shows(t, "the decided one is closed", was, v1alpha1.FindingStateClosed, "")
	env.Patch(t, alike, `{"spec":{"details":{"title":"judged again"}}}`)
	shows(t, "so this one is another", alike, v1alpha1.FindingStateOpen, "")
	env.Patch(t, was, `{"spec":{"details":{"location":{"filePath":"caf�.c"}}}}`)
	shows(t, "which an earlier version closed", was, v1alpha1.FindingStateClosed, "")
	env.Patch(t, alike, `{"spec":{"details":{"title":"and again"}}}`)
	shows(t, "this one is another all the same", alike, v1alpha1.FindingStateOpen, "")
}

// A scanner's account may write the key of any finding into an issue that a user has decided about.
func TestAVerdictFollowsOnlyFromAnIssueThatShowsTheFindingsResult(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(*v1alpha1.Finding, *v1alpha1.ReviewIssue)
		taken  bool
	}{
		{"the issue shows the result", func(*v1alpha1.Finding, *v1alpha1.ReviewIssue) {}, true},
		{"code moves", func(_ *v1alpha1.Finding, i *v1alpha1.ReviewIssue) { i.Spec.Line = 90 }, true},
		{"a review that does not exist has no repository", func(_ *v1alpha1.Finding, i *v1alpha1.ReviewIssue) { i.Spec.ReviewRef.Name = "absent" }, true},
		{"a lower severity", func(_ *v1alpha1.Finding, i *v1alpha1.ReviewIssue) { i.Spec.Severity = v1alpha1.LevelHigh }, true},
		{"a higher severity", func(f *v1alpha1.Finding, _ *v1alpha1.ReviewIssue) { f.Spec.Details.Severity = v1alpha1.LevelHigh }, false},
		{"a higher severity of a confirmed problem", func(f *v1alpha1.Finding, i *v1alpha1.ReviewIssue) {
			f.Spec.Details.Severity, i.Spec.Triage.UserStatus = v1alpha1.LevelHigh, v1alpha1.UserStatusActive
		}, true},
		{"an issue of an earlier version, which rated otherwise", func(f *v1alpha1.Finding, i *v1alpha1.ReviewIssue) {
			f.Spec.Details.Severity, i.Spec.Result.Evidence = v1alpha1.LevelHigh, ""
		}, true},
		{"the same masked code", func(f *v1alpha1.Finding, i *v1alpha1.ReviewIssue) {
			f.Spec.Evidence, i.Spec.Result.Evidence = "message.dummy....masked", "message.dummy....masked"
		}, true},
		{"masked code that an earlier version did not store", func(f *v1alpha1.Finding, i *v1alpha1.ReviewIssue) {
			f.Spec.Evidence, i.Spec.Result.Evidence = "message.dummy....masked", "message"
		}, true},
		{"other masked code", func(f *v1alpha1.Finding, i *v1alpha1.ReviewIssue) {
			f.Spec.Evidence, i.Spec.Result.Evidence = "message.real....masked", "message.dummy....masked"
		}, false},
		{"other masked code of a confirmed problem", func(f *v1alpha1.Finding, i *v1alpha1.ReviewIssue) {
			f.Spec.Evidence, i.Spec.Result.Evidence = "message.real....masked", "message.dummy....masked"
			i.Spec.Triage.UserStatus = v1alpha1.UserStatusActive
		}, false},
		{"another tool", func(_ *v1alpha1.Finding, i *v1alpha1.ReviewIssue) { i.Spec.Result.Tool = "another" }, false},
		{"another rule", func(_ *v1alpha1.Finding, i *v1alpha1.ReviewIssue) { i.Spec.Result.RuleID = "another" }, false},
		{"another file", func(_ *v1alpha1.Finding, i *v1alpha1.ReviewIssue) { i.Spec.File = "another.go" }, false},
		{"a vulnerability", func(_ *v1alpha1.Finding, i *v1alpha1.ReviewIssue) {
			i.Spec.Result.Vulnerability = &v1alpha1.FindingVulnerability{ID: "CVE-1"}
		}, false},
		{"another package", func(f *v1alpha1.Finding, i *v1alpha1.ReviewIssue) {
			f.Spec.Package, i.Spec.Result.Package = &v1alpha1.FindingPackage{Name: "ssl"}, &v1alpha1.FindingPackage{Name: "zlib"}
		}, false},
		{"the review of another repository", func(f *v1alpha1.Finding, _ *v1alpha1.ReviewIssue) { f.Spec.RepositoryRef.Name = "another" }, false},
	} {
		f := inBase("org-x", "f", "md5")
		issue := inPullRequest("i-1", f)
		issue.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted
		c.change(f, issue)
		issue.Spec.Result.Key = fingerprints.Key(&f.Spec)
		r := listing(func(into client.ObjectList, _ string) {
			switch into := into.(type) {
			case *v1alpha1.ReviewIssueList:
				into.Items = []v1alpha1.ReviewIssue{*issue}
			case *v1alpha1.FindingList:
				into.Items = []v1alpha1.Finding{*f}
			}
		})
		judge, err := r.judge(t.Context(), "org-x", time.Now())
		harness.Must(t, err)
		verdict, err := judge.ofReviews(t.Context(), f)
		harness.Must(t, err)
		harness.Same(t, c.reason+": the finding takes the decision", c.taken, verdict != nil)
	}
}

// With the code in the key, only the line distinguishes a masked secret from others in the file.
func TestAVerdictFollowsUnderTheOtherMarkOnlyForTheSameSecret(t *testing.T) {
	at := func(line int32, name, evidence string) *v1alpha1.Finding {
		f := secretInBase("org-x", name, evidence)
		f.Spec.Details.Location.LineNumber = line
		return f
	}
	shown := at(7, "f", unmarked)
	shown.Spec.Details.Code = "dummy"
	for _, c := range []struct {
		reason, decided string
		finding         *v1alpha1.Finding
		others          []*v1alpha1.Finding
		taken           bool
	}{
		{"an earlier version imported the finding", marked, at(7, "f", unmarked), nil, true},
		{"an earlier version imported the issue", unmarked, at(7, "f", marked), nil, true},
		{"and the finding is elsewhere", marked, at(90, "f", unmarked), nil, false},
		{"and the issue is elsewhere", unmarked, at(90, "f", marked), nil, false},
		{"the finding has other code", marked, at(7, "f", "message.real..5"), nil, false},
		{"the issue has other code", "message.real..5", at(7, "f", marked), nil, false},
		{"the issue's code is not stored", "message...5", at(7, "f", unmarked), nil, false},
		{"the finding's code is stored, so it is no secret's", marked, shown, nil, false},
		{"another is alike elsewhere", marked, at(7, "f", unmarked), []*v1alpha1.Finding{at(90, "f-2", unmarked)}, true},
		{"another is alike at the place", marked, at(7, "f", unmarked), []*v1alpha1.Finding{at(7, "f-2", unmarked)}, false},
		{"another of the new version is at the place", marked, at(7, "f", unmarked), []*v1alpha1.Finding{at(7, "f-2", marked)}, false},
		{"its own issue decides, and the new version imports one alike elsewhere", unmarked, at(7, "f", unmarked), []*v1alpha1.Finding{at(90, "f-2", marked)}, true},
		{"its own issue decides, and an earlier version imported one at the place", marked, at(7, "f", marked), []*v1alpha1.Finding{at(7, "f-2", unmarked)}, false},
		{"of two in one resource one was imported by an earlier version", "message.dummy.res.5..masked", at(90, "f", "message.dummy.res.5..masked"), []*v1alpha1.Finding{at(7, "f-2", "message.dummy.res.5")}, false},
		{"another of the earlier version is alike", unmarked, at(7, "f", marked), []*v1alpha1.Finding{at(90, "f-2", unmarked)}, false},
	} {
		issue := inPullRequest("i-1", at(7, "decided", c.decided))
		issue.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted
		r := listing(func(into client.ObjectList, selected string) {
			_, value, _ := strings.Cut(selected, "=")
			switch into := into.(type) {
			case *v1alpha1.ReviewIssueList:
				if slices.Contains(decidedKeyOf(issue), value) {
					into.Items = []v1alpha1.ReviewIssue{*issue}
				}
			case *v1alpha1.FindingList:
				for _, f := range append(c.others, c.finding) {
					if slices.Contains(referencesOf(f), value) {
						into.Items = append(into.Items, *f)
					}
				}
			}
		})
		judge, err := r.judge(t.Context(), "org-x", time.Now())
		harness.Must(t, err)
		var verdict *v1alpha1.FindingVerdict
		for _, f := range append(c.others, c.finding) { // those judged first share the cache
			verdict, err = judge.ofReviews(t.Context(), f)
			harness.Must(t, err)
		}
		harness.Same(t, c.reason+": the finding takes the decision", c.taken, verdict != nil)
	}
}

// listing returns a Reconciler whose cache answers lists with the function, which gets the selector of fields, too. The
// cache holds a review, of the repository of the builder's findings.
func listing(list func(into client.ObjectList, selected string)) *Reconciler {
	c := interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			review, asked := into.(*v1alpha1.Review)
			if !asked || key.Name != "review" {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			review.Spec.RepositoryRef.Name = "repo"
			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			selected := ""
			if by := (&client.ListOptions{}).ApplyOptions(options).FieldSelector; by != nil {
				selected = by.String()
			}
			list(into, selected)
			return nil
		},
	})
	return &Reconciler{Base: reconcile.Base{Client: c, Clock: clock.RealClock{}}}
}

// Thousands of results may differ only in their line. Judging them reads them, and the closed ones that may share an
// earlier key, once, not once per finding.
func TestFindingsAlikeAreReadOnce(t *testing.T) {
	f := inBase("org-x", "f", "md5")
	issue := inPullRequest("i-1", f)
	issue.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted
	read := map[string]int{}
	r := listing(func(into client.ObjectList, _ string) {
		read[fmt.Sprintf("%T", into)]++
		switch into := into.(type) {
		case *v1alpha1.ReviewIssueList:
			into.Items = []v1alpha1.ReviewIssue{*issue}
		case *v1alpha1.FindingList:
			for i := range 100 {
				alike := *f
				alike.Name = fmt.Sprint("f-", i)
				into.Items = append(into.Items, alike)
			}
			alone := *f
			alone.Name, alone.Spec.ProjectRef.Name = "alone", "another"
			into.Items = append(into.Items, alone)
		}
	})
	g := NewWithT(t)
	got, err := r.outdatedVerdictsOf(t.Context(), "org-x", resultOf(f))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(ConsistOf(HaveField("Name", "alone")))
	g.Expect(read).To(Equal(map[string]int{"*v1alpha1.FindingList": 3, "*v1alpha1.ReviewIssueList": 1, "*v1alpha1.TriagePolicyList": 1}))
}

// Its own reconcile reports the panic.
func TestAPanicOverOneFindingLeavesTheOthersJudged(t *testing.T) {
	broken, other, same := inBase("org-x", "broken", "md5"), inBase("org-x", "other", "sha1"), inBase("org-x", "same", "sha1")
	other.Status.Verdict = &v1alpha1.FindingVerdict{Policy: "gone", UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted)}
	r := listing(func(into client.ObjectList, selected string) {
		if list, asked := into.(*v1alpha1.FindingList); asked {
			list.Items = []v1alpha1.Finding{*broken, *other, *same}
		}
		if _, asked := into.(*v1alpha1.ReviewIssueList); asked && strings.Contains(selected, resultOf(broken)) {
			panic("no such result")
		}
	})
	got, err := r.outdatedVerdicts(t.Context(), "org-x", nil)
	harness.Must(t, err)
	NewWithT(t).Expect(got).To(ConsistOf(HaveField("Name", "broken"), HaveField("Name", "other")))
}

// While the findings of a decided result are judged, an import adds and closes many more: they wait for one more
// judgement, and no other event waits for it.
func TestFindingsAlikeAreRejudgedTogether(t *testing.T) {
	began, goOn := make(chan string), make(chan bool)
	r := listing(func(into client.ObjectList, selected string) {
		switch into := into.(type) {
		case *v1alpha1.ReviewIssueList: // the result was decided about, whichever it is
			into.Items = make([]v1alpha1.ReviewIssue, 1)
		case *v1alpha1.FindingList:
			began <- selected
			<-goOn
		}
	})
	h := r.rejudgeAlike(t.Context())
	of := func(f *v1alpha1.Finding) string { return referencesIndex + "=" + isResult + resultOf(f) }
	md5, sha1, other := inBase("org-x", "f-1", "md5"), inBase("org-x", "f-2", "sha1"), inBase("org-x", "f-3", "md4")
	closed := sha1.DeepCopy()
	closed.Spec.Closed = &v1alpha1.FindingClosure{}

	h.Create(t.Context(), event.CreateEvent{Object: md5}, nil)
	got := []string{<-began}
	for range 100 {
		h.Create(t.Context(), event.CreateEvent{Object: md5}, nil)
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: sha1, ObjectNew: closed}, nil)
	}
	h.Create(t.Context(), event.CreateEvent{Object: other}, nil)
	goOn <- true
	for got[len(got)-1] != of(other) {
		got = append(got, <-began)
		goOn <- true
	}
	NewWithT(t).Expect(got).To(Equal([]string{of(md5), of(md5), of(sha1), of(other)}))
}
