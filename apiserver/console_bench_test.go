package apiserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// next returns the cursor of the second page of the console's list.
func (f *bigFacade) next(tb testing.TB) string {
	tb.Helper()
	var page struct {
		Next string `json:"next_cursor"`
	}
	harness.Must(tb, json.Unmarshal(f.body(tb, "/v2/full-findings?size=100"), &page))
	return url.Values{"cursor": {page.Next}}.Encode()
}

// BenchmarkConsole reports how close the console's list comes to the JSON list of the same rows. Both are
// rendered again, in turn.
func BenchmarkConsole(b *testing.B) {
	eachSize(b, func(b *testing.B, f *bigFacade, _ int) {
		for _, c := range []struct {
			name, target string
			fragment     bool
		}{
			{"rows", "/console/findings?part=rows&" + f.next(b), true},
			{"list", "/console/findings", false},
			{"groups by rule", "/console/findings?group=rule", false},
			{"groups by path", "/console/findings?group=file", false},
		} {
			b.Run(c.name, func(b *testing.B) {
				page := f.request(http.MethodGet, c.target, "")
				page.Header.Del("Authorization")
				page.AddCookie(f.sessions.Cookie(f.token, false, time.Now()))
				if c.fragment {
					page.Header.Set("X-Console-Fragment", "1")
				}
				var html, data []time.Duration
				answer := &discarded{header: http.Header{}}
				serve := func(request *http.Request) func() error {
					return func() error {
						clear(answer.header)
						f.ServeHTTP(answer, request)
						return nil
					}
				}
				for b.Loop() {
					html = append(html, clocked(b, serve(page)))
					data = append(data, clocked(b, serve(f.request(http.MethodGet, "/v2/full-findings?size=100", ""))))
				}
				b.ReportMetric(float64(median(data))/float64(median(html)), "of-json")
				b.ReportMetric(float64(median(html).Nanoseconds()), "ns/page")
			})
		}
	})
}
