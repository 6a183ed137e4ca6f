package ui

import (
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestInvisibleCharactersAreEscapedUnlessTheyHaveAnEffect(t *testing.T) {
	for text, want := range map[string]string{
		"src/a.go":             "src/a.go",
		"te\u200bsts/\u202ea":  `te\u200bsts/\u202ea`,
		"te\u200dsts/":         `te\u200dsts/`,
		"te\u200csts/":         `te\u200csts/`,
		"тес\u200dты/":         `тес\u200dты/`,
		"試\u200d験/":            `試\u200d験/`,
		"a/\u200d":             `a/\u200d`,
		"\u200da":              `\u200da`,
		"می\u200cخواهم":        "می\u200cخواهم",
		"می\u200c\u200cخواهم":  `می\u200c\u200cخواهم`,
		"می\u200c\u3164":       `می\u200c\u3164`,
		"क्\u200dष":            "क्\u200dष",
		"👩🏽\u200d💻 at work":    "👩🏽\u200d💻 at work",
		"🏳\ufe0f\u200d🌈":       "🏳\ufe0f\u200d🌈",
		"⬆\ufe0f Bump x":       "⬆\ufe0f Bump x",
		"⚠\ufe0f\ufe0f Fix":    "⚠\ufe0f" + `\ufe0f Fix`,
		"ℹ\ufe0f Note":         "ℹ\ufe0f Note",
		"1\ufe0f\u20e3 First":  "1\ufe0f\u20e3 First",
		"v1\ufe0f.go":          `v1\ufe0f.go`,
		"te\ufe0fsts/":         `te\ufe0fsts/`,
		"te\u200b\ufe0f\u20e3": `te\u200b\ufe0f` + "\u20e3",
		"a\U000e0101":          `a\U000e0101`,
	} {
		harness.Same(t, text, want, Visible(text))
		harness.Same(t, "again "+text, want, Visible(want))
	}
}
