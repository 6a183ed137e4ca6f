package cluster

import (
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// A name that no resource can have is not found, without a request: the address here leads nowhere.
func TestNamesThatAreNoneAreNotFound(t *testing.T) {
	client, err := NewClient(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../org-other/d-1", "org-other/d-1", "d-1/status", "%2e%2e%2fd-1", "d-1%00", "D-1", "d 1", "d\u20101"} {
		_, err := client.WebhookDelivery(t.Context(), "org-acme", name)
		if got := problem.Of(err); err == nil || got.Status != http.StatusNotFound {
			t.Errorf("%q: got %v, want that there is none", name, err)
		}
	}
}
