package findingstate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var now = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func finding() *v1alpha1.Finding {
	return &v1alpha1.Finding{
		ObjectMeta: metav1.ObjectMeta{Name: "f-1", Generation: 1},
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"},
			ProjectRef:    v1alpha1.ProjectReference{Name: "shop-api"},
			Tool:          "gosec",
			Details: v1alpha1.FindingDetails{
				Title: "SQL injection", Severity: v1alpha1.LevelHigh,
				Location: &v1alpha1.FileLocation{FilePath: "main.go", URL: "https://code.example/blob/abc/main.go"},
			},
			Triage: v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen},
		},
	}
}

// reconcile updates the status like the controller.
func reconcile(f *v1alpha1.Finding, now time.Time) {
	f.Status = findingstate.Observe(f, nil, now)
	f.Status.EmittedSeq = findingstate.History(&f.Status).LastSeq()
}

func TestAFindingsStateFollowsFromItsSpec(t *testing.T) {
	closure := &v1alpha1.FindingClosure{At: v1alpha1.NewTime(now)}
	cases := []struct {
		reason string
		closed *v1alpha1.FindingClosure
		user   v1alpha1.UserStatus
		want   v1alpha1.FindingState
	}{
		{"nobody has triaged", nil, v1alpha1.UserStatusOpen, v1alpha1.FindingStateOpen},
		{"absent means open", nil, "", v1alpha1.FindingStateOpen},
		{"a confirmed finding is open", nil, v1alpha1.UserStatusActive, v1alpha1.FindingStateOpen},
		{"a muted finding is open_muted", nil, v1alpha1.UserStatusMuted, v1alpha1.FindingStateOpenMuted},
		{"the scanner's word that it is gone comes first", closure, v1alpha1.UserStatusMuted, v1alpha1.FindingStateClosed},
		{"closed", closure, v1alpha1.UserStatusOpen, v1alpha1.FindingStateClosed},
	}
	for _, c := range cases {
		f := &v1alpha1.Finding{Spec: v1alpha1.FindingSpec{Closed: c.closed, Triage: v1alpha1.FindingTriage{UserStatus: c.user}}}
		harness.Same(t, c.reason, c.want, findingstate.State(f))
		want := c.want
		if want == v1alpha1.FindingStateOpen {
			want = v1alpha1.FindingStateOpenMuted
		}
		f.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: v1alpha1.SuppressionInSource}
		harness.Same(t, c.reason+", and the source suppresses it", want, findingstate.State(f))
	}
}

func TestEachChangeOfTheSpecIsRecorded(t *testing.T) {
	type transition struct {
		Type         v1alpha1.TransitionType
		From, To, By string
	}
	cases := []struct {
		name, reason string
		before       func(*v1alpha1.Finding)
		change       func(*v1alpha1.Finding)
		want         []transition
	}{{
		name: "muted", reason: "a decision is recorded with who took it",
		change: func(f *v1alpha1.Finding) {
			f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "ann"}
		},
		want: []transition{{v1alpha1.TransitionTriaged, "open", "muted", "ann"}},
	}, {
		name: "commented", reason: "a comment alone is a triage too",
		change: func(f *v1alpha1.Finding) { f.Spec.Triage.Comments, f.Spec.Triage.By = "why", "ann" },
		want:   []transition{{v1alpha1.TransitionTriaged, "open", "open", "ann"}},
	}, {
		name: "closed", reason: "a scan no longer reports it",
		change: func(f *v1alpha1.Finding) { f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(now)} },
		want:   []transition{{v1alpha1.TransitionClosed, "open", "closed", "scanner/gosec"}},
	}, {
		name: "reopened muted", reason: "a finding that returns keeps its triage",
		before: func(f *v1alpha1.Finding) {
			f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(now)}
			f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted
		},
		change: func(f *v1alpha1.Finding) { f.Spec.Closed = nil },
		want:   []transition{{v1alpha1.TransitionReopened, "closed", "open_muted", "scanner/gosec"}},
	}, {
		name: "updated", reason: "a fact has changed",
		change: func(f *v1alpha1.Finding) { f.Spec.Details.Severity = v1alpha1.LevelLow },
		want:   []transition{{v1alpha1.TransitionUpdated, "open", "open", "scanner/gosec"}},
	}, {
		name: "new commit", reason: "what says only which scan wrote last is no change of the finding",
		before: func(f *v1alpha1.Finding) {
			f.Spec.Details.SupportingFiles = []v1alpha1.FileLocation{{FilePath: "db.go", URL: "https://code.example/blob/abc/db.go"}}
		},
		change: func(f *v1alpha1.Finding) {
			f.Spec.CommitHash, f.Spec.Evidence = "def", "message.code"
			f.Spec.Details.Location.URL = "https://code.example/blob/def/main.go"
			f.Spec.Details.SupportingFiles[0].URL = "https://code.example/blob/def/db.go"
			f.Spec.Scan = &v1alpha1.FindingScan{ScanID: "scan-2"}
		},
	}, {
		name: "triaged and closed at once", reason: "each change between two reconciles is recorded, the scanner's first",
		change: func(f *v1alpha1.Finding) {
			f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusActive, By: "ann"}
			f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(now)}
		},
		want: []transition{
			{v1alpha1.TransitionClosed, "open", "closed", "scanner/gosec"},
			{v1alpha1.TransitionTriaged, "open", "active", "ann"},
		},
	}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := finding()
			if c.before != nil {
				c.before(f)
			}
			reconcile(f, now)
			seq := findingstate.History(&f.Status).LastSeq()

			c.change(f)
			f.Generation++
			reconcile(f, now.Add(time.Minute))

			var got []transition
			for _, tr := range f.Status.Transitions {
				if tr.Seq > seq {
					got = append(got, transition{tr.Type, tr.From, tr.To, tr.By})
				}
			}
			harness.Same(t, c.reason, c.want, got)
		})
	}
}

