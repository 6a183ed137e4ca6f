// Package phases runs the phases of a reconcile.
package phases

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
)

// Phase is one step of a reconcile of what the scope S holds.
type Phase[S any] func(context.Context, *S) (ctrl.Result, error)

// Run goes through the phases up to the first that fails, and writes what they have found.
func Run[S any](ctx context.Context, s *S, write func() error, phases ...Phase[S]) (ctrl.Result, error) {
	var result ctrl.Result
	var failed error
	for _, phase := range phases {
		if result, failed = phase(ctx, s); failed != nil {
			break
		}
	}
	err := write()
	if failed != nil && err != nil {
		// Not for Outcome: a conflict of the second must not hide the first.
		return ctrl.Result{}, errors.Join(failed, err)
	}
	return patch.Outcome(result, errors.Join(failed, err))
}
