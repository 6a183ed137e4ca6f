package importer

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Client reads and writes the objects of imports.
type Client struct {
	client.Client
	// reader lists objects and skips those that cannot be read.
	reader *kube.Reader
	// WaitForTurn waits for the next turn. The error is the cause of ctx's end. nil: turns come at once and are never
	// over.
	WaitForTurn func(ctx context.Context) (Turn, error)
}

// Turn is permission to hold the findings of a tool in a project, or the issues of a pull request and the findings of a
// tool in its repository. Wait for no Lease and no other turn meanwhile.
type Turn interface {
	// Over reports whether the turn has lasted long and another organization waits: then leave what can wait to the next
	// turn.
	Over() bool
	// End gives the turn back. Call it once.
	End()
}

// Turn waits for the next turn.
func (c *Client) Turn(ctx context.Context) (Turn, error) {
	if c.WaitForTurn == nil {
		return endless{}, nil
	}
	return c.WaitForTurn(ctx)
}

// endless is the turn of a client without turns.
type endless struct{}

func (endless) Over() bool { return false }
func (endless) End()       {}

// NewClient returns a client for imports of scans and reviews. It does no discovery.
func NewClient(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mapper := kube.NewMapper()
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	c, err := client.New(kube.ClientConfig(config), client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	reader, err := kube.NewReader(config)
	return &Client{Client: c, reader: reader}, err
}
