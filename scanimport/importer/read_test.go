package importer

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAListWhoseTokenHasExpiredBeginsAnew(t *testing.T) {
	page := func(token string, names ...string) v1alpha1.FindingList {
		list := v1alpha1.FindingList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FindingList"}}
		list.Continue = token
		for _, name := range names {
			finding := v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: name}}
			finding.TypeMeta = metav1.TypeMeta{APIVersion: list.APIVersion, Kind: "Finding"}
			list.Items = append(list.Items, finding)
		}
		return list
	}
	first := page("expired", "f-1", "f-2")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch r.URL.Query().Get("continue") {
		case "expired":
			first = page("next", "f-2")
			w.WriteHeader(http.StatusGone)
			answer = metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
			}
		case "next":
			answer = page("", "f-3")
		default:
			answer = first
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	c, err := NewClient(&rest.Config{Host: server.URL})
	harness.Must(t, err)
	findings, _, err := List[v1alpha1.Finding](t.Context(), c, "org-acme", fields.Everything())
	harness.Must(t, err)
	var names []string
	for i := range findings {
		names = append(names, findings[i].Name)
	}
	harness.Same(t, "findings", []string{"f-2", "f-3"}, names)
}
