package plane

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// requestsPerMinute is the limit of each key: the highest allowed value.
const requestsPerMinute = 1_000_000

// Organization is an organization with API keys.
type Organization struct {
	Name, Namespace string
	// Tokens are the tokens of its API keys.
	Tokens []string
}

// NewOrganization creates an organization with that many API keys. The controllers must run.
func (p *Plane) NewOrganization(ctx context.Context, name string, keys int) (*Organization, error) {
	organization := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := p.Client.Create(ctx, organization); err != nil {
		return nil, err
	}
	out := &Organization{Name: name, Namespace: v1alpha1.NamespacePrefix + name}
	if err := harness.Until(ctx, "it has a namespace", func(ctx context.Context) error {
		err := p.Client.Get(ctx, client.ObjectKeyFromObject(organization), organization)
		if err == nil && organization.Status.Namespace == "" {
			err = errors.New("it has no namespace yet")
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("organization %s: %w", name, err)
	}
	for i := range keys {
		token, err := p.NewKey(ctx, out.Namespace, fmt.Sprintf("bench-%d", i))
		if err != nil {
			return nil, err
		}
		out.Tokens = append(out.Tokens, token)
	}
	return out, nil
}

// NewKey creates an API key with the scopes, or with the default scopes if none are given, and returns its
// token. The controllers must run.
func (p *Plane) NewKey(ctx context.Context, namespace, name string, scopes ...v1alpha1.Scope) (string, error) {
	key := &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.APIKeySpec{
			RateLimit: &v1alpha1.RateLimit{RequestsPerMinute: new(int32(requestsPerMinute))}, Scopes: scopes,
		},
	}
	if err := p.Client.Create(ctx, key); err != nil {
		return "", err
	}
	return testenv.Token(ctx, p.Client, key)
}
