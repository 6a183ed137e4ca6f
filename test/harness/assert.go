package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// T is a testing.TB or a *rapid.T.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// Must ends the test if err is not nil.
func Must(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Same fails the test with a diff unless got equals want.
func Same(t T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Filled fails the test for each member of a struct that is empty, except those named.
func Filled(t T, what string, value any, except ...string) {
	t.Helper()
	for member, of := range reflect.ValueOf(value).Fields() {
		if want := slices.Contains(except, member.Name); of.IsZero() != want {
			t.Errorf("%s: %s is empty: %t, want %t", what, member.Name, of.IsZero(), want)
		}
	}
}

// ErrorContains fails the test unless the error contains all of the texts. An empty text means that there must be no
// error.
func ErrorContains(t T, what string, err error, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if want == "" {
			NoError(t, what, err)
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", what, err, want)
		}
	}
}

// NoError fails the test if err is not nil.
func NoError(t T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// Contains fails the test unless the text contains all of the parts.
func Contains(t T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: want %q in\n%s", what, part, text)
		}
	}
}

// Lacks fails the test if the text contains one of the parts. It prints the text, which must hold no secret.
func Lacks(t T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s: want no %q in\n%s", what, part, text)
		}
	}
}

// File returns the content of a file.
func File(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path) //nolint:gosec // a test names its own files
	Must(t, err)
	return string(content)
}

// RepositoryFile returns the content of a file of this repository, whose path is given in parts from its root.
func RepositoryFile(t testing.TB, path ...string) string {
	t.Helper()
	return File(t, filepath.Join(append([]string{Root()}, path...)...))
}

// Commands returns the commands of the block of a page of docs that begins with the comment.
func Commands(t testing.TB, page, comment string) string {
	t.Helper()
	for _, block := range strings.Split(RepositoryFile(t, "docs", page), "```sh\n")[1:] {
		commands, _, _ := strings.Cut(block, "```")
		if strings.HasPrefix(strings.TrimSpace(commands), "# "+comment+"\n") {
			return commands
		}
	}
	t.Fatalf("docs/%s has no commands %q", page, comment)
	return ""
}

// JSON returns the JSON of a value.
func JSON(t T, value any) []byte {
	t.Helper()
	content, err := json.Marshal(value)
	Must(t, err)
	return content
}

// Decoded returns the value of JSON.
func Decoded[V any](t T, content []byte) (value V) {
	t.Helper()
	Must(t, json.Unmarshal(content, &value))
	return value
}
