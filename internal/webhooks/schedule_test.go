package webhooks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	failed    = v1alpha1.WebhookAttemptFailed
	unknown   = v1alpha1.WebhookAttemptUnknown
	succeeded = v1alpha1.WebhookAttemptSucceeded
)

// tried returns a delivery whose attempts had these outcomes, the last of them 15 s after noon.
func tried(outcomes ...v1alpha1.WebhookAttemptOutcome) *v1alpha1.WebhookDelivery {
	d := newDelivery("{}")
	for i, outcome := range outcomes {
		at := noon.Add(time.Duration(i+1-len(outcomes)) * time.Hour)
		attempt := v1alpha1.WebhookAttempt{At: v1alpha1.NewTime(at), Outcome: outcome}
		if outcome != unknown {
			attempt.EndedAt = &v1alpha1.Time{Time: at.Add(15 * time.Second)}
		}
		AddAttempt(&d.Status, attempt)
	}
	return d
}

func times(n int, outcome v1alpha1.WebhookAttemptOutcome) []v1alpha1.WebhookAttemptOutcome {
	var out []v1alpha1.WebhookAttemptOutcome
	for range n {
		out = append(out, outcome)
	}
	return out
}

func TestWhenADeliveryIsAttemptedAgain(t *testing.T) {
	const never = -1
	cases := []struct {
		reason   string
		outcomes []v1alpha1.WebhookAttemptOutcome
		wait     time.Duration // from the end of the last attempt, or from its start if the end is unknown
	}{
		{"the first is made at once", nil, 0},
		{"the second", times(1, failed), 5 * time.Second},
		{"the third", times(2, failed), 5 * time.Minute},
		{"the fourth", times(3, failed), 30 * time.Minute},
		{"the fifth", times(4, failed), 2 * time.Hour},
		{"the sixth", times(5, failed), 5 * time.Hour},
		{"the seventh", times(6, failed), 10 * time.Hour},
		{"the eighth", times(7, failed), 10 * time.Hour},
		{"there is no ninth", times(8, failed), never},
		{"one that arrived", times(1, succeeded), never},
		{"one that may have arrived is repeated soon", times(1, unknown), 5 * time.Second},
		{"wherever it stands", []v1alpha1.WebhookAttemptOutcome{failed, failed, failed, unknown}, 5 * time.Second},
		{"not so the second in a row", times(2, unknown), 5 * time.Minute},
		{"nor the third", times(3, unknown), 30 * time.Minute},
		{"it counts as one of the eight", append(times(7, failed), unknown), never},
		{"however many are unknown", times(8, unknown), never},
	}
	for _, c := range cases {
		d := tried(c.outcomes...)
		at, due := NextAttempt(d)
		if due != (c.wait != never) {
			t.Errorf("%s: due is %t", c.reason, due)
			continue
		}
		if len(c.outcomes) == 0 || c.wait == never {
			if !at.IsZero() {
				t.Errorf("%s: at %s", c.reason, at)
			}
			continue
		}
		from := noon.Add(15 * time.Second)
		if c.outcomes[len(c.outcomes)-1] == unknown {
			from = noon
		}
		earliest, latest := from.Add(c.wait), from.Add(c.wait+c.wait/5+time.Second)
		if at.Before(earliest) || at.After(latest) {
			t.Errorf("%s: got %s, want %s to %s", c.reason, at, earliest, latest)
		}
	}
}

// The next attempt depends only on the stored delivery.
func TestTheScheduleIsAFunctionOfTheDelivery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outcomes := rapid.SliceOfN(rapid.SampledFrom([]v1alpha1.WebhookAttemptOutcome{failed, unknown}), 1, 7).Draw(t, "outcomes")
		d := tried(outcomes...)
		d.Spec.Event.ID = rapid.StringMatching(`d-[a-z2-7]{26}`).Draw(t, "id")
		last := &d.Status.Attempts[len(outcomes)-1]
		if rapid.Bool().Draw(t, "retry-after") {
			last.RetryAt = &v1alpha1.Time{Time: noon.Add(time.Duration(rapid.IntRange(-10, 100_000).Draw(t, "seconds")) * time.Second)}
		}
		at, due := NextAttempt(d)
		stored := d.DeepCopy()
		for range 3 {
			if again, dueAgain := NextAttempt(stored); !again.Equal(at) || dueAgain != due {
				t.Fatalf("got %s, %t and then %s, %t", at, due, again, dueAgain)
			}
		}
		if !at.Equal(at.Truncate(time.Second)) {
			t.Fatalf("%s is not stored as it is", at)
		}
		wait := waitAfter(d.Status.Attempts)
		end := last.At.Time
		if last.EndedAt != nil {
			end = last.EndedAt.Time
		}
		if at.Before(end.Add(wait)) {
			t.Fatalf("%s is sooner than %s after %s", at, wait, end)
		}
		if last.RetryAt != nil && at.Before(last.RetryAt.Time) {
			t.Fatalf("%s is sooner than the receiver asked for, %s", at, last.RetryAt)
		}
		if latest := end.Add(wait + wait/5 + time.Second); at.After(latest) && (last.RetryAt == nil || !at.Equal(last.RetryAt.Time)) {
			t.Fatalf("%s is later than %s", at, latest)
		}
		last.RetryAt = nil
		if without, _ := NextAttempt(d); at.Before(without) {
			t.Fatalf("retry-after made it sooner: %s, without it %s", at, without)
		}
	})
}

