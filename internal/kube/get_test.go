package kube

import (
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Callers try again what the API server did not mean to answer.
func TestAnObjectThatDoesNotExistIsNoUnexpectedAnswer(t *testing.T) {
	url := harness.ServeJSON(t, func(*http.Request) (int, any) {
		return harness.Refusal(apierrors.NewNotFound(schema.GroupResource{Resource: "findings"}, "f-1"))
	})
	reader, err := NewReader(&rest.Config{Host: url})
	harness.Must(t, err)
	if _, err := reader.Read(t.Context(), "org-acme", "f-1", findings()); !apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err) {
		t.Errorf("error %v", err)
	}
}
