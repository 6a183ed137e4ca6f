package apiserver

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// keyOf is a page's key in that revision.
func keyOf(revision uint64, query string) pageKey {
	return pageKey{revision: revision, organization: "acme", operation: "list", query: query}
}

func TestAPageIsKeptFromTheSecondTimeOn(t *testing.T) {
	pages := newReadyPages(100_000)
	if page, again := pages.get(keyOf(1, "size=1")); again || page.forms[plain] != nil {
		t.Errorf("the first time: %+v, %t", page, again)
	}
	if _, again := pages.get(keyOf(1, "size=1")); !again {
		t.Error("the second time is taken for the first")
	}
	pages.keep(keyOf(1, "size=1"), plain, []byte("abc"), 3)
	pages.keep(keyOf(1, "size=1"), compressed, []byte("a"), 3)
	page, _ := pages.get(keyOf(1, "size=1"))
	if page.length != 3 || string(page.forms[plain]) != "abc" || string(page.forms[compressed]) != "a" {
		t.Errorf("got %+v", page)
	}
	other := keyOf(1, "size=1")
	other.organization = "umbrella"
	for _, key := range []pageKey{keyOf(2, "size=1"), keyOf(1, "size=2"), other} {
		if page, again := pages.get(key); again || page.forms[plain] != nil {
			t.Errorf("%+v is another page: %+v, %t", key, page, again)
		}
	}
}

func TestReadyPagesAreBounded(t *testing.T) {
	const limit = 20_000
	pages := newReadyPages(limit)
	for i := range 100 {
		key := keyOf(uint64(i), "size=1")
		for range 2 {
			pages.get(key)
			pages.keep(key, plain, make([]byte, 1000), 1000)
		}
		if pages.bytes > limit {
			t.Fatalf("%d bytes", pages.bytes)
		}
	}
	if each := notedBytes + 1000 + len("acme") + len("size=1"); pages.noted.Len() != limit/each || pages.bytes != pages.noted.Len()*each {
		t.Errorf("%d pages and %d bytes are kept within %d", pages.noted.Len(), pages.bytes, limit)
	}
	if _, again := pages.get(keyOf(99, "size=1")); !again {
		t.Error("what was asked for last is forgotten first")
	}
	large := keyOf(1000, "size=1000")
	pages.get(large)
	pages.keep(large, plain, make([]byte, limit/8+1), limit/8+1)
	if page, _ := pages.get(large); page.forms[plain] != nil {
		t.Error("a page that takes more than its share is kept")
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
	row := first
	for range 2 { // the stub stores one decision, then another: one of them is news
		answer := httptest.NewRecorder()
		f.ServeHTTP(answer, f.request(http.MethodPatch, "/v1/findings/"+id, `{"user_status":"active"}`))
		if row = answer.Body.String(); answer.Code != http.StatusOK {
			t.Fatalf("%d %s", answer.Code, row)
		}
		if !strings.Contains(first, row) {
			break
		}
	}
	if strings.Contains(first, row) {
		t.Fatal("the change changes nothing")
	}
	if !strings.Contains(read(""), row) || !strings.Contains(read("gzip"), row) {
		t.Errorf("%s was changed and the page does not show it", id)
	}
}
