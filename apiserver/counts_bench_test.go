package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// countClients count at the same time. Only one of them at a time counts an organization's findings.
const countClients = 4

// BenchmarkCounts reports how long counting by all fields takes, and the slowest of a hundred, through the
// whole chain: for one client, for several clients that wait for each other, and for the first count after a
// change.
func BenchmarkCounts(b *testing.B) {
	eachSize(b, func(b *testing.B, f *bigFacade, findings int) {
		for _, filter := range []string{
			"", "&status=open", "&status=open&severity=high", "&severity=high&tool=tool-3&owner=team-7", "&min_score=7&text=traversal",
		} {
			target := "/v2/finding-counts?values=6" + filter
			b.Run("all"+filter+"/one client", func(b *testing.B) { f.count(b, target, 1, func() {}) })
			b.Run(fmt.Sprintf("all%s/%d clients", filter, countClients), func(b *testing.B) {
				f.count(b, target, countClients, func() {})
			})
			b.Run("all"+filter+"/after a change", func(b *testing.B) {
				f.count(b, target, 1, func() { f.change(b, findings) })
			})
		}
	})
}

// count lets clients count until the benchmark is over, calling before each time.
func (f *bigFacade) count(b *testing.B, target string, clients int, before func()) {
	b.Helper()
	var mu sync.Mutex
	var took []time.Duration
	for b.Loop() {
		before()
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				answer, request := &discarded{header: http.Header{}}, f.request(http.MethodGet, target, "")
				start := time.Now()
				f.ServeHTTP(answer, request)
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(start))
				if answer.status != http.StatusOK {
					b.Errorf("%s is answered with %d", target, answer.status)
				}
			})
		}
		all.Wait()
	}
	b.ReportMetric(float64(median(took).Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(percentile99(took).Microseconds())/1000, "p99-ms")
}

// change changes one finding, and waits until readers see it.
func (f *bigFacade) change(b *testing.B, findings int) {
	changed := burstOf(findings, 1)[0]
	before, _ := f.model.Finding(acme, changed.Name)
	f.news.Modify(changed)
	if err := wait.PollUntilContextTimeout(b.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		now, _ := f.model.Finding(acme, changed.Name)
		return now != before, nil
	}); err != nil {
		b.Fatal(err)
	}
}
