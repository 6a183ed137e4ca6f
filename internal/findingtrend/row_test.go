package findingtrend

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// noon of the day that most tests are about.
var noon = time.Date(2026, time.March, 10, 12, 0, 0, 0, time.UTC)

const today = v1alpha1.Day("2026-03-10")

func days(n int) time.Time { return noon.AddDate(0, 0, n) }

// finding returns a finding of low severity that was detected that many days ago.
func finding(daysAgo int, change func(*v1alpha1.Finding), history ...v1alpha1.Transition) v1alpha1.Finding {
	b := builder.Finding("f").DetectedAt(days(-daysAgo))
	if change != nil {
		b.Mutate(change)
	}
	f := *b.Build()
	f.Status.Transitions = history
	return f
}

func did(kind v1alpha1.TransitionType, at time.Time, from, to string) v1alpha1.Transition {
	return v1alpha1.Transition{Type: kind, At: v1alpha1.NewTime(at), From: from, To: to}
}

func closed(f *v1alpha1.Finding) {
	f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(noon)}
}

func muted(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted }

func mutedByPolicy(f *v1alpha1.Finding) {
	f.Status.Verdict = &v1alpha1.FindingVerdict{Policy: "p", UserStatus: "muted"}
}

func confirmed(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusActive }

func suppressed(f *v1alpha1.Finding) {
	f.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: "inSource"}
}

func rated(severity v1alpha1.Level, score string) func(*v1alpha1.Finding) {
	return func(f *v1alpha1.Finding) { f.Spec.Details.Severity, f.Spec.Details.Score = severity, score }
}

func TestARowCountsWhatIsOpenAndWhatHappenedOnItsDay(t *testing.T) {
	findings := []v1alpha1.Finding{
		finding(3, rated("high", "9.0")),
		finding(1, rated("high", "8.9")),
		finding(0, rated("medium", "9.9")),
		finding(20, closed, did("created", days(-20), "", "open"), did("closed", noon, "open", "closed")),
		finding(9, closed, did("closed", days(-1), "open", "closed")),
		finding(30, muted, did("triaged", noon, "open", "muted")),
		finding(30, muted, did("triaged", days(-2), "open", "muted")),
		finding(50, suppressed, did("suppressed", noon, "open", "open_muted")),
		finding(50, suppressed, did("suppressed", days(-9), "open", "open_muted"), did("suppressed", noon, "open_muted", "open_muted")),
		finding(7, nil, did("closed", days(-3), "open", "closed"), did("reopened", noon, "closed", "open")),
		finding(30, mutedByPolicy, did("judged", noon, "open", "muted")),
		finding(30, mutedByPolicy, did("judged", days(-2), "open", "muted"), did("judged", noon, "muted", "muted")),
		finding(30, muted, did("judged", days(-2), "open", "muted"), did("triaged", noon, "open", "muted")),
		finding(30, mutedByPolicy, did("triaged", days(-2), "open", "muted"), did("triaged", noon, "muted", "open"),
			did("judged", noon, "open", "muted")),
		finding(30, func(f *v1alpha1.Finding) { muted(f); closed(f) }, did("triaged", days(-5), "open", "muted"),
			did("closed", days(-3), "open_muted", "closed"), did("triaged", noon, "muted", "muted")),
	}
	want := v1alpha1.FindingTrendDay{
		Day: today, Open: v1alpha1.FindingTrendOpen{Critical: 1, High: 2, Medium: 1, Low: 1}, OpenMuted: 8,
		Opened: 2, Closed: 1, Muted: 3,
		Age:         &v1alpha1.FindingTrendSpread{Median: 1, P90: 7, Sample: []int32{0, 1, 3, 7}},
		TimeToClose: &v1alpha1.FindingTrendSpread{Median: 20, P90: 20, Sample: []int32{20}},
	}
	harness.Same(t, "row", want, Row(today, findings, noon))
}

func TestMidnightBelongsToTheNewDay(t *testing.T) {
	midnight, yesterday := Start(today), Plus(today, -1)
	fixed := *builder.Finding("fixed").DetectedAt(midnight).Mutate(closed).Build()
	fixed.Status.Transitions = []v1alpha1.Transition{did("closed", midnight, "open", "closed")}
	findings := []v1alpha1.Finding{fixed, *builder.Finding("open").DetectedAt(midnight).Build()}
	for of, want := range map[v1alpha1.Day][3]int32{yesterday: {0, 0, 0}, today: {2, 1, 1}} {
		row := Row(of, findings, midnight)
		harness.Same(t, "opened, closed and open on "+string(of), want, [3]int32{row.Opened, row.Closed, Open(&row)})
	}
}

