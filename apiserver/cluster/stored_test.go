package cluster

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		read   func(ctx context.Context, client *Client, namespace string) error
	}{
		"triageoperations": {`{"kind":"TriageOperationList","apiVersion":"appsec.dev/v1alpha1","items":[]}`, func(ctx context.Context, client *Client, namespace string) error {
			return client.Operations(ctx, namespace, func(*v1alpha1.TriageOperation) error { return nil })
		}},
		"triageoperationparts": {`{"kind":"TriageOperationPart","apiVersion":"appsec.dev/v1alpha1","spec":{"count":1,"entries":"` + entries + `"}}`,
			func(ctx context.Context, client *Client, namespace string) error {
				part, err := client.OperationPart(ctx, builder.TriageOperation("op-1", "G1").In(namespace).Build(), 0)
				harness.Same(t, "findings", 1, len(part.Findings))
				return err
			}},
	} {
		t.Run(resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var begun []string
				end := make(chan struct{})
				client := answering(t, func(request *http.Request) string {
					begun = append(begun, strings.Split(request.URL.Path, "/")[5])
					<-end
					return c.answer
				})
				for _, namespace := range []string{"org-acme", "org-acme", "org-other"} {
					go func() { harness.NoError(t, "read", c.read(t.Context(), client, namespace)) }()
					synctest.Wait()
				}
				harness.Same(t, "another organization does not wait", []string{"org-acme", "org-other"}, begun)
				close(end)
				synctest.Wait()
				harness.Same(t, "all in the end", []string{"org-acme", "org-other", "org-acme"}, begun)
			})
		})
	}
}

func TestAListThatGetsNoTurnIsAnsweredAsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := NewClient(&rest.Config{Host: "http://nowhere.invalid"})
		harness.Must(t, err)
		_, err = client.lists.Enter(t.Context(), types.NamespacedName{Namespace: "org-acme", Name: "triageoperations"})
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
