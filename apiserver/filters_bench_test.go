package apiserver

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// benchAsked draws the values of filterable fields: findings of one rule have the same tool and score, and so
// do those of one vulnerability, a third of all findings.
func benchAsked(random *rand.Rand, finding *v1alpha1.Finding) {
	words := []string{"SQL", "injection", "Path", "traversal", "Weak", "hash", "Hard-coded", "credential", "Open", "redirect"}
	spec := &finding.Spec
	rule := random.IntN(500)
	spec.Tool, spec.RuleID, spec.Category = fmt.Sprintf("tool-%d", rule%5), fmt.Sprintf("RULE-%d", rule), v1alpha1.CategoryCode
	spec.Details.Score = fmt.Sprintf("%d.%d", rule%10, rule/10%10)
	path := random.IntN(20_000)
	spec.Details.Location.FilePath = fmt.Sprintf("services/component-%d/internal/handlers/File%d.go", path%100, path)
	spec.Details.Title = fmt.Sprintf("%s %s in function handle%d", words[rule%10], words[rule/10%10], random.IntN(1000))
	if random.IntN(3) > 0 {
		return
	}
	id := random.IntN(2000)
	name := fmt.Sprintf("package-%d", id/4)
	spec.Category, spec.Tool, spec.RuleID = v1alpha1.CategoryPackage, "trivy", fmt.Sprintf("CVE-2026-%04d", id)
	spec.Vulnerability = &v1alpha1.FindingVulnerability{ID: spec.RuleID, Aliases: []string{fmt.Sprintf("GHSA-%04d", id)}}
	spec.Package = &v1alpha1.FindingPackage{Name: name, PURL: "pkg:npm/" + name + "@1.2.3", Version: "1.2.3"}
	spec.Details.Title = fmt.Sprintf("%s: %s %s", name, words[id%10], words[id/10%10])
}

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
