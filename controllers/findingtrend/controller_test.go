package findingtrend

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	trends "github.com/appsec-dev/findings-operator/internal/findingtrend"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// noon of a day in the last week of a quarter.
var noon = time.Date(2026, time.March, 30, 12, 0, 0, 0, time.UTC)

// room is a project with findings, and a controller with its own clock, which runs only when a test calls it.
type room struct {
	t         *testing.T
	namespace string
	project   *v1alpha1.Project
	clock     *clocktesting.FakePassiveClock
	r         *Reconciler
}

func newRoom(t *testing.T, project string) *room {
	t.Helper()
	room := &room{t: t, namespace: env.Namespace(t), clock: clocktesting.NewFakePassiveClock(noon)}
	room.project = builder.Project(project).In(room.namespace).Mutate(func(p *v1alpha1.Project) {
		p.Spec.DisplayName = ""
	}).Build()
	env.Create(t, room.project)
	room.r = &Reconciler{Base: reconcile.Base{Client: env.AsController(t), Clock: room.clock}}
	return room
}

func (r *room) reconcile() ctrl.Result {
	r.t.Helper()
	result, err := r.r.Reconcile(r.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r.project)})
	harness.Must(r.t, err)
	return result
}

func (r *room) later(by time.Duration) { r.clock.SetTime(r.clock.Now().Add(by)) }

// finds creates a finding at the current time.
func (r *room) finds(name string) *v1alpha1.Finding {
	r.t.Helper()
	f := builder.Finding(name).In(r.namespace).Project("repo", r.project.Name).DetectedAt(r.clock.Now())
	return testenv.Create(r.t, env, f.Build())
}

// closes closes the finding like a scan that no longer reports it, and records that like its
// controller.
func (r *room) closes(f *v1alpha1.Finding) {
	r.t.Helper()
	r.closesUnrecorded(f)
	r.records(f)
}

// closesUnrecorded closes the finding while its controller is behind.
func (r *room) closesUnrecorded(f *v1alpha1.Finding) {
	r.t.Helper()
	f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(r.clock.Now())}
	harness.Must(r.t, env.Client.Update(r.t.Context(), f))
}

// records records the closure of the finding like its controller.
func (r *room) records(f *v1alpha1.Finding) {
	r.t.Helper()
	at := f.Spec.Closed.At
	f.Status = v1alpha1.FindingStatus{ObservedGeneration: f.Generation, State: v1alpha1.FindingStateClosed,
		Transitions: []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionClosed, At: at, From: "open", To: "closed"}}}
	harness.Must(r.t, env.AsController(r.t).Status().Update(r.t.Context(), f))
}

// kept returns the project's trends, by name.
func (r *room) kept() map[string]v1alpha1.FindingTrend {
	r.t.Helper()
	list := testenv.List(r.t, NewWithT(r.t), env, &v1alpha1.FindingTrendList{}, client.InNamespace(r.namespace))
	out := map[string]v1alpha1.FindingTrend{}
	for _, trend := range list.Items {
		out[trend.Name] = trend
	}
	return out
}

// rows returns all rows as short texts: day, low, opened, closed.
func (r *room) rows() (out []string) {
	r.t.Helper()
	kept := r.kept()
	for _, name := range []string{"proj-2026q1", "proj-2026q2"} {
		for _, row := range kept[name].Spec.Days {
			out = append(out, fmt.Sprintf("%s open %d opened %d closed %d", row.Day, row.Open.Low, row.Opened, row.Closed))
		}
	}
	return out
}

func (r *room) wants(reason string, rows ...string) {
	r.t.Helper()
	harness.Same(r.t, reason, rows, r.rows())
}

func TestRowsAreKeptFromDayToDayAndQuarterToQuarter(t *testing.T) {
	r := newRoom(t, "proj")
	r.reconcile()
	r.wants("a project without findings has no history")
	first := r.finds("f-1")
	r.finds("f-2")
	r.reconcile()
	r.wants("the first day", "2026-03-30 open 2 opened 2 closed 0")

	written := r.kept()["proj-2026q1"]
	if owners := written.OwnerReferences; len(owners) != 1 || owners[0].UID != r.project.UID {
		t.Errorf("the owners are %+v, want the project", owners)
	}
	r.later(20 * time.Minute)
	r.closes(first)
	harness.Same(t, "when it comes back, within the hour", 40*time.Minute, r.reconcile().RequeueAfter)
	r.later(40 * time.Minute)
	r.reconcile()
	r.wants("an hour later", "2026-03-30 open 1 opened 2 closed 1")

	written = r.kept()["proj-2026q1"]
	r.later(26 * time.Hour)
	r.reconcile()
	harness.Same(t, "the version after a day without a change", written.ResourceVersion, r.kept()["proj-2026q1"].ResourceVersion)
	r.later(24 * time.Hour)
	r.finds("f-3")
	// Another process: it knows only what is stored.
	r.r = &Reconciler{Base: r.r.Base}
	r.reconcile()
	r.wants("a day of the next quarter", "2026-03-30 open 1 opened 2 closed 1", "2026-04-01 open 2 opened 1 closed 0")
	harness.Same(t, "the ages", []int32{0, 2}, r.kept()["proj-2026q2"].Spec.Days[0].Age.Sample)
}