func TestATransitionNamesTheScanThatMadeIt(t *testing.T) {
	long := strings.Repeat("s", 129)
	scanned := func(scan, closedBy string) func(*v1alpha1.Finding) {
		return func(f *v1alpha1.Finding) {
			f.Spec.Scan = &v1alpha1.FindingScan{ScanID: scan}
			if closedBy != "" {
				f.Spec.Closed = &v1alpha1.FindingClosure{ScanID: closedBy}
			}
		}
	}
	cases := []struct {
		reason         string
		before, change func(*v1alpha1.Finding)
		want           string
	}{
		{"created", func(*v1alpha1.Finding) {}, scanned("s-1", ""), "created s-1"},
		{"created by nobody's scan", func(*v1alpha1.Finding) {}, func(*v1alpha1.Finding) {}, "created "},
		{"there is no room for a name so long", func(*v1alpha1.Finding) {}, scanned(long, ""), "created "},
		{"there is just room for one a character shorter", func(*v1alpha1.Finding) {}, scanned(long[1:], ""), "created " + long[1:]},
		{"updated", scanned("s-1", ""), func(f *v1alpha1.Finding) {
			scanned("s-2", "")(f)
			f.Spec.Details.Title = "another"
		}, "updated s-2"},
		{"closed by the scan that no longer reports it, not by the last that did", scanned("s-1", ""), scanned("s-1", "s-2"), "closed s-2"},
		{"reopened", scanned("s-1", "s-2"), func(f *v1alpha1.Finding) {
			scanned("s-3", "")(f)
			f.Spec.Closed = nil
		}, "reopened s-3"},
		{"triaged by a person, whatever scan was last", scanned("s-1", ""), func(f *v1alpha1.Finding) {
			f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted
		}, "triaged "},
	}
	for _, c := range cases {
		f := finding()
		c.before(f)
		if !strings.HasPrefix(c.want, "created") {
			reconcile(f, now)
		}
		c.change(f)
		f.Generation++
		reconcile(f, now)
		last := f.Status.Transitions[len(f.Status.Transitions)-1]
		harness.Same(t, c.reason, c.want, string(last.Type)+" "+last.Scan)
	}
}

func TestATriageKeepsWhatItHasRoomForOfTheComment(t *testing.T) {
	cases := []struct{ reason, comment, want string }{
		{"none", "", ""},
		{"as long as may be, in characters and not in bytes", strings.Repeat("ä", 128), strings.Repeat("ä", 128)},
		{"a character more", strings.Repeat("ä", 129), strings.Repeat("ä", 118) + " ... [cut]"},
	}
	for _, c := range cases {
		f := finding()
		f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, Comments: c.comment}
		reconcile(f, now)
		harness.Same(t, c.reason, c.want, f.Status.Transitions[1].Comment)
	}
}

func TestASuppressionKeepsWhatItHasRoomForOfTheJustification(t *testing.T) {
	f := finding()
	f.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: "external", Justification: strings.Repeat("ä", 128)}
	reconcile(f, now)
	harness.Same(t, "comment", "external: "+strings.Repeat("ä", 108)+" ... [cut]", f.Status.Transitions[1].Comment)
}

func TestTheHistoryOfAFindingThatIsCreatedTriagedHasBoth(t *testing.T) {
	f := finding()
	f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "ann"}
	reconcile(f, now)
	var got []string
	for _, tr := range f.Status.Transitions {
		got = append(got, fmt.Sprintf("%d %s %s>%s", tr.Seq, tr.Type, tr.From, tr.To))
	}
	harness.Same(t, "a finding that is created triaged has both in its history",
		[]string{"1 created >open_muted", "2 triaged open>muted"}, got)
}