func TestWhatFailedTogetherIsNotTriedAgainTogether(t *testing.T) {
	seen := map[time.Time]int{}
	for i := range 1000 {
		d := tried(times(6, failed)...)
		d.Spec.Event.ID = fmt.Sprintf("d-%d", i)
		at, _ := NextAttempt(d)
		seen[at]++
	}
	// Over two hours, that is 7,200 seconds.
	if len(seen) < 800 {
		t.Errorf("1000 deliveries are due at %d times", len(seen))
	}
	first, second := spread(time.Hour, "d-1", 1), spread(time.Hour, "d-1", 2)
	if first == second {
		t.Error("two attempts have one jitter")
	}
}

func TestAReceiverMayAskForALaterAttempt(t *testing.T) {
	now := noon.Add(300 * time.Millisecond)
	cases := []struct {
		reason, header string
		want           time.Duration // from noon; 0 for no request
	}{
		{"seconds, never sooner", "120", 121 * time.Second},
		{"white space around them", " 7 ", 8 * time.Second},
		{"a date", "Sun, 01 Mar 2026 13:00:00 GMT", time.Hour},
		{"the old form of a date", "Sunday, 01-Mar-26 13:00:00 GMT", time.Hour},
		{"a day at most", "86401", 24*time.Hour + time.Second},
		{"a date far off", "Mon, 01 Mar 2027 12:00:00 GMT", 24*time.Hour + time.Second},
		{"a number that no integer holds", strings.Repeat("9", 400), 24*time.Hour + time.Second},
		{"at once", "0", 0},
		{"a date that is over", "Sun, 01 Mar 2026 11:00:00 GMT", 0},
		{"none", "", 0},
		{"less than nothing", "-5", 0},
		{"a part of a second", "1.5", 0},
		{"words", "soon", 0},
	}
	for _, c := range cases {
		got := RetryAt(c.header, now)
		switch {
		case (got == nil) != (c.want == 0):
			t.Errorf("%s: got %v", c.reason, got)
		case got != nil && !got.Time.Equal(noon.Add(c.want)):
			t.Errorf("%s: got %s, want %s", c.reason, got, noon.Add(c.want))
		}
	}
}

func FuzzRetryAt(f *testing.F) {
	for _, header := range []string{"1", "Sun, 01 Mar 2026 13:00:00 GMT", "99999999999999999999", "\x00", "+1", "0x1"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got := RetryAt(header, noon)
		if got != nil && (!got.After(noon) || got.After(noon.Add(maxRetryAfter))) {
			t.Errorf("%q gives %s", header, got)
		}
	})
}

func TestEachValueOfTheAnnotationIsOneRedelivery(t *testing.T) {
	d := tried(times(8, failed)...)
	ask := func(value string) { d.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: value} }
	due := func() bool {
		TakeUpRedelivery(d, noon)
		at, due := NextAttempt(d)
		return due && at.IsZero()
	}
	if due() {
		t.Fatal("nobody has asked for anything")
	}
	long := strings.Repeat("x", 129)
	for _, value := range []string{"1", "2", "1", long, long + "y", strings.Repeat("x", 128)} {
		ask(value)
		if !due() {
			t.Fatalf("%q asks for nothing", value)
		}
		if len(d.Status.Redelivery.Value) > 128 {
			t.Fatalf("%d bytes are kept", len(d.Status.Redelivery.Value))
		}
		if !due() {
			t.Fatalf("%q is forgotten before an attempt was made", value)
		}
		AddAttempt(&d.Status, v1alpha1.WebhookAttempt{At: v1alpha1.NewTime(noon), Outcome: failed})
		if due() {
			t.Fatalf("%q is taken up twice", value)
		}
	}
	ask("")
	if due() {
		t.Error("an empty value asks for one")
	}
	d.Annotations = nil
	if due() {
		t.Error("to take the annotation off asks for one")
	}
}

// A redelivery gets the whole schedule, whatever came before and whatever is kept.
func TestARedeliveryBeginsTheScheduleAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDelivery("{}")
		for round := range rapid.IntRange(1, 8).Draw(t, "rounds") {
			d.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: fmt.Sprint(round)}
			TakeUpRedelivery(d, noon)
			made := 0
			for {
				at, due := NextAttempt(d)
				if !due {
					break
				}
				if (made == 0) != at.IsZero() {
					t.Fatalf("attempt %d of round %d is due at %s", made+1, round+1, at)
				}
				AddAttempt(&d.Status, v1alpha1.WebhookAttempt{At: v1alpha1.NewTime(noon), Outcome: failed})
				made++
			}
			if made != AttemptsPerRound || len(d.Status.Attempts) > v1alpha1.MaxWebhookAttempts {
				t.Fatalf("round %d: %d attempts, %d kept", round+1, made, len(d.Status.Attempts))
			}
		}
	})
}