// After a restore all muted findings are muted from their creation on.
func TestARestoredFindingIsNotMutedOnTheDayOfTheRestore(t *testing.T) {
	var findings []v1alpha1.Finding
	for _, mute := range []func(*v1alpha1.Finding){muted, suppressed, mutedByPolicy} {
		for _, detected := range []int{60, 1, 0} {
			f := finding(detected, mute)
			f.CreationTimestamp, f.Generation = metav1.NewTime(noon), 1
			verdict := f.Status.Verdict
			f.Status = v1alpha1.FindingStatus{}
			f.Status = findingstate.Observe(&f, verdict, noon.Add(time.Minute))
			findings = append(findings, f)
		}
	}
	row := Row(today, findings, noon.Add(time.Hour))
	harness.Same(t, "muted in all, opened and muted today", [3]int32{9, 3, 6}, [3]int32{row.OpenMuted, row.Opened, row.Muted})
}

func TestThePastIsReadFromWhatStatusesKeep(t *testing.T) {
	judged := did("judged", days(-5), "open", "muted")
	for _, c := range []struct {
		reason  string
		finding v1alpha1.Finding
		want    v1alpha1.FindingState
	}{
		{"detected later", finding(0, nil), ""},
		{"nothing has happened since", finding(9, muted, did("triaged", days(-5), "open", "muted")), "open_muted"},
		{"closed since", finding(9, closed, did("closed", noon, "open", "closed")), "open"},
		{"reopened since", finding(9, nil, did("reopened", noon, "closed", "open")), "closed"},
		{"muted since", finding(9, muted, did("triaged", noon, "open", "muted")), "open"},
		{"the decision has ended since", finding(9, nil, did("expired", noon, "muted", "open")), "open_muted"},
		{"a policy has let it go since", finding(9, nil, did("judged", noon, "muted", "open")), "open_muted"},
		{"suppressed since", finding(9, suppressed, did("suppressed", noon, "open", "open_muted")), "open"},
		{"suppressed for another reason since", finding(9, suppressed, did("suppressed", days(-5), "open", "open_muted"),
			did("suppressed", noon, "open_muted", "open_muted")), "open_muted"},
		{"no longer suppressed since", finding(9, nil, did("unsuppressed", noon, "open_muted", "open")), "open_muted"},
		{"muted and closed since", finding(9, func(f *v1alpha1.Finding) { muted(f); closed(f) },
			did("triaged", noon, "open", "muted"), did("closed", noon, "open_muted", "closed")), "open"},
		{"suppressed for another reason and confirmed since", finding(9, func(f *v1alpha1.Finding) { suppressed(f); confirmed(f) },
			did("suppressed", days(-5), "open", "open_muted"), did("triaged", noon, "open", "active"),
			did("suppressed", noon, "open_muted", "open_muted")), "open_muted"},
		{"muted by a verdict, closed since", finding(9, closed, judged, did("closed", noon, "open_muted", "closed")), "open_muted"},
		{"muted by a verdict that is no longer kept, closed since", finding(9, closed,
			did("closed", noon, "open_muted", "closed")), "open_muted"},
		{"muted by a verdict, confirmed since", finding(9, confirmed, judged, did("triaged", noon, "open", "active")), "open_muted"},
		{"muted by a verdict, confirmed and closed since", finding(9, func(f *v1alpha1.Finding) { confirmed(f); closed(f) }, judged,
			did("triaged", noon, "open", "active"), did("closed", noon, "open", "closed")), "open_muted"},
		{"muted by a verdict and commented, confirmed since", finding(9, confirmed, judged,
			did("triaged", days(-4), "open", "open"), did("triaged", noon, "open", "active")), "open_muted"},
		{"a verdict followed the end of a decision, confirmed since", finding(9, confirmed,
			did("triaged", days(-7), "open", "active"), did("expired", days(-5), "active", "open"), judged,
			did("triaged", noon, "open", "active")), "open_muted"},
		{"a closure had ended the verdict", finding(9, closed, judged, did("closed", days(-4), "open_muted", "closed"),
			did("reopened", days(-3), "closed", "open"), did("closed", noon, "open", "closed")), "open"},
		{"a decision, withdrawn meanwhile, had ended the verdict", finding(9, muted, judged,
			did("triaged", days(-4), "open", "active"), did("triaged", days(-3), "active", "open"),
			did("triaged", noon, "open", "muted")), "open"},
	} {
		harness.Same(t, c.reason, c.want, stateAt(&c.finding, days(-1)))
	}
}