func TestADayIsFinishedAfterItsEnd(t *testing.T) {
	r := newRoom(t, "proj")
	first := r.finds("f-1")
	r.clock.SetTime(noon.Add(11*time.Hour + 30*time.Minute))
	r.reconcile()
	r.later(20 * time.Minute)
	r.finds("f-2")
	r.closes(first)
	r.later(time.Hour)
	r.finds("f-3")
	r.reconcile()
	r.wants("after midnight", "2026-03-30 open 1 opened 2 closed 1", "2026-03-31 open 2 opened 1 closed 0")
}

// All controllers were down over midnight, and the status of the finding is recorded only some time after their start.
func TestWhatHappenedWhileNoControllerRanCountsOnItsDay(t *testing.T) {
	r := newRoom(t, "proj")
	first := r.finds("f-1")
	r.finds("f-2")
	r.reconcile()
	r.later(2 * time.Hour)
	r.closesUnrecorded(first)
	r.later(36 * time.Hour)
	harness.Same(t, "when it comes back, before the status is recorded", gatherDelay, r.reconcile().RequeueAfter)
	r.records(first)
	r.later(2 * time.Hour)
	r.reconcile()
	r.wants("the closure is on its day", "2026-03-30 open 1 opened 2 closed 1")
}

func TestAStatusThatCannotBeStoredDoesNotEndTheRows(t *testing.T) {
	r := newRoom(t, "proj")
	r.closesUnrecorded(r.finds("f-1"))
	r.finds("f-2")
	r.reconcile()
	r.later(patience - time.Second)
	r.reconcile()
	r.wants("it waits for a while")
	r.later(time.Second)
	r.reconcile()
	r.wants("then it goes on", "2026-03-30 open 1 opened 2 closed 0")
}

func TestTrendsAreKeptForTwoYears(t *testing.T) {
	r := newRoom(t, "proj")
	r.finds("f-1")
	r.reconcile()
	end := time.Date(2028, time.April, 1, 0, 0, 0, 0, time.UTC)
	r.clock.SetTime(end.Add(-time.Hour))
	harness.Same(t, "when it comes back", time.Hour, r.reconcile().RequeueAfter)
	if len(r.kept()) != 1 {
		t.Fatalf("kept %v", r.kept())
	}
	r.clock.SetTime(end)
	r.reconcile()
	r.wants("the days since equal the last row", "2026-03-30 open 1 opened 1 closed 0")
	r.finds("f-2")
	r.reconcile()
	harness.Same(t, "kept after two years", []string{"proj-2026q1", "proj-2028q2"}, slices.Sorted(maps.Keys(r.kept())))
	r.clock.SetTime(end.AddDate(2, 3, 0))
	r.finds("f-3")
	permitted := r.r.Client
	var tried []string
	r.r.Client = refusing{permitted, &tried}
	if _, err := r.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r.project)}); !apierrors.IsForbidden(err) {
		t.Errorf("a removal that is refused ends with %v", err)
	}
	harness.Same(t, "kept while removals are refused", []string{"proj-2026q1", "proj-2028q2", "proj-2030q3"},
		slices.Sorted(maps.Keys(r.kept())))
	s, past := newScope(), []v1alpha1.FindingTrend(nil)
	for _, quarter := range []v1alpha1.Quarter{"2020q1", "2020q2", "2020q3"} {
		past = append(past, *newTrend(r.project, quarter))
	}
	s.Now, tried = r.clock.Now(), nil
	if err := r.r.retire(t.Context(), s, past); !apierrors.IsForbidden(err) {
		t.Errorf("removals that are refused end with %v", err)
	}
	harness.Same(t, "removals tried", []string{"proj-2020q2", "proj-2020q1"}, tried)
	r.r.Client = permitted
	r.reconcile()
	harness.Same(t, "kept two years after the next quarter with rows", []string{"proj-2028q2", "proj-2030q3"},
		slices.Sorted(maps.Keys(r.kept())))
}

// refusing is a client whose removals the API server refuses.
type refusing struct {
	client.Client
	tried *[]string
}

func (r refusing) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	*r.tried = append(*r.tried, object.GetName())
	return apierrors.NewForbidden(schema.GroupResource{}, object.GetName(), nil)
}

func TestAClockThatIsBehindChangesNoRow(t *testing.T) {
	r := newRoom(t, "proj")
	now := time.Now().Add(time.Minute) // after the objects that are created
	r.clock.SetTime(now)
	r.finds("f-1")
	r.reconcile()
	written := r.kept()
	r.clock.SetTime(now.AddDate(0, 0, -2))
	r.reconcile()
	harness.Same(t, "a clock that is behind has changed the rows", written, r.kept())
}

