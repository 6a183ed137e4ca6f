package uploads

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// As long as the CRDs lack the field, every upload fails.
func TestAnImportThatTheCRDsDoNotUnderstandIsNotToBeTriedAgain(t *testing.T) {
	for reason, err := range map[string]error{
		"a review is written strictly": apierrors.NewBadRequest(`strict decoding error: unknown field "spec.facts"`),
		"an import applies": apierrors.NewInternalError(
			errors.New("failed to create typed patch object: .spec.facts: field not declared in schema")),
	} {
		p := problem.Of(explain(fmt.Errorf("write issue i-1: %w", err)))
		harness.Same(t, reason, problem.OutdatedCRDs(nil).Detail+"; what is already written is kept", p.Detail)
		harness.Same(t, reason+": retry-after", time.Duration(0), p.RetryAfter)
	}
}

// It uploads such results once more.
func TestTheScriptForCIKnowsAnImportThatTheServiceStopped(t *testing.T) {
	stopped := importer.StoppedEarly + " (" + errStopping.Error() + ")"
	harness.Same(t, "it looks for it", true, strings.Contains(harness.RepositoryFile(t, "docs", "findings.sh"), stopped))
}

// The log of a service whose level is error has a line for each failure that the metrics count.
func TestAnUploadThatFailsThroughTheServiceEndsWithAnError(t *testing.T) {
	for _, tc := range []struct {
		err   error
		level string
	}{
		{nil, "INFO"},
		{&importer.RefusedError{Reason: "a newer scan was imported"}, "INFO"},
		{errTooSlow, "ERROR"},
	} {
		var log harness.Buffer
		s := &Service{log: slog.New(slog.NewTextHandler(&log, nil)), running: t.Context()}
		s.logEnd(&job{id: "u-1", err: tc.err})
		harness.Contains(t, fmt.Sprint(tc.err), log.String(), "level="+tc.level, "upload=u-1")
	}
}

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
