package etag_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/etag"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestWhichTagsAConditionNames(t *testing.T) {
	for _, test := range []struct {
		reason          string
		values          []string
		match, nonMatch bool
	}{
		{"a list of nothing names nothing", []string{","}, false, false},
		{"the tag itself", []string{`"abc"`}, true, true},
		{"that of the compressed body is the same state", []string{`"abc-gzip"`}, true, true},
		{"a weak tag is good for reads alone", []string{`W/"abc"`}, false, true},
		{"a star names any", []string{"*"}, true, true},
		{"one of several", []string{`"x", "abc"`}, true, true},
		{"one of several lines", []string{`"x"`, `"abc"`}, true, true},
		{"another tag", []string{`"abcd"`}, false, false},
		{"a tag without quotation marks", []string{`abc`}, false, false},
		{"half a tag", []string{`"abc`}, false, false},
		{"a lone quotation mark", []string{`"`}, false, false},
		{"more tags than are read", []string{strings.Repeat(`"x",`, 64) + `"abc"`}, false, false},
	} {
		harness.Same(t, test.reason+": If-Match", test.match, etag.IfMatch(test.values).Names("abc"))
		harness.Same(t, test.reason+": If-None-Match", test.nonMatch, etag.IfNoneMatch(test.values).Names("abc"))
		if !etag.IfMatch(test.values).Given() || !etag.IfNoneMatch(test.values).Given() {
			t.Errorf("%s: the condition is lost", test.reason)
		}
	}
}

func TestAnEmptyHeaderIsAsIfItWereNotGiven(t *testing.T) {
	for _, values := range [][]string{nil, {""}, {" \t"}, {"", ""}} {
		if etag.IfMatch(values).Given() || etag.IfNoneMatch(values).Given() {
			t.Errorf("%q is a condition", values)
		}
	}
	if !etag.IfMatch([]string{"", `"abc"`}).Given() {
		t.Error("the condition of a second line is lost")
	}
}

func TestWhatIsFormattedIsNamed(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		if value := etag.Format("abc", compressed); !etag.IfMatch([]string{value}).Names("abc") {
			t.Errorf("%s is not read back", value)
		}
	}
	if etag.Format("abc", true) == etag.Format("abc", false) {
		t.Error("two bodies of different bytes have one tag")
	}
}

// A condition never gets lost, and only a header with the tag names it.
func FuzzCondition(f *testing.F) {
	for _, seed := range []string{``, `*`, `"abc"`, `W/"abc"`, `"abc-gzip"`, `"x","abc"`, `"`, `""`, `,`, `"a,bc"`, "\"abc\"\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, condition := range []etag.Condition{etag.IfMatch([]string{value}), etag.IfNoneMatch([]string{value})} {
			harness.Same(t, fmt.Sprintf("%q is a condition", value), strings.Trim(value, " \t") != "", condition.Given())
			if condition.Names("abc") && !strings.Contains(value, `"abc`) && !strings.Contains(value, "*") {
				t.Errorf("%q names abc", value)
			}
		}
	})
}
