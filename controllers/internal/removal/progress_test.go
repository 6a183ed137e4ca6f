package removal

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

func TestProgressIsRecordedAtALowRate(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration, remaining, total int32) *v1alpha1.RemovalProgress {
		return &v1alpha1.RemovalProgress{ObservedAt: v1alpha1.NewTime(start.Add(after)), Remaining: remaining, Total: total}
	}
	cases := []struct {
		reason string
		before *v1alpha1.RemovalProgress
		left   int
		after  time.Duration
		want   *v1alpha1.RemovalProgress
	}{
		{"the first look", nil, 50_000, 0, at(0, 50_000, 50_000)},
		{"a batch later", at(0, 50_000, 50_000), 49_500, time.Second, at(0, 50_000, 50_000)},
		{"ten batches later, however soon", at(0, 50_000, 50_000), 45_000, time.Second, at(time.Second, 45_000, 50_000)},
		{"ten seconds later", at(0, 900, 50_000), 899, reportInterval, at(reportInterval, 899, 50_000)},
		{"nothing has gone in an hour", at(0, 3, 50_000), 3, time.Hour, at(0, 3, 50_000)},
		{"an import goes on meanwhile", at(0, 10, 10), 12_000, reportInterval, at(reportInterval, 12_000, 12_000)},
		{"what is added does not count as gone", at(0, 10, 10), 12_000, time.Second, at(0, 10, 10)},
	}
	for _, c := range cases {
		got := c.before
		if changed := Observe(&got, c.left, start.Add(c.after)); *got != *c.want || changed != (got != c.before) {
			t.Errorf("%s: got %+v (%t), want %+v", c.reason, got, changed, c.want)
		}
	}
}
