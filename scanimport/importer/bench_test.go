package importer

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"

	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// manyResults returns n results of 50 rules in n/20 files.
func manyResults(n int) []sarif.Result {
	out := make([]sarif.Result, n)
	for i := range out {
		rule := &sarif.Rule{ID: fmt.Sprintf("lint/rule-%02d", i%50), ShortDescription: fmt.Sprintf("Problem of kind %d", i%50), Help: "Do it otherwise, for this way leads to what nobody wants. See the handbook."}
		out[i] = sarif.Result{
			Index: i, RuleID: rule.ID, Rule: rule, Severity: v1alpha1.LevelMedium, Level: "warning", CWEs: []string{"CWE-79"},
			Message: fmt.Sprintf("The value of parameter%d reaches a sink without a check, and whoever controls it controls what is done.", i),
			Location: sarif.Location{Path: fmt.Sprintf("src/main/java/org/example/module%03d/Class%04d.java", i%97, i/20),
				Line: int32(10 + 13*(i%20)), Column: 9, Snippet: fmt.Sprintf("\t\treturn sink(parameter%d, other.call(%d));", i, i*7)},
		}
		if i%2 == 0 {
			out[i].Fingerprints = map[string]string{"primaryLocationLineHash": fmt.Sprintf("%016x:1", i*2654435761)}
		}
	}
	return out
}

// BenchmarkUnchanged measures an import without changes: 20,000 results against 20,000 findings, decoded from JSON as
// from the API server.
func BenchmarkUnchanged(b *testing.B) {
	c := testContext(v1alpha1.CategoryCode)
	batch := &Batch{Tool: c.tool, Category: c.category, Results: manyResults(20_000)}
	var list v1alpha1.FindingList
	for _, ch := range compareAll(c, batch, nil).changes {
		list.Items = append(list.Items, v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: ch.name}, Spec: ch.spec})
	}
	encoded := harness.JSON(b, list)
	b.ReportAllocs()
	for b.Loop() {
		read := harness.Decoded[v1alpha1.FindingList](b, encoded)
		if p := compareAll(c, batch, read.Items); len(p.changes) != 0 {
			b.Fatalf("%d changes", len(p.changes))
		}
	}
}

func compareAll(c *scanContext, b *Batch, there []v1alpha1.Finding) plan {
	results, _, _ := report(context.Background(), c, b)
	return diff(c, b, results, &known{candidates: candidates{findings: there}})
}
