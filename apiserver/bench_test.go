package apiserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	runtimemetrics "runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// at returns the path of the page of a list that begins after a share of its rows.
func (f *bigFacade) at(tb testing.TB, share float64) string {
	tb.Helper()
	const first = "/v1/findings?size=100"
	page := struct {
		Total int    `json:"total"`
		Next  string `json:"next_cursor"`
	}{}
	harness.Must(tb, json.Unmarshal(f.body(tb, first), &page))
	skip := int(share*float64(page.Total)) - 100
	if skip <= 0 {
		return first
	}
	target := first
	for left := skip; left > 0; left -= 1000 {
		harness.Must(tb, json.Unmarshal(f.body(tb, strings.Replace(target, "size=100", fmt.Sprintf("size=%d", min(left, 1000)), 1)), &page))
		target = first + "&cursor=" + url.QueryEscape(page.Next)
	}
	return target
}

// ceilingOf returns a Gin handler that writes the same bytes from memory.
func ceilingOf(body []byte) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/*path", func(c *gin.Context) { c.Data(http.StatusOK, "application/json", body) })
	return engine
}

// loopback serves a handler over TCP, and returns a function that sends the request once and reads the whole
// response.
func loopback(tb testing.TB, handler http.Handler, request *http.Request) func() error {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	harness.Must(tb, err)
	tb.Cleanup(func() { connection.Close() }) //nolint:errcheck // the benchmark is over
	var wire bytes.Buffer
	harness.Must(tb, request.Write(&wire))
	reader := bufio.NewReaderSize(connection, 256<<10)
	return func() error {
		if _, err := connection.Write(wire.Bytes()); err != nil {
			return err
		}
		answer, err := http.ReadResponse(reader, request)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("answered with %s", answer.Status)
		}
		return answer.Body.Close()
	}
}

// BenchmarkAgainstCeiling reports how close the service comes to a Gin handler that writes the same bytes from
// memory. Both are called in turn over separate connections. The ratio is of medians.
func BenchmarkAgainstCeiling(b *testing.B) {
	eachSize(b, func(b *testing.B, f *bigFacade, _ int) {
		for _, c := range []struct{ name, target string }{
			{"first", f.at(b, 0)},
			{"middle", f.at(b, .5)},
			{"last", f.at(b, 1)},
			{"one finding", "/v2/repos/" + f.placeOf(b, "f-00000007")},
		} {
			b.Run(c.name, func(b *testing.B) {
				service := loopback(b, f, f.request(http.MethodGet, c.target, ""))
				ceiling := loopback(b, ceilingOf(f.body(b, c.target)), f.request(http.MethodGet, c.target, ""))
				var ours, theirs []time.Duration
				for b.Loop() {
					ours = append(ours, clocked(b, service))
					theirs = append(theirs, clocked(b, ceiling))
				}
				b.ReportMetric(float64(median(theirs))/float64(median(ours)), "of-ceiling")
				b.ReportMetric(float64(median(ours).Nanoseconds()), "ns/request")
			})
		}
	})
}

// eachSize runs a benchmark with few findings and with many.
func eachSize(b *testing.B, run func(b *testing.B, f *bigFacade, findings int)) {
	for _, findings := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(findings), func(b *testing.B) { run(b, facadeOf(b, findings), findings) })
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func clocked(b *testing.B, do func() error) time.Duration {
	start := time.Now()
	harness.Must(b, do())
	return time.Since(start)
}

// BenchmarkRequest measures requests through the whole chain, without a network.
func BenchmarkRequest(b *testing.B) {
	at := func(minutes int) string {
		return url.QueryEscape(benchEpoch.Add(time.Duration(minutes) * time.Minute).Format(time.RFC3339))
	}
	eachSize(b, func(b *testing.B, f *bigFacade, findings int) {
		for _, c := range []struct{ name, target string }{
			{"findings/first", f.at(b, 0)},
			{"findings/last", f.at(b, 1)},
			{"findings/muted", "/v1/findings?size=100&status=open_muted"},
			{"findings/project", "/v1/findings?size=100&project_id=project-7"},
			{"findings/class+severity", "/v1/findings?size=100&class=CWE-7&severity=high"},
			{"findings/none", "/v1/findings?size=100&status=closed"},
			{"finding", "/v2/repos/" + f.placeOf(b, "f-00000007")},
			{"reviews", "/v1/reviews?size=100"},
			{"reviews/merged", "/v1/reviews?size=100&status=merged"},
			{"reviews/not reviewed", "/v1/reviews?size=100&custom=not_reviewed"},
			{"reviews/ten by title", "/v1/reviews?size=100&sort=pr_title&start_time=" + at(50) + "&end_time=" + at(60)},
			{"reviews/half by title", "/v1/reviews?size=100&sort=pr_title&start_time=" + at(findings/20)},
			{"repos", "/v2/repos?size=100"},
		} {
			b.Run(c.name, func(b *testing.B) {
				request := f.request(http.MethodGet, c.target, "")
				answer := &discarded{header: http.Header{}}
				b.ReportAllocs()
				collector, all := processorTime()
				for b.Loop() {
					clear(answer.header)
					f.ServeHTTP(answer, request)
				}
				collectorNow, allNow := processorTime()
				b.ReportMetric(100*(collectorNow-collector)/max(allNow-all, 1e-9), "gc-cpu-%")
			})
		}
		b.Run("patch", func(b *testing.B) {
			b.ReportAllocs()
			next := 0
			for b.Loop() {
				next++
				request := f.request(http.MethodPatch, fmt.Sprintf("/v1/findings/f-%08d", next%findings), fmt.Sprintf(`{"user_status":%q}`, []string{"muted", "active"}[next%2]))
				f.ServeHTTP(&discarded{header: http.Header{}}, request)
			}
		})
	})
}

// processorTime returns how much processor time the garbage collector and the whole process have used since its
// start, in seconds, as of the last collection.
func processorTime() (collector, all float64) {
	samples := []runtimemetrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}}
	runtimemetrics.Read(samples)
	return samples[0].Value.Float64(), samples[1].Value.Float64()
}

// BenchmarkExport exports all findings, also filtered by a word that most of them contain: then each page
// searches all findings.
func BenchmarkExport(b *testing.B) {
	eachSize(b, func(b *testing.B, f *bigFacade, _ int) {
		for _, query := range []string{"format=csv", "format=sarif", "text=e", "text=e&sort=updated_at"} {
			b.Run(query, func(b *testing.B) {
				for b.Loop() {
					f.ServeHTTP(&discarded{header: http.Header{}}, f.request(http.MethodGet, "/v2/finding-export?"+query, ""))
				}
			})
		}
	})
}
