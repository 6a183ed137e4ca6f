package v1alpha1

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// The years that a timestamp of four digits can show, in UTC.
var (
	earliestTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	latestTime   = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
)

// dateTime is the pattern of Time's schema. Which days a month has, and that the year is one in UTC too, is
// left to the parser there as here.
var dateTime = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)

// maxTimeLength is how long a time may be written, in bytes.
const maxTimeLength = 64

// Time is an instant. It is written as a date-time of RFC 3339, such as "2026-01-31T09:30:00Z": upper or
// lower case T and Z, seconds from 00 to 59, offsets up to 23:59, years from 0001 to 9999 in UTC. It is
// encoded in UTC with whole seconds.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
// +kubebuilder:validation:XValidation:rule="timestamp(self.upperAscii()) >= timestamp('0001-01-01T00:00:00Z') && self.matches('([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$')",message="must be a day of the calendar and in the years 0001 to 9999 in UTC, for example 2026-01-31T09:30:00Z"
type Time struct {
	time.Time `json:"-"`
}

// NewTime returns t as it is stored: in UTC, without the fraction of its second.
func NewTime(t time.Time) Time { return Time{t.UTC().Truncate(time.Second)} }

// Now returns the current time as it is stored.
func Now() Time { return NewTime(time.Now()) }

// ParseTime reads a time as Time describes it. Schemas accept what it accepts, and so does the REST API.
func ParseTime(text string) (Time, error) {
	if len(text) > maxTimeLength || !dateTime.MatchString(text) {
		return Time{}, fmt.Errorf("%.80q is not a time like 2026-01-31T09:30:00Z", text)
	}
	t, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	if err != nil {
		return Time{}, fmt.Errorf("%q is not a time like 2026-01-31T09:30:00Z: there is no such day", text)
	}
	if t.Before(earliestTime) || t.After(latestTime) {
		return Time{}, fmt.Errorf("%q is not in the years 0001 to 9999 in UTC", text)
	}
	return Time{t}, nil
}

// IsZero reports whether t is nil or not set.
func (t *Time) IsZero() bool { return t == nil || t.Time.IsZero() }

// Before reports whether t is before u. Nil is before every instant.
func (t *Time) Before(u *Time) bool {
	if t == nil || u == nil {
		return t == nil && u != nil
	}
	return t.Time.Before(u.Time)
}

// Equal reports whether t and u are the same instant, or both nil.
func (t *Time) Equal(u *Time) bool {
	if t == nil || u == nil {
		return t == nil && u == nil
	}
	return t.Time.Equal(u.Time)
}

// DeepCopyInto makes out the same instant.
func (t *Time) DeepCopyInto(out *Time) { *out = *t }

// UnmarshalJSON reads a time as ParseTime does, and also the other forms that earlier schemas accepted and
// that name an instant, so that what was stored then stays readable.
func (t *Time) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		t.Time = time.Time{}
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := ParseTime(text)
	if err != nil {
		earlier, unreadable := time.Parse(time.RFC3339, strings.ToUpper(text))
		if unreadable != nil {
			return err
		}
		parsed = Time{clamp(earlier)}
	}
	t.Time = parsed.Local()
	return nil
}

func clamp(t time.Time) time.Time {
	switch {
	case t.Before(earliestTime):
		return earliestTime
	case t.After(latestTime):
		return latestTime
	default:
		return t
	}
}

// MarshalJSON writes the time in UTC with whole seconds.
func (t Time) MarshalJSON() ([]byte, error) {
	buffer := make([]byte, 0, len(time.RFC3339)+2)
	buffer = append(buffer, '"')
	buffer = clamp(t.Time).UTC().AppendFormat(buffer, time.RFC3339)
	return append(buffer, '"'), nil
}

// ToUnstructured implements the converters' way around JSON.
func (t Time) ToUnstructured() any {
	return clamp(t.Time).UTC().Format(time.RFC3339)
}
