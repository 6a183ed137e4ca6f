package chart

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// eventually retries until there is no error.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	eventuallyWithin(t, time.Minute, try)
}

func eventuallyWithin(t *testing.T, patience time.Duration, try func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(errors.Join(err, last))
	}
}

// impersonate returns a client with all rights and another user name.
func impersonate(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	return newClient(t, config)
}

func clientOf(t *testing.T, account func(context.Context) (*rest.Config, error)) client.Client {
	t.Helper()
	config, err := account(t.Context())
	harness.Must(t, err)
	return newClient(t, config)
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := env.NewClient(config)
	harness.Must(t, err)
	return c
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
