package findingtrend

import (
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// BenchmarkContinue counts a project of 100,000 findings, each with some history, for today and the day before.
func BenchmarkContinue(b *testing.B) {
	findings := make([]v1alpha1.Finding, 100_000)
	for i := range findings {
		findings[i] = finding(i%400, nil, did("created", days(-i%400), "", "open"), did("triaged", days(-i%30), "open", "active"))
	}
	last := Row(Plus(today, -1), findings, days(-1))
	for b.Loop() {
		Continue(&last, days(-1), findings, noon)
	}
}
