package schema_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A user who may update an object may also write the times in its managedFields. Whatever times the
// API server accepts, all objects remain readable.
func TestForgedMetadataCostsNobodyElse(t *testing.T) {
	env.Create(t, builder.Finding("forged").In("default").Build(), builder.Finding("honest").In("default").Build())
	client, err := rest.HTTPClientFor(env.Config)
	harness.Must(t, err)
	path := env.Config.Host + "/apis/appsec.dev/v1alpha1/namespaces/default/findings/forged"
	for i, at := range []string{
		"9999-12-31T23:59:59-05:00", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "10000-01-01T00:00:00Z", "2026-01-01T00:00:00+99:99", "2026-01-01t00:00:00z", "x", "",
	} {
		t.Run(at, func(t *testing.T) {
			status, answer := ask(t, client, http.MethodGet, path, nil)
			if status != http.StatusOK {
				t.Fatalf("get: %d %.300s", status, answer)
			}
			object := harness.Decoded[map[string]any](t, answer)
			metadata := object["metadata"].(map[string]any)
			for _, entry := range metadata["managedFields"].([]any) {
				entry.(map[string]any)["time"] = at
			}
			content := harness.JSON(t, object)
			status, answer = ask(t, client, http.MethodPut, path, content)
			if status != http.StatusOK && status != http.StatusBadRequest {
				t.Errorf("update: %d %.300s", status, answer)
			}
			if cannot := wantOthersRead(t); status != http.StatusOK && len(cannot) > 0 {
				t.Errorf("%q was refused, and %v cannot be read", at, cannot)
			}
			// The next writer can change it, which makes it readable again.
			label := fmt.Appendf(nil, `{"metadata":{"labels":{"next":"%d"}}}`, i)
			if status, answer := ask(t, client, http.MethodPatch, path, label); status != http.StatusOK {
				t.Errorf("patch: %d %.300s", status, answer)
			}
			if left := wantOthersRead(t); len(left) > 0 {
				t.Errorf("mended, and unreadable: %v", left)
			}
		})
	}
}

func ask(t *testing.T, client *http.Client, method, url string, body []byte) (int, []byte) {
	t.Helper()
	contentType := map[bool]string{true: "application/merge-patch+json", false: "application/json"}[method == http.MethodPatch]
	status, answer, err := corpus.Send(t.Context(), client, method, url, contentType, body)
	harness.Must(t, err)
	return status, answer
}

// wantOthersRead lists findings as the operator does, and returns those that cannot be read.
func wantOthersRead(t *testing.T) (unreadable []string) {
	t.Helper()
	reader, err := kube.NewReader(env.Config)
	harness.Must(t, err)
	kind, _ := kube.KindOf(&v1alpha1.Finding{})
	listed, err := kube.NewListWatch(kube.ListWatchOptions{
		Kind: kind, From: reader.Source(kind), Unreadables: kube.NewUnreadables(logr.Discard(), func(u *kube.Unreadable) {
			unreadable = append(unreadable, u.Name)
			if u.Name != "forged" {
				t.Errorf("%s cannot be read: %v", u.Name, u.Err)
			}
		}),
	}).ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("the list fails: %v", err)
	}
	if !slices.ContainsFunc(listed.(*kube.List).Items, func(item runtime.Object) bool { return item.(metav1.Object).GetName() == "honest" }) {
		t.Error("the honest finding is not listed")
	}
	return unreadable
}
