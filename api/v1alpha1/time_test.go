package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	for _, c := range []struct{ text, want, reason string }{
		{"2026-01-31T09:30:00Z", "2026-01-31T09:30:00Z", "the usual form"},
		{"2026-01-31t09:30:00z", "2026-01-31T09:30:00Z", "RFC 3339 allows lower case"},
		{"2026-01-31T09:30:00.5+05:30", "2026-01-31T04:00:00Z", "an offset and a fraction"},
		{"2026-01-31T09:30:00.1234567890123Z", "2026-01-31T09:30:00Z", "a fraction of any length"},
		{"2024-02-29T23:59:59-23:59", "2024-03-01T23:58:59Z", "the largest offset"},
		{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "the first second"},
		{"9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "the last second"},
		{"0001-01-01T00:00:00+00:01", "", "before the first second"},
		{"9999-12-31T23:59:59-00:01", "", "after the last second"},
		{"0000-06-01T00:00:00Z", "", "there is no year 0"},
		{"2026-02-29T00:00:00Z", "", "no leap year"},
		{"2026-13-01T00:00:00Z", "", "no month"},
		{"2026-01-01T24:00:00Z", "", "no hour"},
		{"2026-01-01T00:00:60Z", "", "a leap second"},
		{"2026-01-01T0:00:00Z", "", "an hour of one digit"},
		{"2026-01-01T00:00:00,5Z", "", "a fraction after a comma"},
		{"2026-01-01T00:00:00.Z", "", "a fraction without a digit"},
		{"2026-01-01T00:00:00+24:00", "", "no offset"},
		{"2026-01-01T00:00:00+99:99", "", "no offset"},
		{"2026-01-01 00:00:00Z", "", "a space in place of T"},
		{"2026-01-01T00:00:00", "", "no zone"},
		{"", "", "nothing"},
	} {
		parsed, err := ParseTime(c.text)
		if (err != nil) != (c.want == "") {
			t.Errorf("%s: %q: got %v", c.reason, c.text, err)
			continue
		}
		if got := parsed.UTC().Format(time.RFC3339); err == nil && got != c.want {
			t.Errorf("%s: %q is %s, want %s", c.reason, c.text, got, c.want)
		}
	}
}

func TestTimesThatEarlierSchemasAcceptedAreRead(t *testing.T) {
	for text, want := range map[string]string{
		`"2026-01-01T00:00:00,5Z"`:    `"2026-01-01T00:00:00Z"`,
		`"2026-01-01T00:00:00+24:00"`: `"2025-12-31T00:00:00Z"`,
		`"9999-12-31T23:59:59-05:00"`: `"9999-12-31T23:59:59Z"`,
		`"0001-01-01T00:00:00+05:00"`: `"0001-01-01T00:00:00Z"`,
		`null`:                        `"0001-01-01T00:00:00Z"`,
	} {
		var read Time
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if written, err := json.Marshal(read); err != nil || string(written) != want {
			t.Errorf("%s is written as %s, want %s (error %v)", text, written, want, err)
		}
	}
	if err := json.Unmarshal([]byte(`"2026-01-01T00:00:00+99:99"`), new(Time)); err == nil {
		t.Error("an offset that names no instant was read")
	}
}

func FuzzParseTime(f *testing.F) {
	for _, text := range []string{"2026-01-31T09:30:00Z", "0001-01-01t00:00:00+23:59", "9999-12-31T23:59:59.999-00:01", "2026-1-1T0:0:0,5Z"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseTime(text)
		if err != nil {
			return
		}
		written, err := json.Marshal(parsed)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var again Time
		if err := json.Unmarshal(written, &again); err != nil || again.Unix() != parsed.Unix() {
			t.Errorf("%q is written as %s and read as %s: %v", text, written, again.UTC(), err)
		}
	})
}
