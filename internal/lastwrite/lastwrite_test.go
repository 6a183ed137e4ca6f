package lastwrite_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) *v1alpha1.Time {
	t := v1alpha1.NewTime(start.Add(time.Duration(seconds) * time.Second))
	return &t
}

func write(manager, subresource string, when *v1alpha1.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: when.Time}}
}

func TestUpdatedAt(t *testing.T) {
	cases := []struct {
		name, reason string
		generation   int64
		writes       []metav1.ManagedFieldsEntry
		observed     lastwrite.Observed
		now, want    *v1alpha1.Time
	}{{
		name: "first", reason: "before the first reconcile the write's own time counts, not the clock",
		generation: 1, writes: []metav1.ManagedFieldsEntry{write("scanner/gosec", "", at(3))},
		now: at(9), want: at(3),
	}, {
		name: "unchanged", reason: "metadata writes move managedFields but not the generation",
		generation: 2, writes: []metav1.ManagedFieldsEntry{write("kubectl-label", "", at(8))},
		observed: lastwrite.Observed{Generation: 2, UpdatedAt: at(5)},
		now:      at(9), want: at(5),
	}, {
		name: "changed", reason: "the newest write after the time observed is the change",
		generation: 3, writes: []metav1.ManagedFieldsEntry{
			write("scanner/gosec", "", at(2)), write("kubectl-patch", "", at(7)),
		},
		observed: lastwrite.Observed{Generation: 2, UpdatedAt: at(5)},
		now:      at(9), want: at(7),
	}, {
		name: "removed field", reason: "a removal moves no managedFields time, so the clock counts",
		generation: 3, writes: []metav1.ManagedFieldsEntry{write("scanner/gosec", "", at(2))},
		observed: lastwrite.Observed{Generation: 2, UpdatedAt: at(5)},
		now:      at(9), want: at(9),
	}, {
		name: "forged", reason: "a replace may carry a time in the future, which is not believed",
		generation: 3, writes: []metav1.ManagedFieldsEntry{write("kubectl-replace", "", at(5000))},
		observed: lastwrite.Observed{Generation: 2, UpdatedAt: at(5)},
		now:      at(9), want: at(9),
	}, {
		name: "status", reason: "a status write is no change of the spec",
		generation: 3, writes: []metav1.ManagedFieldsEntry{
			write("kubectl-patch", "", at(6)), write("findings-api", "status", at(8)),
		},
		observed: lastwrite.Observed{Generation: 2, UpdatedAt: at(5)},
		now:      at(9), want: at(6),
	}, {
		name: "controllers", reason: "a controller's finalizer is no change of the spec",
		generation: 3, writes: []metav1.ManagedFieldsEntry{
			write("kubectl-patch", "", at(6)), write(v1alpha1.ControllerFieldManager, "", at(8)),
		},
		observed: lastwrite.Observed{Generation: 2, UpdatedAt: at(5)},
		now:      at(9), want: at(6),
	}, {
		name: "clock behind", reason: "a clock that went back must not move the time back",
		generation: 3,
		observed:   lastwrite.Observed{Generation: 2, UpdatedAt: at(5)},
		now:        at(1), want: at(5),
	}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			object := &metav1.ObjectMeta{Generation: c.generation, ManagedFields: c.writes}
			if got := lastwrite.UpdatedAt(object, c.observed, c.now.Time); !got.Equal(c.want) {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		})
	}
}

func TestUpdatedAtNeverGoesBackAndNeverLeavesTheFuture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := rapid.IntRange(0, 100)
		var writes []metav1.ManagedFieldsEntry
		for range rapid.IntRange(0, 4).Draw(t, "writes") {
			writes = append(writes, write(
				rapid.SampledFrom([]string{"scanner/x", "kubectl", v1alpha1.ControllerFieldManager}).Draw(t, "manager"),
				rapid.SampledFrom([]string{"", "status"}).Draw(t, "subresource"),
				at(second.Draw(t, "at")),
			))
		}
		object := &metav1.ObjectMeta{Generation: rapid.Int64Range(1, 3).Draw(t, "generation"), ManagedFields: writes}
		observed := lastwrite.Observed{Generation: rapid.Int64Range(0, 3).Draw(t, "observed"), UpdatedAt: at(second.Draw(t, "before"))}
		now := at(second.Draw(t, "now"))

		got := lastwrite.UpdatedAt(object, observed, now.Time)
		if got.Before(observed.UpdatedAt) {
			t.Fatalf("went back from %s to %s", observed.UpdatedAt, got)
		}
		if got.After(now.Time) && !got.Equal(observed.UpdatedAt) {
			t.Fatalf("%s is later than now, %s", got, now)
		}
	})
}
