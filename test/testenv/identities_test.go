package testenv

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestATokenOfTheOperatorIsRequestedOnce(t *testing.T) {
	requests := map[string]int{}
	e := &Environment{Config: &rest.Config{Host: "http://nowhere.invalid"}, Client: interceptor.NewClient(nil, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return nil },
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, account, request client.Object,
			_ ...client.SubResourceCreateOption) error {
			requests[account.GetName()]++
			request.(*authenticationv1.TokenRequest).Status.Token = account.GetName() + "'s"
			return nil
		},
	})}
	for range 2 {
		for account, get := range map[string]func(context.Context) (*rest.Config, error){
			ControllerServiceAccount: e.Controller, APIServiceAccount: e.Facade,
		} {
			config, err := get(t.Context())
			harness.Must(t, err)
			harness.Same(t, "token", account+"'s", config.BearerToken)
			config.BearerToken = "changed by the caller"
		}
	}
	harness.Same(t, "requests", map[string]int{ControllerServiceAccount: 1, APIServiceAccount: 1}, requests)
}

func TestClientsShareWhatIsKnownAboutTheKinds(t *testing.T) {
	e := &Environment{Scheme: NewScheme(), Config: &rest.Config{Host: "http://nowhere.invalid"}}
	var err error
	e.Client, err = e.NewClient(e.Config)
	harness.Must(t, err)
	if e.As(t, e.Impersonate("somebody")).RESTMapper() != e.Client.RESTMapper() {
		t.Error("another user's client asks the API server for the kinds anew")
	}
}
