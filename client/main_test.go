package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// pause is the time between two checks whether the service knows the key.
const pause = 200 * time.Millisecond

// The examples run against the real service and print its data.
func TestMain(m *testing.M) { harness.Main(m, serve) }

// serve starts the service with an organization, and sets the address and key for the examples.
func serve(ctx context.Context, stops *harness.Stops) error {
	folder, err := stops.Folder("client-")
	if err != nil {
		return err
	}
	env, err := testenv.Start(stops)
	if err != nil {
		return err
	}
	controller, facade, err := env.Operator(ctx, harness.Operator{Folder: folder})
	if err != nil {
		return err
	}
	if err := stops.Start(ctx, controller, facade); err != nil {
		return err
	}
	address = "http://" + facade.Address
	return populate(ctx, env.Client)
}

func populate(ctx context.Context, c kube.Client) error {
	organization := builder.Organization("acme").Build()
	if err := c.Create(ctx, organization); err != nil {
		return err
	}
	if err := harness.Until(ctx, "the organization has its namespace", func(ctx context.Context) error {
		err := c.Get(ctx, kube.ObjectKeyFromObject(organization), organization)
		if err == nil && organization.Status.Namespace == "" {
			err = errors.New("it has none")
		}
		return err
	}); err != nil {
		return err
	}
	namespace, key := organization.Status.Namespace, builder.APIKey("ci").In(organization.Status.Namespace).Build()
	for _, object := range []kube.Object{
		key,
		builder.Repository("storefront").In(namespace).Build(),
		builder.Project("web").In(namespace).Repository("storefront").Build(),
		builder.Finding("sql-injection").In(namespace).Project("storefront", "web").Build(),
		builder.Finding("weak-hash").In(namespace).Project("storefront", "web").Build(),
		builder.Finding("path-traversal").In(namespace).Project("storefront", "web").Build(),
	} {
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	var err error
	if apiKey, err = testenv.Token(ctx, c, key); err != nil {
		return err
	}
	return harness.Until(ctx, "the REST API lists the findings", listsAll)
}

func listsAll(ctx context.Context) error {
	findings, err := client.New(address, apiKey)
	if err != nil {
		return err
	}
	page, err := findings.ListFindingsV2WithResponse(ctx, &client.ListFindingsV2Params{})
	if err != nil {
		return err
	}
	if page.JSON200 != nil && page.JSON200.Total == 3 {
		return nil
	}
	select { // requests with an unknown key are counted and rate-limited
	case <-time.After(pause):
	case <-ctx.Done():
	}
	return fmt.Errorf("%s: %.300s", page.Status(), page.Body)
}
