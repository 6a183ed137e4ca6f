package uploads

import (
	"errors"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Only an import that waits for another one is busy. An API server that does not answer also keeps Scans from being
// recorded.
func TestAnImportIsBusyOnlyIfItWaitsForAnother(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		waiting bool
		code    int
		want    outcome
	}{
		{"another import holds the Lease", true, 429, outcomeBusy},
		{"the API server does not answer", false, 500, outcomeFailed},
	} {
		j := &job{}
		j.waiting.Store(tc.waiting)
		j.err = errors.Join(j.overdue(), errors.New("context canceled"))
		harness.Same(t, tc.reason, tc.code, problem.Of(explain(j.err)).Status)
		harness.Same(t, tc.reason, tc.want, outcomeOf(j))
	}
}
