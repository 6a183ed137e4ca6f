package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// drawn is an object; taken reads a part of it.
type drawn struct {
	Text     string           `json:"text"`
	Optional *string          `json:"optional"`
	Number   int              `json:"number"`
	Score    float32          `json:"score"`
	Is       bool             `json:"is"`
	List     []string         `json:"list"`
	Others   map[string]any   `json:"others"`
	More     []map[string]any `json:"more"`
	Last     string           `json:"<last>"`
}

type taken drawn

func (t *taken) TakeFrom(in *Reader) {
	for name := range in.Members() {
		switch string(name) {
		case "text":
			t.Text = in.Text()
		case "optional":
			t.Optional = in.Optional()
		case "number":
			t.Number = in.Int()
		case "score":
			t.Score = in.Float()
		case "is":
			t.Is = in.Bool()
		case "list":
			for range in.Items() {
				t.List = append(t.List, in.Text())
			}
		case "<last>": // which is escaped in the text
			t.Last = in.Text()
		}
	}
}

// odd generates strings that are hard to skip.
var odd = rapid.OneOf(rapid.String(), rapid.StringMatching(`([\\"{}\[\],:/a]|é|\n|\t|\x00|😀){0,12}`))

func drawObject(t *rapid.T) drawn {
	value := rapid.OneOf(
		odd.AsAny(), rapid.Float64Range(-1e9, 1e9).AsAny(),
		rapid.SampledFrom([]any{nil, true, false, []any{}, map[string]any{}, []any{"]", map[string]any{"}": "\\"}}}),
	)
	object := rapid.MapOfN(odd, value, 0, 4)
	return drawn{
		Text: odd.Draw(t, "text"), Optional: rapid.Ptr(odd, true).Draw(t, "optional"), Number: rapid.Int().Draw(t, "number"), Score: rapid.Float32().Draw(t, "score"),
		Is: rapid.Bool().Draw(t, "is"), List: rapid.SliceOf(odd).Draw(t, "list"), Others: object.Draw(t, "others"),
		More: rapid.SliceOfN(object, 0, 3).Draw(t, "more"), Last: odd.Draw(t, "last"),
	}
}

func TestTheReaderReadsWhatTheJSONHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := drawObject(t)
		text, err := json.MarshalIndent(object, "", rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "indent"))
		harness.Must(t, err)
		if rapid.Bool().Draw(t, "compact") {
			text, err = json.Marshal(object)
			harness.Must(t, err)
		}
		var want drawn
		harness.Must(t, json.Unmarshal(text, &want))
		var got taken
		if err := take(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want.Others, want.More = nil, nil
		if len(want.List) == 0 {
			want.List = nil
		}
		harness.Same(t, string(text), want, drawn(got))
	})
}

func TestDamagedJSONDoesNotPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(drawObject(t))
		harness.Must(t, err)
		cut := text[:rapid.IntRange(0, len(text)-1).Draw(t, "cut")]
		if take(cut, &taken{}) == nil {
			t.Fatalf("%s is cut, and nobody noticed", cut)
		}
		for range 3 {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text[at] = rapid.SampledFrom([]byte("\\\"{}[],:n1\xff ")).Draw(t, "byte")
		}
		_ = take(text, &taken{}) // it must not panic; an error is fine
	})
}

func TestInvalidJSONIsRefused(t *testing.T) {
	for _, text := range []string{
		``, ` `, `{`, `[]`, `nul`, `{"text"}`, `{"text":}`, `{"text":1}`, `{"text":"a" "b"}`, `{"text":"\u12"}`,
		"{\"text\":\"\xff\"}",
		`{"number":1.5}`, `{"score":"1"}`, `{"number":"1"}`, `{"is":1}`, `{"list":{}}`, `{"list":["a"}`, `{"a":"b",}`, `{} {}`, `{"more":[{}}`,
	} {
		if take([]byte(text), &taken{}) == nil {
			t.Errorf("%s is read as if it were one", text)
		}
	}
	for _, text := range []string{`{}`, `null`, ` { "text" : null , "list" : null, "is": null, "number" :null, "score": null } `} {
		var got taken
		if err := take([]byte(text), &got); err != nil || !reflect.DeepEqual(got, taken{}) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if err := take([]byte(`{"is":maybe}`), &taken{}); fmt.Sprint(err) != `at byte 11: "maybe" is no truth value` {
		t.Error(err)
	}
}
