package harness

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// T is a testing.TB or a *rapid.T.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Must ends the test if err is not nil.
func Must(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Same fails the test, with the difference, if what was wanted and what came differ.
func Same(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Says fails the test unless the error contains want. An empty want means that there must be no error.
func Says(t testing.TB, what string, err error, want string) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q in it", what, err, want)
	}
}
