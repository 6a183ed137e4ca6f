package readmodel

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

const benchFindings = 100_000

// benchModel is shared by the benchmarks: 100,000 findings of 500 projects of 20 owners, 50 classes, 5 tools, 500 rules
// and 20,000 files, a third of them of 2,000 vulnerabilities in 500 packages.
var benchModel = sync.OnceValue(func() *Model {
	objects := make([]metav1.Object, benchFindings)
	for i := range objects {
		objects[i] = benchFinding(i, 10+i)
	}
	owned := make([]metav1.Object, 500)
	for i := range owned {
		p := project(fmt.Sprintf("project-%d", i), 10+i)
		p.Spec.Owner = fmt.Sprintf("team-%d", i%20)
		p.Spec.RepositoryRef.Name = v1alpha1.ResourceName(fmt.Sprintf("repo-%d", i/5))
		owned[i] = p
	}
	m, err := New(Options{Source: byHand, Log: logr.Discard()})
	if err != nil {
		panic(err)
	}
	for k, list := range map[kind][]metav1.Object{
		organizations: {organization(acme, acmeNamespace, 1)},
		projects:      owned,
		findings:      objects,
	} {
		if err := m.replace(k, list, "1000000"); err != nil {
			panic(err)
		}
	}
	settle(m)
	return m
})

var benchText = strings.Repeat("if a < b { return }\n", 30)

func benchFinding(i, rv int) *v1alpha1.Finding {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	return finding(fmt.Sprintf("f-%08d", i), rv, func(f *v1alpha1.Finding) {
		f.Spec.DetectedAt = &v1alpha1.Time{Time: epoch.Add(time.Duration(random.IntN(1_000_000)) * time.Second)}
		f.Status.ObservedGeneration, f.Status.UpdatedAt = 1, f.Spec.DetectedAt
		project := random.IntN(500)
		f.Spec.ProjectRef.Name = v1alpha1.ResourceName(fmt.Sprintf("project-%d", project))
		f.Spec.RepositoryRef.Name = v1alpha1.ResourceName(fmt.Sprintf("repo-%d", project/5))
		f.Spec.Details.Severity = []v1alpha1.Level{"high", "medium", "low"}[random.IntN(3)]
		f.Spec.Details.Description, f.Spec.Details.Code = benchText, benchText
		builder.Scanned(random, &f.Spec)
		if random.IntN(1000) == 0 {
			muted(f)
		}
		if random.IntN(3) == 0 {
			f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(epoch)}
		}
	})
}

func BenchmarkCountFindings(b *testing.B) {
	high := "high"
	m := benchModel()
	for name, q := range map[string]CountQuery{
		"unfiltered":    {Values: 20},
		"high":          {Values: 20, Filter: FindingFilter{Severity: &high}},
		"words":         {Values: 20, Filter: FindingFilter{Words: []string{"traversal"}}},
		"rules of high": {Values: 1000, Field: "rule", Filter: FindingFilter{Severity: &high}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.CountFindings(testContext, acme, q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMemory reports the memory of a finding with 1,200 characters.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		m := benchModel()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		b.ReportMetric(float64(stats.HeapAlloc)/benchFindings, "B/finding")
		runtime.KeepAlive(m)
	}
}
