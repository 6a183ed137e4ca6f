package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	// burstChanges arrive as fast as they are applied.
	burstChanges = 10_000
	// burstReaders read the first page during the burst, each over its own connection.
	burstReaders = 4
)

// burstVersion is newer than every other version written here.
var burstVersion = 1_000_000_000

// BenchmarkReadsInABurst reports by how much the slowest percent of reads gets slower while 10,000 findings
// change at once.
func BenchmarkReadsInABurst(b *testing.B) {
	eachSize(b, func(b *testing.B, f *bigFacade, findings int) {
		var reads []func() error
		for range burstReaders {
			reads = append(reads, loopback(b, f, f.request(http.MethodGet, "/v1/findings?size=100", "")))
		}
		var burst, quiet []time.Duration
		var took time.Duration
		for b.Loop() {
			changes := burstOf(findings, burstChanges)
			began := time.Now()
			burst = append(burst, timesUntil(b, reads, func() {
				for _, changed := range changes {
					f.news.Modify(changed)
				}
			})...)
			length := time.Since(began)
			took += length
			quiet = append(quiet, timesUntil(b, reads, func() { <-time.After(length) })...)
		}
		b.ReportMetric(float64(percentile99(burst))/float64(percentile99(quiet)), "p99-ratio")
		b.ReportMetric(float64(median(burst))/float64(median(quiet)), "p50-ratio")
		b.ReportMetric(float64(percentile99(burst).Microseconds())/1000, "burst-p99-ms")
		b.ReportMetric(float64(burstChanges)*float64(b.N)/took.Seconds(), "changes/s")
	})
}

// burstOf returns that many changed findings, each in turn.
func burstOf(findings, changes int) (all []*v1alpha1.Finding) {
	for range changes {
		burstVersion++
		finding := benchFinding(burstVersion % findings)
		finding.Namespace, finding.UID, finding.Generation = acmeNamespace, types.UID("uid-"+finding.Name), 1
		finding.ResourceVersion = fmt.Sprint(burstVersion)
		all = append(all, finding)
	}
	return all
}

// timesUntil returns how long reads took until a function returns. Each reader reads without pause.
func timesUntil(b *testing.B, reads []func() error, until func()) (all []time.Duration) {
	over := make(chan struct{})
	var mu sync.Mutex
	var readers sync.WaitGroup
	for _, read := range reads {
		readers.Go(func() {
			var own []time.Duration
			for {
				select {
				case <-over:
					mu.Lock()
					defer mu.Unlock()
					all = append(all, own...)
					return
				default:
				}
				began := time.Now()
				if err := read(); err != nil {
					b.Error(err)
					return
				}
				own = append(own, time.Since(began))
			}
		})
	}
	until()
	close(over)
	readers.Wait()
	return all
}

func percentile99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}
