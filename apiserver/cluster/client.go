// Package cluster reads and writes single objects at the Kubernetes API where the read model may be behind: it stores
// users' decisions, and returns projects, repositories' ids, webhook deliveries, triage operations and triage policies
// as currently stored.
package cluster

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// Client is a client of one API server. It is safe for concurrent use. Its errors are problems.
type Client struct {
	// Findings and ReviewIssues store decisions about objects of these kinds.
	Findings     *Triager[*v1alpha1.Finding]
	ReviewIssues *Triager[*v1alpha1.ReviewIssue]

	rest   rest.Interface
	reader *kube.Reader
	// lists let one request at a time list an organization's stored objects of a kind.
	lists slots.Lines[types.NamespacedName]
}

// NewClient returns a client of the API server that config names.
func NewClient(config *rest.Config) (*Client, error) {
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	reader, err := kube.NewReader(config)
	if err != nil {
		return nil, err
	}
	return &Client{
		Findings:     newTriager(client, "finding", findingstate.StandingOf),
		ReviewIssues: newTriager(client, "review issue", reviewstate.StandingOf),
		rest:         client, reader: reader,
		lists: slots.Lines[types.NamespacedName]{Most: maxLists, Patience: listPatience},
	}, nil
}
