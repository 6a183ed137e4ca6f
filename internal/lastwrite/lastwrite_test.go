package lastwrite_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) *v1alpha1.Time {
	t := v1alpha1.NewTime(start.Add(time.Duration(seconds) * time.Second))
	return &t
}

func write(manager, subresource string, when *v1alpha1.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: when.Time}}
}

func observed(generation int64, when *v1alpha1.Time) lastwrite.Observed {
	return lastwrite.Observed{Generation: generation, UpdatedAt: when}
}

func TestWhatIsRecordedAndWhatIsShownBefore(t *testing.T) {
	cases := []struct {
		reason     string
		generation int64
		writes     []metav1.ManagedFieldsEntry
		observed   lastwrite.Observed
		// now is the clock of the controllers and the facade.
		now, recorded, shown *v1alpha1.Time
	}{
		{"what has not changed since its creation was written then, whatever was written but its spec",
			1, []metav1.ManagedFieldsEntry{write("scanner/gosec", "", at(0)), write("kubectl-label", "", at(3))},
			observed(0, nil), at(9), at(0), at(0)},
		{"an empty spec is owned by nobody",
			1, nil, observed(0, nil), at(9), at(0), at(0)},
		{"clocks behind the API server's do not make it older than its creation",
			1, nil, observed(0, nil), at(-9), at(0), at(0)},
		{"before the first reconcile a write's own time counts",
			2, []metav1.ManagedFieldsEntry{write("kubectl-patch", "", at(3))}, observed(0, nil), at(9), at(3), at(3)},
		{"a write in the second of the creation is told too",
			2, []metav1.ManagedFieldsEntry{write("kubectl-patch", "", at(0))}, observed(0, nil), at(9), at(0), at(0)},
		{"a change that the object does not tell waits for the controllers' clock, as it was",
			2, nil, observed(0, nil), at(9), at(9), at(0)},
		{"metadata writes move managedFields but not the generation",
			2, []metav1.ManagedFieldsEntry{write("kubectl-label", "", at(8))}, observed(2, at(5)), at(9), at(5), at(5)},
		{"the newest write after the time observed is the change",
			3, []metav1.ManagedFieldsEntry{write("kubectl-patch", "", at(7)), write("scanner/gosec", "", at(6))},
			observed(2, at(5)), at(9), at(7), at(7)},
		{"a removal moves no time",
			3, []metav1.ManagedFieldsEntry{write("scanner/gosec", "", at(2))}, observed(2, at(5)), at(9), at(9), at(5)},
		{"a second write in the second of the first is told by no time, and has been answered with it",
			3, []metav1.ManagedFieldsEntry{write("findings-api", "", at(5))}, observed(2, at(5)), at(6), at(5), at(5)},
		{"a later one has a time of its own",
			3, []metav1.ManagedFieldsEntry{write("findings-api", "", at(5))}, observed(2, at(5)), at(8), at(8), at(5)},
		{"a write of a status is not the facade's of the spec",
			3, []metav1.ManagedFieldsEntry{write("findings-api", "status", at(5))}, observed(2, at(5)), at(6), at(6), at(5)},
		{"a write by others is not taken as the facade's",
			3, []metav1.ManagedFieldsEntry{write("scanner/gosec", "", at(5))}, observed(2, at(5)), at(6), at(6), at(5)},
		{"a replace may carry a time in the future, which is not believed",
			3, []metav1.ManagedFieldsEntry{write("kubectl-replace", "", at(5000))}, observed(2, at(5)), at(9), at(9), at(5)},
		{"a forged time hides no other",
			3, []metav1.ManagedFieldsEntry{write("kubectl-replace", "", at(5000)), write("kubectl-patch", "", at(7))},
			observed(2, at(5)), at(9), at(7), at(7)},
		{"the API server's clock may be ahead of everybody's",
			3, []metav1.ManagedFieldsEntry{write("kubectl-patch", "", at(11))}, observed(2, at(5)), at(9), at(11), at(11)},
		{"ahead by more is for the controllers to believe",
			3, []metav1.ManagedFieldsEntry{write("kubectl-patch", "", at(200))}, observed(2, at(5)), at(9), at(200), at(5)},
		{"a status write is no change of the spec",
			3, []metav1.ManagedFieldsEntry{write("findings-api", "status", at(8)), write("kubectl-patch", "", at(6))},
			observed(2, at(5)), at(9), at(6), at(6)},
		{"a controller's finalizer is no change of the spec",
			3, []metav1.ManagedFieldsEntry{write("kubectl-patch", "", at(6)), write(v1alpha1.ControllerFieldManager, "", at(8))},
			observed(2, at(5)), at(9), at(6), at(6)},
		{"a clock that went back does not move the time back",
			3, nil, observed(2, at(5)), at(1), at(5), at(5)},
	}
	for _, c := range cases {
		object := &metav1.ObjectMeta{Generation: c.generation, ManagedFields: c.writes, CreationTimestamp: metav1.NewTime(at(0).Time)}
		recorded := lastwrite.UpdatedAt(object, c.observed, c.now.Time)
		harness.Same(t, c.reason+": recorded", *c.recorded, recorded)
		shown, _ := lastwrite.Shown(object, c.observed, c.now.Time)
		harness.Same(t, c.reason+": shown", c.shown.Time, shown)
		for _, offset := range []time.Duration{-time.Hour, 0, time.Hour} {
			shown, settled := lastwrite.Shown(object, observed(c.generation, &recorded), c.now.Add(offset))
			if !settled || !shown.Equal(recorded.Time) {
				t.Errorf("%s: once %s is recorded, a clock that is off by %s shows %s", c.reason, recorded, offset, shown)
			}
		}
	}
}

