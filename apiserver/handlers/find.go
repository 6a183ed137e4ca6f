package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// find reads an object from the read model. kind names it in traces, and in the error if it does not exist.
func find[T any](ctx context.Context, kind string, read func() (T, bool)) (T, error) {
	object, there := tracing.Do(ctx, "read model: "+kind, read)
	if !there {
		return object, problem.NotFound(kind)
	}
	return object, nil
}

// findJSON is find for an object that has only one shape.
func findJSON(ctx context.Context, kind string, read func() ([]byte, bool)) (Response, error) {
	shown, err := find(ctx, kind, read)
	if err != nil {
		return Response{}, err
	}
	return single(shown), nil
}
