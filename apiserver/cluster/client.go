// Package cluster reads and writes single objects at the Kubernetes API where the read model may be behind: it
// stores what people decide about findings, and returns webhook deliveries and triage operations as they are stored.
package cluster

import (
	"time"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Client is a client of one API server. It is safe for concurrent use. Its errors are problems.
type Client struct {
	rest   rest.Interface
	reader *kube.Reader
	lines  *lines
	pace   pace
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
	c := &Client{rest: client, reader: reader}
	c.lines = newLines(func() time.Duration { return c.pace.between(shortestPause, longestPause) })
	return c, nil
}