func TestNamesOfTrendsAreBounded(t *testing.T) {
	r := newRoom(t, strings.Repeat("p", 253))
	r.finds("f-1")
	r.reconcile()
	if len(r.kept()) != 1 {
		t.Errorf("kept %v", r.kept())
	}
}

func TestOnlyTheControllersWriteAndNotWhatIsImmutable(t *testing.T) {
	r := newRoom(t, "proj")
	r.finds("f-1")
	r.reconcile()
	trend := r.kept()["proj-2026q1"]
	patch := func(by client.Client, body string) string {
		t.Helper()
		err := by.Patch(t.Context(), trend.DeepCopy(), testenv.MergePatch(body))
		if err == nil {
			return ""
		}
		return err.Error()
	}
	for _, c := range []struct {
		by         client.Client
		body, want string
	}{
		{env.AsController(t), `{"spec":{"quarter":"2026q2"}}`, "spec.quarter is immutable"},
		{env.AsController(t), `{"spec":{"projectRef":{"name":"other"}}}`, "spec.projectRef is immutable"},
		{env.Client, `{"spec":{"days":[]}}`, "by the findings-operator controllers alone"},
	} {
		harness.Contains(t, c.body, patch(c.by, c.body), c.want)
	}
}

// An object must stay well below etcd's limit.
func TestAFullQuarterIsSmall(t *testing.T) {
	r := newRoom(t, "proj")
	spread := v1alpha1.FindingTrendSpread{Median: math.MaxInt32, P90: math.MaxInt32}
	for range v1alpha1.MaxTrendSample {
		spread.Sample = append(spread.Sample, math.MaxInt32)
	}
	trend := newTrend(r.project, "2026q1")
	trend.Spec.UpdatedAt = v1alpha1.NewTime(noon)
	for i := range v1alpha1.MaxTrendDays {
		trend.Spec.Days = append(trend.Spec.Days, v1alpha1.FindingTrendDay{
			Day:       trends.Plus("2026-01-01", i),
			Open:      v1alpha1.FindingTrendOpen{Critical: math.MaxInt32, High: math.MaxInt32, Medium: math.MaxInt32, Low: math.MaxInt32},
			OpenMuted: math.MaxInt32, Opened: math.MaxInt32, Closed: math.MaxInt32, Muted: math.MaxInt32,
			Age: &spread, TimeToClose: &spread,
		})
	}
	harness.Must(t, env.AsController(t).Create(t.Context(), trend))
	if stored, err := json.Marshal(trend); err != nil || len(stored) > 160_000 {
		t.Errorf("it takes %d bytes, error %v", len(stored), err)
	}
	trend.Spec.Days = append(trend.Spec.Days, v1alpha1.FindingTrendDay{Day: "2026-12-31"})
	trend.Name, trend.ResourceVersion = "more", ""
	if err := env.AsController(t).Create(t.Context(), trend); err == nil {
		t.Error("one day more than a quarter has was taken")
	}
}

func TestFindingsWakeTheirProject(t *testing.T) {
	settings := Settings{Delay: time.Millisecond, Clock: clocktesting.NewFakePassiveClock(noon)}
	controllertest.Start(t, env, settings.SetupWithManager)
	namespace := env.Namespace(t)
	env.Create(t, builder.Project("proj").In(namespace).Build(), builder.Finding("f").In(namespace).Build())
	trend := &v1alpha1.FindingTrend{}
	key := client.ObjectKey{Namespace: namespace, Name: "proj-2026q1"}
	harness.Eventually(t, func(g Gomega) { g.Expect(env.Client.Get(t.Context(), key, trend)).To(Succeed()) })
	harness.Must(t, env.Client.Delete(t.Context(), trend))
	harness.Eventually(t, func(g Gomega) { g.Expect(env.Client.Get(t.Context(), key, trend)).To(Succeed()) })
}

func TestWhatCountsOtherwise(t *testing.T) {
	as := func(change func(*v1alpha1.Finding)) *v1alpha1.Finding {
		return builder.Finding("f").Mutate(change).Build()
	}
	before := as(func(*v1alpha1.Finding) {})
	for _, c := range []struct {
		reason string
		after  *v1alpha1.Finding
		want   bool
	}{
		{"nothing", before, false},
		{"a comment", as(func(f *v1alpha1.Finding) { f.Spec.Triage.Comments = "x" }), false},
		{"it was muted", as(func(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted }), true},
		{"it became critical", as(func(f *v1alpha1.Finding) { f.Spec.Details.Score = "9.1" }), true},
		{"its severity", as(func(f *v1alpha1.Finding) { f.Spec.Details.Severity = "high" }), true},
		{"it was recorded", as(func(f *v1alpha1.Finding) { f.Status.Transitions = []v1alpha1.Transition{{Seq: 1}} }), true},
	} {
		harness.Same(t, c.reason, c.want, countsOtherwise.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: c.after}))
	}
}
