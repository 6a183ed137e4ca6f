package cluster

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// byName holds the methods that take the name of an object.
var byName = map[string]func(ctx context.Context, c *Client, name string) error{
	"webhook delivery": func(ctx context.Context, c *Client, name string) error {
		_, err := c.WebhookDelivery(ctx, "org-acme", name)
		return err
	},
	"webhook delivery to send again": func(ctx context.Context, c *Client, name string) error {
		_, err := c.Redeliver(ctx, "org-acme", name, "ada")
		return err
	},
	"project": func(ctx context.Context, c *Client, name string) error {
		_, err := c.Project(ctx, "org-acme", name)
		return err
	},
	"triage operation": func(ctx context.Context, c *Client, name string) error {
		_, err := c.Operation(ctx, "org-acme", name)
		return err
	},
	"triage policy": func(ctx context.Context, c *Client, name string) error {
		_, err := c.Policy(ctx, "org-acme", name)
		return err
	},
}

// nowhere returns a client whose address leads nowhere.
func nowhere(t *testing.T) *Client {
	t.Helper()
	client, err := NewClient(&rest.Config{Host: "http://127.0.0.1:1"})
	harness.Must(t, err)
	return client
}

// answering returns a client whose requests get the JSON that the function returns.
func answering(t *testing.T, answer func(*http.Request) string) *Client {
	t.Helper()
	client, err := NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
		func(request *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
				Body: io.NopCloser(strings.NewReader(answer(request))),
			}, nil
		})})
	harness.Must(t, err)
	return client
}

// A name that no resource can have is not found, without a request.
func TestNamesThatAreNoneAreNotFound(t *testing.T) {
	client := nowhere(t)
	for noun, call := range byName {
		for _, name := range []string{"", ".", "..", "../org-other/d-1", "org-other/d-1", "d-1/status", "%2e%2e%2fd-1", "d-1%00", "D-1", "d 1", "d\u20101"} {
			if got := problem.Of(call(t.Context(), client, name)); got.Status != http.StatusNotFound {
				t.Errorf("%s %q: got %v, want 404", noun, name, got)
			}
		}
	}
}

func TestAnObjectThatCannotBeReadIsNamedAndMayBeAskedForAgain(t *testing.T) {
	client := nowhere(t)
	for _, noun := range []string{"webhook delivery", "project", "triage operation", "triage policy"} {
		got := problem.Of(byName[noun](t.Context(), client, "a"))
		if got.Detail != "the "+noun+" could not be read; try again" || got.RetryAfter <= 0 {
			t.Errorf("got %q, again after %s", got.Detail, got.RetryAfter)
		}
	}
}
