package apiserver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/content"
)

func bodyOf(texts ...string) (parts []content.Part, length int) {
	for _, text := range texts {
		parts = append(parts, content.Of([]byte(text)))
		length += len(text)
	}
	return parts, length
}

func TestABodyIsKeptFromTheSecondTimeOn(t *testing.T) {
	kept := newReadyBodies(1000)
	parts, length := bodyOf("a", "b", "c")
	made := 0
	ask := func(parts []content.Part, of form) string {
		return string(kept.get(parts, length, of, func() []byte { made++; return joined(parts, length) }))
	}
	for i, want := range []string{"", "abc", "abc"} {
		if got := ask(parts, plain); got != want {
			t.Errorf("time %d: got %q, want %q", i+1, got, want)
		}
	}
	if got := ask(parts, compressed); got != "" || made != 1 {
		t.Errorf("another form is another matter: got %q, made %d", got, made)
	}
	again := append([]content.Part{}, parts[:2]...)
	again = append(again, content.Of([]byte("c")))
	if got := ask(again, plain); got != "abc" || made != 1 {
		t.Errorf("the end is made anew for each answer: got %q, made %d", got, made)
	}
	again[2] = content.Of([]byte("d"))
	if got := ask(again, plain); got != "" {
		t.Errorf("another end is another body: got %q", got)
	}
	other, _ := bodyOf("x", "b", "c")
	if got := ask(other, plain); got != "" {
		t.Errorf("another first part is another body: got %q", got)
	}
}

func TestReadyBodiesAreBounded(t *testing.T) {
	kept := newReadyBodies(100)
	for i := range 50 {
		parts, length := bodyOf(fmt.Sprintf("%05d", i), "12345")
		for range 2 {
			kept.get(parts, length, plain, func() []byte { return joined(parts, length) })
		}
		if kept.length > 100 || kept.length != 10*kept.noted.Len() {
			t.Fatalf("%d bytes, %d bodies of 10", kept.length, kept.noted.Len())
		}
	}
	if kept.noted.Len() != 10 {
		t.Errorf("%d bodies of 10 bytes are kept within 100", kept.noted.Len())
	}
	parts, _ := bodyOf("a", strings.Repeat("x", 20))
	if kept.get(parts, 21, plain, nil) != nil || kept.noted.Len() != 10 {
		t.Error("a body that takes more than its share is noted")
	}
}

// A page that is kept is sent in the same bytes as one that is not, compressed or not, and a change
// of a row shows at once.
func TestKeptPagesAreWhatTheyWouldBe(t *testing.T) {
	f := facadeOf(t, 200)
	const target = "/v1/findings?size=100&sort=created_at&order=asc"
	read := func(encoding string) string {
		t.Helper()
		request := f.request(http.MethodGet, target, "")
		request.Header.Set("Accept-Encoding", encoding)
		answer := httptest.NewRecorder()
		f.ServeHTTP(answer, request)
		if encoding == "" {
			return answer.Body.String()
		}
		if answer.Header().Get("Content-Encoding") != encoding {
			t.Fatalf("it is not encoded with %s", encoding)
		}
		reader, err := gzip.NewReader(bytes.NewReader(answer.Body.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	first := read("")
	for range 3 {
		if read("") != first || read("gzip") != first {
			t.Fatal("the page differs from the first time")
		}
	}
	id := first[strings.Index(first, `"id":"`)+len(`"id":"`):][:len("f-00000000")]
	answer := httptest.NewRecorder()
	f.ServeHTTP(answer, f.request(http.MethodPatch, "/v1/findings/"+id, `{"user_status":"active"}`))
	if row := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(read(""), row) || !strings.Contains(read("gzip"), row) {
		t.Errorf("%s was changed and the page does not show it", id)
	}
}
