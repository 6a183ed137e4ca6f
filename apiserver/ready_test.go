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
	query := func(i int) pageKey { return keyOf(1, fmt.Sprintf("cursor=%03d", i)) }
	for i := range 100 {
		ask(pages, query(i), 1000)
		if pages.bytes > limit {
			t.Fatalf("%d bytes", pages.bytes)
		}
	}
	each := notedBytes + 1000 + len("acme") + len("cursor=001")
	if held := pages.shares["acme"].pages.Len(); held != limit/each || pages.bytes != held*each {
		t.Errorf("%d pages and %d bytes are kept within %d", held, pages.bytes, limit)
	}
	if _, again := pages.get(query(99)); !again {
		t.Error("what was asked for last is forgotten first")
	}
	large := keyOf(1, "size=1000")
	ask(pages, large, limit/8+1)
	if page, _ := pages.get(large); page.forms[plain] != nil {
		t.Error("a page that takes more than its share is kept")
	}
}

func TestAnOrganizationDoesNotCrowdOutAnothersPages(t *testing.T) {
	pages := newReadyPages(20_000)
	ask(pages, keyOf(1, "size=1"), 1000)
	for i := range 100 {
		other := keyOf(1, fmt.Sprintf("class=%03d", i))
		other.organization = "umbrella"
		ask(pages, other, 1000)
	}
	if page, _ := pages.get(keyOf(1, "size=1")); page.forms[plain] == nil {
		t.Error("the page of one organization gave way to those of another")
	}
}

func TestPagesOfAnOlderRevisionAreForgotten(t *testing.T) {
	pages := newReadyPages(20_000)
	for i := range 10 {
		ask(pages, keyOf(1, fmt.Sprintf("class=%03d", i)), 1000)
	}
	ask(pages, keyOf(2, "size=1"), 1000)
	want := notedBytes + 1000 + len("acme") + len("size=1")
	if pages.bytes != want {
		t.Errorf("%d bytes are kept, not %d", pages.bytes, want)
	}
	// A request that began before the change comes late.
	ask(pages, keyOf(1, "size=1"), 1000)
	if pages.bytes != want {
		t.Errorf("a page of an older revision is kept: %d bytes, not %d", pages.bytes, want)
	}
	if page, _ := pages.get(keyOf(2, "size=1")); page.forms[plain] == nil {
		t.Error("a late request made the newer page be forgotten")
	}
}

// ask for a page twice, and have it kept.
func ask(pages *readyPages, key pageKey, length int) {
	pages.get(key)
	pages.get(key)
	pages.keep(key, plain, make([]byte, length), length)
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
