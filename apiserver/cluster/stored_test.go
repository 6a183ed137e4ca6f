package cluster

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A list holds all operations of an organization, and a part thousands of long comments: tens of megabytes each.
func TestAnOrganizationsOperationsAndTheirPartsAreReadOneRequestAtATime(t *testing.T) {
	entries, _, err := triageoperation.Encode([]triageoperation.Entry{{Finding: "f-1"}})
	harness.Must(t, err)
	for resource, c := range map[string]struct {
		answer string
		read   func(client *Client, namespace string) error
	}{
		"triageoperations": {`{"kind":"TriageOperationList","apiVersion":"appsec.dev/v1alpha1","items":[]}`, func(client *Client, namespace string) error {
			return client.Operations(t.Context(), namespace, func(*v1alpha1.TriageOperation) error { return nil })
		}},
		"triageoperationparts": {`{"kind":"TriageOperationPart","apiVersion":"appsec.dev/v1alpha1","spec":{"count":1,"entries":"` + entries + `"}}`,
			func(client *Client, namespace string) error {
				part, err := client.OperationPart(t.Context(), builder.TriageOperation("op-1", "G1").In(namespace).Build(), 0)
				harness.Same(t, "findings", 1, len(part.Findings))
				return err
			}},
	} {
		t.Run(resource, func(t *testing.T) {
			begun, end := make(chan string, 3), make(chan struct{})
			client := answering(t, func(request *http.Request) string {
				begun <- strings.Split(request.URL.Path, "/")[5]
				<-end
				return c.answer
			})
			ended := make(chan error, 3)
			read := func(namespace string) { ended <- c.read(client, namespace) }
			g := NewWithT(t)
			go read("org-acme")
			g.Eventually(begun).Should(Receive(Equal("org-acme")))
			go read("org-acme")
			acme := types.NamespacedName{Namespace: "org-acme", Name: resource}
			g.Eventually(func() int { return client.lists.waitingFor(acme) }).Should(Equal(1))
			go read("org-other")
			g.Eventually(begun).Should(Receive(Equal("org-other")), "another organization does not wait")
			close(end)
			for range 3 {
				g.Eventually(ended).Should(Receive(BeNil()))
			}
			g.Expect(begun).To(Receive(Equal("org-acme")))
		})
	}
}

func TestAListThatGetsNoTurnIsAnsweredAsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := NewClient(&rest.Config{Host: "http://nowhere.invalid"})
		harness.Must(t, err)
		_, err = client.lists.enter(t.Context(), types.NamespacedName{Namespace: "org-acme", Name: "triageoperations"})
		harness.Must(t, err)
		answers := make(chan int, maxLists+1)
		for range maxLists + 1 {
			go func() {
				err := client.Operations(t.Context(), "org-acme", func(*v1alpha1.TriageOperation) error { return nil })
				answers <- problem.Of(err).Status
			}()
		}
		synctest.Wait()
		harness.Same(t, "answers while the line is full", 1, len(answers))
		<-time.After(listPatience)
		synctest.Wait()
		for range maxLists + 1 {
			harness.Same(t, "the status", http.StatusTooManyRequests, <-answers)
		}
	})
}

func TestAnErrorAboutAnObjectIsNotOneOfTheList(t *testing.T) {
	client := answering(t, func(*http.Request) string {
		return `{"kind":"TriageOperationList","apiVersion":"appsec.dev/v1alpha1","items":[
			{"kind":"TriageOperation","apiVersion":"appsec.dev/v1alpha1","metadata":{"name":"op-1"}}]}`
	})
	unrenderable := errors.New("it cannot be rendered")
	err := client.Operations(t.Context(), "org-acme", func(*v1alpha1.TriageOperation) error { return unrenderable })
	harness.Same(t, "the error", true, err == unrenderable) //nolint:errorlint // as it is
}
