package render

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// The fast path for plain texts must produce the same bytes.
func TestATextIsWrittenAsTheEncoderWritesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a<&>\"\\\x00\x1f\x7f\u0080\u2028\ufffd"))),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		var buffer bytes.Buffer
		appendText(&buffer, text)
		if want := mustEncode(text); !bytes.Equal(buffer.Bytes(), want) {
			t.Fatalf("%q is written as %s, want %s", text, buffer.Bytes(), want)
		}
	})
}
