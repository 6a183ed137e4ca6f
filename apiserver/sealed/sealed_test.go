package sealed

import (
	"bytes"
	"testing"
)

func TestOnlyWhatWasSealedForThePurposeOpens(t *testing.T) {
	key, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	text := Seal(key, []byte("content"), "one")
	if got, ok := Open([][]byte{other, key}, text, "one"); !ok || string(got) != "content" {
		t.Fatalf("got %q, %t", got, ok)
	}
	for reason, open := range map[string]func() ([]byte, bool){
		"another key":     func() ([]byte, bool) { return Open([][]byte{other}, text, "one") },
		"another purpose": func() ([]byte, bool) { return Open([][]byte{key}, text, "two") },
		"cut":             func() ([]byte, bool) { return Open([][]byte{key}, text[:len(text)-2], "one") },
		"longer":          func() ([]byte, bool) { return Open([][]byte{key}, text+"AA", "one") },
		"no text of ours": func() ([]byte, bool) { return Open([][]byte{key}, "\n=", "one") },
		"nothing":         func() ([]byte, bool) { return Open([][]byte{key}, "", "one") },
	} {
		if got, ok := open(); ok {
			t.Errorf("%s: opens as %q", reason, got)
		}
	}
}
