package kube

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Callers try again what the API server did not mean to answer.
func TestAnObjectThatDoesNotExistIsNoUnexpectedAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}))
	defer server.Close()
	reader, err := NewReader(&rest.Config{Host: server.URL})
	harness.Must(t, err)
	if _, err := reader.Read(t.Context(), "org-acme", "f-1", findings()); !apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err) {
		t.Errorf("error %v", err)
	}
}
