package uploads

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Only an import that waits for another one is busy. An API server that does not answer also keeps Scans from being
// recorded.
func TestAnImportIsBusyOnlyIfItWaitsForAnother(t *testing.T) {
	for _, tc := range []struct {
		reason string
		err    error
		code   int
		want   outcome
	}{
		{"another import holds the Lease", importer.ErrWaiting, 429, outcomeBusy},
		{"the API server does not answer", context.Canceled, 500, outcomeFailed},
	} {
		j := &job{err: errors.Join(errTooSlow, fmt.Errorf("import: %w", tc.err))}
		harness.Same(t, tc.reason, tc.code, problem.Of(explain(j.err)).Status)
		harness.Same(t, tc.reason, tc.want, outcomeOf(j))
	}
}