func TestADecisionWaitsUntilTheStatusRecordsIt(t *testing.T) {
	cases := []struct {
		reason         string
		before, change func(*v1alpha1.Finding)
		want           bool
	}{
		{"a scanner created it", nil, func(*v1alpha1.Finding) {}, false},
		{"it was created with a decision", nil, func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted }, true},
		{"it was created with a comment", nil, func(f *v1alpha1.Finding) { f.Spec.Triage.Comments = "why" }, true},
		{"it is recorded", func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted }, func(*v1alpha1.Finding) {}, false},
		{"a scanner changed it", func(*v1alpha1.Finding) {}, func(f *v1alpha1.Finding) { f.Spec.Details.Title = "another" }, false},
		{"a decision was made", func(*v1alpha1.Finding) {}, func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusActive }, true},
		{"a decision was taken back", func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted },
			func(f *v1alpha1.Finding) { f.Spec.Triage = v1alpha1.FindingTriage{} }, true},
	}
	for _, c := range cases {
		f := finding()
		if c.before != nil {
			c.before(f)
			reconcile(f, now)
		}
		c.change(f)
		harness.Same(t, c.reason, c.want, findingstate.DecisionWaits(f))
	}
}

func TestAnUnchangedSpecChangesNoStatus(t *testing.T) {
	f := finding()
	reconcile(f, now)
	harness.Same(t, "a reconcile without a change must lead to no write", f.Status, findingstate.Observe(f, nil, now.Add(time.Hour)))
}

// Whatever happens to a finding, its history has no gaps, its time does not decrease, and the last
// recorded state is the current one.
func TestHistoryIsGaplessUnderAnyChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, clock := finding(), now
		reconcile(f, clock)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			before := f.Status.DeepCopy()
			clock = clock.Add(time.Duration(rapid.IntRange(-5, 90).Draw(t, "seconds")) * time.Second)
			f.Generation++
			mutate(t, f)
			reconcile(f, clock)

			if f.Status.UpdatedAt.Before(before.UpdatedAt) {
				t.Fatalf("updatedAt went back from %s to %s", before.UpdatedAt, f.Status.UpdatedAt)
			}
			if n := len(f.Status.Transitions); n > v1alpha1.MaxTransitions {
				t.Fatalf("keeps %d transitions, more than %d", n, v1alpha1.MaxTransitions)
			}
			for i := 1; i < len(f.Status.Transitions); i++ {
				if f.Status.Transitions[i].Seq != f.Status.Transitions[i-1].Seq+1 {
					t.Fatalf("gap in the history: %+v", f.Status.Transitions)
				}
			}
			harness.Same(t, "state", findingstate.State(f), f.Status.State)
			stateChanged := before.State != f.Status.State || before.UserStatus != f.Status.UserStatus
			if stateChanged && findingstate.History(&f.Status).LastSeq() == findingstate.History(before).LastSeq() {
				t.Fatalf("state went from %s/%s to %s/%s and no transition was recorded",
					before.State, before.UserStatus, f.Status.State, f.Status.UserStatus)
			}
		}
	})
}

func mutate(t *rapid.T, f *v1alpha1.Finding) {
	switch rapid.IntRange(0, 7).Draw(t, "change") {
	case 7:
		end := v1alpha1.NewTime(now.Add(time.Duration(rapid.IntRange(-1, 5).Draw(t, "minutes")) * time.Minute))
		f.Spec.Triage.ExpiresAt = rapid.SampledFrom([]*v1alpha1.Time{nil, &end}).Draw(t, "end")
	case 5:
		f.Spec.Suppression = rapid.SampledFrom([]*v1alpha1.FindingSuppression{nil, {Kind: "inSource"}, {Kind: "external"}}).Draw(t, "suppression")
	case 6:
		f.Spec.Details.Severity = rapid.SampledFrom([]v1alpha1.Level{"high", "low"}).Draw(t, "severity")
	case 0:
		f.Spec.Triage.UserStatus = rapid.SampledFrom([]v1alpha1.UserStatus{"", "open", "active", "muted"}).Draw(t, "user status")
	case 1:
		f.Spec.Triage.Comments = rapid.SampledFrom([]string{"", "false positive"}).Draw(t, "comments")
	case 2:
		f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(now)}
	case 3:
		f.Spec.Closed = nil
	case 4:
		f.Spec.Details.Title = rapid.SampledFrom([]string{"one", "two"}).Draw(t, "title")
	}
}
