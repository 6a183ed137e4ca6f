package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/appsec-dev/findings-operator/apiserver/strictjson"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestOnlyOneObjectWithoutRepeatedNamesIsRead(t *testing.T) {
	for _, test := range []struct {
		reason  string
		content string
		refused bool
	}{
		{"an object is read", `{"user_status":"open"}`, false},
		{"an empty object is an object", `{}`, false},
		{"white space may stand around it", " \r\n\t{ } \n", false},
		{"the same name may come in two objects", `{"a":{"x":1},"b":{"x":1},"x":[{"x":1},{"x":2}]}`, false},
		{"a name and a value may be the same", `{"a":"a","b":"a"}`, false},
		{"names differ by case", `{"a":1,"A":2}`, false},
		{"a whole surrogate pair is a character", `{"a":"\ud83d\ude00"}`, false},
		{"an escaped backslash before u escapes nothing", `{"a":"\\ud800"}`, false},
		{"nothing is no object", ``, true},
		{"white space is no object", " \n", true},
		{"null is no object", `null`, true},
		{"an array is no object", `[{}]`, true},
		{"a string is no object", `"{}"`, true},
		{"an object must end", `{"a":1`, true},
		{"a second value must not follow", `{} {}`, true},
		{"nothing must follow", `{}x`, true},
		{"a name must not come twice", `{"a":1,"a":1}`, true},
		{"a name must not come twice further down", `{"a":[{"b":{"c":1,"c":2}}]}`, true},
		{"an escape does not hide a second name", `{"a":1,"\u0061":1}`, true},
		{"a name must not come twice after a nested value", `{"a":{"b":[]},"a":1}`, true},
		{"bytes must be UTF-8", "{\"a\":\"\xff\"}", true},
		{"a byte order mark is not JSON", "\ufeff{}", true},
		{"the first half of a pair is no character", `{"a":"\ud83d"}`, true},
		{"the second half of a pair is no character", `{"a":"\ude00"}`, true},
		{"two first halves are no character", `{"a":"\ud83d\ud83d"}`, true},
		{"half a pair is refused in a name too", `{"\ud83d":1}`, true},
		{"a comma must not trail", `{"a":1,}`, true},
		{"NaN is not JSON", `{"a":NaN}`, true},
	} {
		_, err := strictjson.Object([]byte(test.content))
		if refused := err != nil; refused != test.refused {
			t.Errorf("%s: %q: error %v", test.reason, test.content, err)
		}
	}
}

func TestDeepNestingIsRefusedOrReadAndNeverCrashes(t *testing.T) {
	for _, depth := range []int{100, 5_000, 30_000} {
		content := `{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
		if _, err := strictjson.Object([]byte(content)); err != nil && depth < 5_000 {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

func TestStringTakesStringsAlone(t *testing.T) {
	for _, raw := range []string{`null`, `1`, `true`, `[]`, `{}`, ``} {
		if value, ok := strictjson.String(json.RawMessage(raw)); ok {
			t.Errorf("%s was read as the string %q", raw, value)
		}
	}
	if value, ok := strictjson.String(json.RawMessage(`"\u00e9"`)); !ok || value != "é" {
		t.Errorf("got %q, %v", value, ok)
	}
}

// Everything that is accepted is also accepted by encoding/json, with only one interpretation.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1,"a":2}`, `{"a":"\ud83d\ude00"}`, `{"a":[{"b":null}]}`, "{\"\xff\":1}", `{"a":"\\\ud800"}`, `[]`, `{}{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		members, err := strictjson.Object(content)
		if err != nil {
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 1024 {
				t.Errorf("the error is not fit for a client: %q", err)
			}
			return
		}
		var loose map[string]any
		if err := json.Unmarshal(content, &loose); err != nil {
			t.Fatalf("accepted %q, which encoding/json refuses: %v", content, err)
		}
		harness.Same(t, fmt.Sprintf("members of %q", content), len(loose), len(members))
		// An unpaired surrogate or invalid UTF-8 would turn into a U+FFFD that was not in the input.
		out := harness.JSON(t, loose)
		if strings.ContainsRune(string(out), utf8.RuneError) &&
			!strings.ContainsRune(string(content), utf8.RuneError) && !strings.Contains(strings.ToLower(string(content)), `\ufffd`) {
			t.Errorf("%q was read as %q", content, out)
		}
	})
}
