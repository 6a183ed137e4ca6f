package kube

import (
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// client-go repeats every request that is answered with a Retry-After, and returns only the last error.
func TestAWriteThatMayBeStoredIsSentOnce(t *testing.T) {
	for reason, tc := range map[string]struct {
		method        string
		code          int
		requests      int
		isOutcomeOpen bool
	}{
		"a patch may be stored":    {http.MethodPatch, http.StatusServiceUnavailable, 1, true},
		"a creation may be stored": {http.MethodPost, http.StatusBadGateway, 1, true},
		"a refusal stores nothing": {http.MethodPatch, http.StatusTooManyRequests, 2, false},
		"a read stores nothing":    {http.MethodGet, http.StatusServiceUnavailable, 2, false},
	} {
		requests := 0
		config := &rest.Config{Host: "http://nowhere.invalid"}
		harness.Between(config, func(http.RoundTripper, *http.Request) (*http.Response, error) {
			if requests++; requests > 1 {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return &http.Response{StatusCode: tc.code, Header: http.Header{"Retry-After": {"0"}}, Body: http.NoBody}, nil
		})
		client, err := NewClient(config)
		harness.Must(t, err)
		request := client.Verb(tc.method)
		if tc.method == http.MethodPatch {
			request = client.Patch(types.MergePatchType)
		}
		err = request.Resource("apikeys").Namespace("org-a").Name("ci").Do(t.Context()).Error()
		harness.Same(t, reason+": requests", tc.requests, requests)
		harness.Same(t, reason+": the outcome is unknown", tc.isOutcomeOpen, IsOutcomeUnknown(err))
		if err == nil || errors.Is(err, syscall.ECONNREFUSED) != (tc.requests > 1) {
			t.Errorf("%s: the error is %v", reason, err)
		}
	}
}
