package chart

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// patience is longer than the removal of CRDs takes: an API server that still sees an instance polls for a minute, and
// then retries once.
const patience = 3 * time.Minute

// eventually retries until there is no error. It also works in a cleanup, when the test's context has ended.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	harness.Must(t, harness.UntilWithin(context.WithoutCancel(t.Context()), patience, "there is no error",
		func(context.Context) error { return try() }))
}

// impersonate returns a client with all rights and another user name.
func impersonate(t *testing.T, user string) client.Client {
	t.Helper()
	return env.As(t, env.Impersonate(user, "system:masters"))
}

func clientOf(t *testing.T, account func(context.Context) (*rest.Config, error)) client.Client {
	t.Helper()
	config, err := account(t.Context())
	harness.Must(t, err)
	return env.As(t, config)
}

// wantForbidden turns a refusal into nil and anything else into an error.
func wantForbidden(err error) error {
	switch {
	case err == nil:
		return errors.New("it went through")
	case apierrors.IsForbidden(err):
		return nil
	default:
		return err
	}
}
