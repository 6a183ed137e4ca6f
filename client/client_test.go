package client_test

import (
	"net/http"
	"testing"

	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Else one of two clients that are made at the same time could get the key of the other.
func TestNewWritesNothingIntoTheCallersOptions(t *testing.T) {
	shared := append(make([]client.ClientOption, 0, 2), client.WithHTTPClient(http.DefaultClient))
	_, err := client.New("http://nowhere.invalid", "key", shared...)
	harness.Must(t, err)
	if shared[:2][1] != nil {
		t.Error("the key is in the caller's array")
	}
}
