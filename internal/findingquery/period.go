package findingquery

import (
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Bound returns a bound of a period in whole seconds, rounded up. The times that it is compared with have whole seconds
// too, so rounding up changes nothing.
func Bound(at time.Time) v1alpha1.Time {
	return v1alpha1.NewTime(at.Add(time.Second - time.Nanosecond))
}

// lastUnsetStart is the latest time that means "not set" as the start of a period: programs send the beginning of 1970,
// with an offset of up to a day.
var lastUnsetStart = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)

// IsUnset reports whether programs send this time for a start or a beginning that is not set: the beginning of the
// year 1 or of the year 1970, also with an offset.
func IsUnset(since time.Time) bool { return !since.After(lastUnsetStart) }

// CheckSince returns an error for a time that selects everything, see IsUnset.
func CheckSince(member string, since time.Time) error {
	if !IsUnset(since) {
		return nil
	}
	return fmt.Errorf("%s is not after %s and selects everything: leave it out", member,
		lastUnsetStart.Format(time.RFC3339))
}

// firstUnsetEnd is the earliest time that means "not set" as the end of a period: programs send the last day that a
// time can represent, with an offset of up to a day.
var firstUnsetEnd = time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)

// CheckUntil returns an error for a time that selects everything. Programs send the last time that they can represent
// for one that is not set, also with an offset.
func CheckUntil(member string, until time.Time) error {
	if until.Before(firstUnsetEnd) {
		return nil
	}
	return fmt.Errorf("%s is not before %s and selects everything: leave it out", member,
		firstUnsetEnd.Format(time.RFC3339))
}

// within reports whether a time is in a period: since is inclusive, until exclusive.
func within(at time.Time, since, until *v1alpha1.Time) bool {
	return (since == nil || !at.Before(since.Time)) && (until == nil || at.Before(until.Time))
}
