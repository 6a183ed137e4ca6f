package cluster

import (
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// A list holds all operations of an organization: tens of megabytes.
func TestAnOrganizationsOperationsAreListedOneRequestAtATime(t *testing.T) {
	begun, end := make(chan string, 3), make(chan struct{})
	client, err := NewClient(&rest.Config{Host: "http://nowhere.invalid", Transport: roundTripper(
		func(request *http.Request) (*http.Response, error) {
			begun <- strings.Split(request.URL.Path, "/")[5]
			<-end
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
				Body: io.NopCloser(strings.NewReader(`{"kind":"TriageOperationList","apiVersion":"appsec.dev/v1alpha1","items":[]}`)),
			}, nil
		})})
	harness.Must(t, err)
	listed := make(chan error, 3)
	list := func(namespace string) {
		listed <- client.Operations(t.Context(), namespace, func(*v1alpha1.TriageOperation) error { return nil })
	}
	g := NewWithT(t)
	go list("org-acme")
	g.Eventually(begun).Should(Receive(Equal("org-acme")))
	go list("org-acme")
	acme := types.NamespacedName{Namespace: "org-acme", Name: "triage operations"}
	g.Eventually(func() int { return client.lists.waitingFor(acme) }).Should(Equal(1))
	go list("org-other")
	g.Eventually(begun).Should(Receive(Equal("org-other")), "another organization does not wait")
	close(end)
	for range 3 {
		g.Eventually(listed).Should(Receive(BeNil()))
	}
	g.Expect(begun).To(Receive(Equal("org-acme")))
}
