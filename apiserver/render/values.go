package render

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Timestamp returns a time as it is shown, and as lists are sorted by it: RFC 3339 in UTC with whole seconds.
// As long as the year has four digits, the order of the bytes is that of time.
func Timestamp(t time.Time) string { return second(t).Format(time.RFC3339) }

// OptionalTimestamp returns a time as it is shown, or "" if it is not set.
func OptionalTimestamp(t *v1alpha1.Time) string {
	if t.IsZero() {
		return ""
	}
	return Timestamp(t.Time)
}

func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func optionalSecond(t *v1alpha1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(second(t.Time))
}

// enum returns an enumerated value, nil if it is not known.
func enum[To, From ~string](value From) *To {
	if value == "" {
		return nil
	}
	return new(To(value))
}

func valueOf[T any](pointer *T) T { return ptr.Deref(pointer, *new(T)) }

// convert never returns nil, which would be shown as null.
func convert[From, To any](in []From, each func(From) To) []To {
	out := make([]To, len(in))
	for i := range in {
		out[i] = each(in[i])
	}
	return out
}
