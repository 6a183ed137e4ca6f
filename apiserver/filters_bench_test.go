package apiserver

import (
	"net/http"
	"net/url"
	"testing"
	"time"
)

// BenchmarkFilters reports the cost of a page of 100 findings with a filter relative to a page without a
// filter, requested in turn through the whole chain, and the slowest of a hundred. A filter that matches less
// than a page has a smaller page to send.
func BenchmarkFilters(b *testing.B) {
	const page = "/v2/findings?size=100"
	since := url.QueryEscape(benchEpoch.Add(900_000 * time.Second).Format(time.RFC3339))
	eachSize(b, func(b *testing.B, f *bigFacade, _ int) {
		for _, filter := range []string{
			"tool=trivy", "tool=tool-3", "category=Package", "rule=RULE-77", "vulnerability=GHSA-0042", "package=package-7", "owner=team-7",
			"min_score=7", "min_score=9.5", "created_since=" + since, "updated_since=" + since + "&sort=updated_at",
			"owner=team-7&created_since=" + since, "tool=tool-3&sort=updated_at", "owner=team-7&sort=updated_at",
			"package=pkg:npm/package-7@1.2.3", "text=traversal", "text=sql+file7", "text=nowhere", "tool=trivy&status=open",
			"category=Code&severity=high&min_score=5", "text=hash&owner=team-7&category=Code", "created_since=" + since + "&updated_since=" + since + "&text=open",
		} {
			b.Run(filter, func(b *testing.B) {
				var filtered, plain []time.Duration
				ask := func(target string) time.Duration {
					request := f.request(http.MethodGet, target, "")
					answer := &discarded{header: http.Header{}}
					start := time.Now()
					f.ServeHTTP(answer, request)
					if answer.status != http.StatusOK {
						b.Fatalf("%s is answered with %d", target, answer.status)
					}
					return time.Since(start)
				}
				for b.Loop() {
					filtered, plain = append(filtered, ask(page+"&"+filter)), append(plain, ask(page))
				}
				b.ReportMetric(float64(percentile99(filtered).Microseconds())/1000, "p99-ms")
				b.ReportMetric(float64(median(filtered).Microseconds()), "p50-µs")
				b.ReportMetric(float64(median(filtered))/float64(median(plain)), "of-a-page")
			})
		}
	})
}