func TestARecordedTimeNeverGoesBackNorComesFromTheFuture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := rapid.IntRange(-500, 500)
		var writes []metav1.ManagedFieldsEntry
		for range rapid.IntRange(0, 4).Draw(t, "writes") {
			writes = append(writes, write(
				rapid.SampledFrom([]string{"scanner/x", "kubectl", v1alpha1.ControllerFieldManager}).Draw(t, "manager"),
				rapid.SampledFrom([]string{"", "status"}).Draw(t, "subresource"),
				at(second.Draw(t, "at")),
			))
		}
		object := &metav1.ObjectMeta{
			Generation: rapid.Int64Range(1, 3).Draw(t, "generation"), ManagedFields: writes,
			CreationTimestamp: metav1.NewTime(at(second.Draw(t, "created")).Time),
		}
		before := observed(rapid.Int64Range(0, 3).Draw(t, "observed"), at(second.Draw(t, "before")))
		now := at(second.Draw(t, "now"))

		got := lastwrite.UpdatedAt(object, before, now.Time)
		if got.Before(before.UpdatedAt) {
			t.Fatalf("went back from %s to %s", before.UpdatedAt, got)
		}
		believed := now.Add(5 * time.Minute)
		if got.After(believed) && !got.Equal(before.UpdatedAt) && !got.Time.Equal(object.CreationTimestamp.Time) {
			t.Fatalf("%s is far later than now, %s", got, now)
		}
	})
}

// What a facade shows is what the controllers record or earlier, unless its clock is ahead of theirs by
// nearly five minutes.
func TestNothingIsShownThatIsNotRecorded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := rapid.IntRange(-500, 500)
		var writes []metav1.ManagedFieldsEntry
		for range rapid.IntRange(0, 4).Draw(t, "writes") {
			writes = append(writes, write("kubectl", "", at(second.Draw(t, "at"))))
		}
		object := &metav1.ObjectMeta{
			Generation: rapid.Int64Range(1, 3).Draw(t, "generation"), ManagedFields: writes,
			CreationTimestamp: metav1.NewTime(at(second.Draw(t, "created")).Time),
		}
		before := observed(rapid.Int64Range(0, 3).Draw(t, "observed"), at(second.Draw(t, "before")))
		controllers := second.Draw(t, "the controllers' clock")
		facade := controllers + rapid.IntRange(-10_000, 298).Draw(t, "the facade's clock")

		recorded := lastwrite.UpdatedAt(object, before, at(controllers).Time)
		if shown, _ := lastwrite.Shown(object, before, at(facade).Time); shown.After(recorded.Time) {
			t.Fatalf("shown %s, recorded %s", shown, recorded)
		}
	})
}

// managedFields has one entry per API version and operation of a manager, with the oldest first.
func TestTheLastWriteOfTheControllersIsTheNewest(t *testing.T) {
	const controllers = v1alpha1.ControllerFieldManager
	object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		write(controllers, "", at(1)), write(controllers, "", at(3)), write(controllers, "", at(2)),
		write(controllers, "status", at(8)), write("scanner/gosec", "", at(9)), {Manager: controllers},
	}}
	harness.Same(t, "last write", at(3).Time, lastwrite.OfControllers(object))
	harness.Same(t, "last write of none", time.Time{}, lastwrite.OfControllers(&metav1.ObjectMeta{}))
}
