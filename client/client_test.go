package client_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The generator takes null for a further value of an enumeration unless it is told the type.
func TestNullIsNoValueOfAnEnumeration(t *testing.T) {
	content, err := os.ReadFile("client.gen.go")
	harness.Must(t, err)
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, `"<nil>"`) {
			t.Errorf("give the enumeration an x-go-type: %s", strings.TrimSpace(line))
		}
	}
}

// Else one of two clients that are made at the same time could get the key of the other.
func TestNewWritesNothingIntoTheCallersOptions(t *testing.T) {
	shared := append(make([]client.ClientOption, 0, 2), client.WithHTTPClient(http.DefaultClient))
	_, err := client.New("http://nowhere.invalid", "key", shared...)
	harness.Must(t, err)
	if shared[:2][1] != nil {
		t.Error("the key is in the caller's array")
	}
}
