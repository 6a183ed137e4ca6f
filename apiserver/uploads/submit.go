package uploads

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// Submit imports the request's body, and returns the upload's id once its Scans are recorded. Later refusals,
// and errors in the ref or the projects, are recorded in the Scans.
func (s *Service) Submit(ctx context.Context, request Request) (id string, err error) {
	defer func() { s.metrics.refuse(err) }()
	j, err := s.begin(&request) //nolint:contextcheck // the import outlives the request
	if err != nil {
		return "", err
	}
	select {
	case <-j.recorded:
		return j.id, nil
	case <-j.done:
	case <-ctx.Done():
		return "", problem.TryAgain("the client is gone", context.Cause(ctx))
	}
	select {
	case <-j.recorded:
		return j.id, nil
	default:
		return "", j.problem()
	}
}