func TestRowsFollowTheLastOneWhereAnythingHappened(t *testing.T) {
	older := finding(30, rated("high", ""), did("updated", days(-20), "open", "open"))
	stored := Row(Plus(today, -3), []v1alpha1.Finding{older}, days(-3))
	closedSince := finding(30, func(f *v1alpha1.Finding) { rated("high", "")(f); closed(f) },
		did("closed", days(-1), "open", "closed"))
	at := func(created time.Time) func(*v1alpha1.Finding) {
		return func(f *v1alpha1.Finding) { f.CreationTimestamp = metav1.NewTime(created) }
	}
	shortlyBefore := *builder.Finding("before").DetectedAt(days(-3).Add(-time.Minute)).
		Mutate(at(days(-3).Add(-time.Second))).Build()
	for _, c := range []struct {
		reason   string
		last     *v1alpha1.FindingTrendDay
		findings []v1alpha1.Finding
		want     []v1alpha1.Day
	}{
		{"a project that never had a finding", nil, nil, nil},
		{"the first finding", nil, []v1alpha1.Finding{older}, []v1alpha1.Day{today}},
		{"nothing has happened for three days: it has grown older", &stored, []v1alpha1.Finding{older}, nil},
		{"one was closed while no controller ran", &stored, []v1alpha1.Finding{closedSince}, []v1alpha1.Day{Plus(today, -1)}},
		{"one came after the row was written, and one today", &stored, []v1alpha1.Finding{older,
			*builder.Finding("late").DetectedAt(days(-3).Add(time.Hour)).Build(), finding(0, nil)},
			[]v1alpha1.Day{Plus(today, -3), today}},
		{"one of a scan that began before the row was written came after it", &stored, []v1alpha1.Finding{older,
			*builder.Finding("late").DetectedAt(days(-3).Add(-time.Hour)).Mutate(at(days(-3))).Build()}, []v1alpha1.Day{Plus(today, -3)}},
		{"one of the day before came after the row was written", &stored, []v1alpha1.Finding{older,
			*builder.Finding("late").DetectedAt(days(-4)).Mutate(at(days(-3).Add(time.Minute))).Build()}, []v1alpha1.Day{Plus(today, -3)}},
		{"all were removed today", &stored, nil, []v1alpha1.Day{today}},
		{"all were removed today, and one came", &stored, []v1alpha1.Finding{finding(0, nil)}, []v1alpha1.Day{today}},
		{"one of two that came before the row was written was removed", new(Row(Plus(today, -3), []v1alpha1.Finding{
			older, shortlyBefore, shortlyBefore,
		}, days(-3))), []v1alpha1.Finding{older, shortlyBefore}, []v1alpha1.Day{today}},
		{"the clock has gone back", &v1alpha1.FindingTrendDay{Day: Plus(today, 1)}, []v1alpha1.Finding{older}, nil},
	} {
		var got []v1alpha1.Day
		for _, row := range Continue(c.last, days(-3), c.findings, noon) {
			got = append(got, row.Day)
		}
		harness.Same(t, c.reason, c.want, got)
	}
}

func TestARowThatWasCountedOnItsDayLosesNothingByLaterRemovals(t *testing.T) {
	counted := Row(Plus(today, -1), []v1alpha1.Finding{
		finding(9, closed, did("closed", days(-1), "open", "closed")), finding(1, nil), finding(1, nil),
	}, days(-1))
	late := builder.Finding("late").DetectedAt(days(-1).Add(time.Hour)).Build()
	rows := Continue(&counted, days(-1), []v1alpha1.Finding{*late}, noon)
	if len(rows) != 1 || rows[0].Opened != 2 || rows[0].Closed != 1 || rows[0].Open.Low != 1 || rows[0].TimeToClose == nil {
		t.Errorf("rows %+v", rows)
	}
	rows = Continue(&counted, days(-1), []v1alpha1.Finding{*late}, days(-1).Add(2*time.Hour))
	if len(rows) != 1 || rows[0].Opened != 2 || rows[0].Closed != 1 || rows[0].Open.Low != 1 || rows[0].TimeToClose == nil {
		t.Errorf("rows of the day itself %+v", rows)
	}
}

func TestASpreadSamplesEachTenth(t *testing.T) {
	var all []int32
	for i := range int32(1000) {
		all = append(all, 999-i)
	}
	want := &v1alpha1.FindingTrendSpread{Median: 499, P90: 899, Sample: []int32{50, 150, 250, 350, 450, 550, 650, 750, 850, 950}}
	harness.Same(t, "spread", want, Spread(all))
	if Spread(nil) != nil {
		t.Error("a spread of nothing")
	}
}

func TestEveryDayLiesInItsQuarter(t *testing.T) {
	for of, want := range map[v1alpha1.Day]v1alpha1.Quarter{
		"2026-01-01": "2026q1", "2026-03-31": "2026q1", "2026-04-01": "2026q2", "2026-09-30": "2026q3", "2026-12-31": "2026q4",
	} {
		got := QuarterOf(of)
		if end := EndOf(got); got != want || !Start(of).Before(end) || Start(of).AddDate(0, monthsOfQuarter, 0).Before(end) {
			t.Errorf("%s is in %s until %s, want %s", of, got, end, want)
		}
	}
	if EndOf("2026q4") != time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC) {
		t.Errorf("the year ends at %s", EndOf("2026q4"))
	}
}
