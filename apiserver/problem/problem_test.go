package problem_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

func TestWhatMaySucceedLaterSaysSoInWordsAndInTime(t *testing.T) {
	cause := errors.New("etcd is away")
	p := problem.TryAgain("the change could not be stored", cause)
	if p.Status != 500 || p.Detail != "the change could not be stored; try again" || p.RetryAfter <= 0 || !errors.Is(p, cause) {
		t.Errorf("got %+v", p)
	}
	if p := problem.Of(cause); !strings.HasSuffix(p.Detail, "; try again") || p.RetryAfter <= 0 {
		t.Errorf("any other error: got %+v", p)
	}
	if p := problem.Internal("ask the operators", cause); p.RetryAfter != 0 {
		t.Errorf("what does not pass by itself: got %+v", p)
	}
}

// The phrase is written in one place only, so it never occurs without a retry time.
func TestNobodyElseSaysToTryAgain(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "problem.go" {
			return err
		}
		files++
		content, err := os.ReadFile(path) //nolint:gosec // the source beside this test
		if bytes.Contains(content, []byte(`try again"`)) {
			t.Errorf("%s: use problem.TryAgain", path)
		}
		return err
	})
	if err != nil || files < 50 {
		t.Fatalf("%d files, %v", files, err)
	}
}
