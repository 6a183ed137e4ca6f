package attack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// maxAnswer bounds how much of an answer is read, in bytes.
const maxAnswer = 64 << 20

// shot is a request that is sent as it is written: its path is not normalized.
type shot struct {
	method, path, body string
	header             http.Header
}

// with returns the shot with an additional header.
func (s shot) with(name, value string) shot {
	header := s.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header[name] = []string{value}
	s.header = header
	return s
}

// signedAs returns the shot with the headers by which a proxy or kubectl names another user.
func (s shot) signedAs(user string) shot {
	for _, name := range []string{"Impersonate-User", "X-Remote-User", "X-Forwarded-User"} {
		s = s.with(name, user)
	}
	return s
}

func (s shot) String() string {
	return fmt.Sprintf("%s %.300s %.200s", s.method, s.path, s.body)
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
	// searched is the whole answer in lower case, once holds has been called.
	searched string
}

func (a *answer) String() string { return fmt.Sprintf("%d %.300s", a.status, a.body) }

// direct requests no compression, so that every byte of an answer can be searched, and follows no
// redirects.
var direct = &http.Client{
	Timeout:       patience,
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// anybody counts clients: each request without a valid key comes from a separate address.
var anybody atomic.Uint32

func someAddress() string {
	n := anybody.Add(1)
	return fmt.Sprintf("10.%d.%d.%d", n>>16&0xff, n>>8&0xff, n&0xff)
}

// send sends a shot with the token, or without one if it is "".
func (f *facade) send(t *testing.T, token string, s shot) *answer {
	t.Helper()
	a, err := f.try(t, token, s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return a
}

func (f *facade) try(t *testing.T, token string, s shot) (*answer, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), s.method, "http://"+f.Address, strings.NewReader(s.body))
	if err != nil {
		return nil, err
	}
	request.URL = &url.URL{Scheme: "http", Host: f.Address, Opaque: s.path}
	request.Header.Set("X-Forwarded-For", someAddress())
	if s.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	maps.Copy(request.Header, s.header)
	start := time.Now()
	response, err := direct.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return &answer{status: response.StatusCode, header: response.Header, body: content, took: time.Since(start)}, err
}

// volatile are the headers that differ between any two answers.
var volatile = []string{"Date", "X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After", "X-Data-Age"}

// same reports whether two answers give the same information.
func (a *answer) same(other *answer) bool {
	return a.status == other.status && bytes.Equal(a.body, other.body) && a.headers() == other.headers()
}

// headers returns all headers except the volatile ones, as text.
func (a *answer) headers() string {
	out := ""
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		if !slices.Contains(volatile, name) {
			out += fmt.Sprintf("%s: %q\n", name, a.header[name])
		}
	}
	return out
}

// holds reports whether the text occurs anywhere in the answer.
func (a *answer) holds(text string) bool {
	if a.searched == "" {
		a.searched = strings.ToLower(fmt.Sprintf("%s\n%v", a.body, a.header))
	}
	return strings.Contains(a.searched, strings.ToLower(text))
}

// page is a list's envelope.
type page struct {
	Items      []map[string]any `json:"items"`
	NextCursor string           `json:"next_cursor"`
	Total      int              `json:"total"`
}

func (a *answer) page(t *testing.T) page {
	t.Helper()
	var p page
	if err := json.Unmarshal(a.body, &p); err != nil || a.status != http.StatusOK {
		t.Fatalf("no page: %s (%v)", a, err)
	}
	return p
}
