package controllers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/internal/kube"
)

// attemptTimeout bounds one attempt to reach the API server, and the pause until the next, which may be a fifth longer.
const attemptTimeout = 10 * time.Second

// AwaitAPIServer returns once the API server named by config is ready, or with an error when ctx ends. If the process
// exited instead, the kubelet would restart it with growing delays of up to five minutes.
func AwaitAPIServer(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for the API server: %w", err)
	}
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: attemptTimeout}
	return pause.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		// The client's own retries would hide the response of the API server.
		err := client.RESTClient().Get().MaxRetries(0).AbsPath("/readyz").Do(ctx).Error()
		if !isTemporary(err) {
			return true, nil // callers that need more of the API server judge the answer themselves
		}
		ctrl.Log.WithName("start").Error(err, "The API server is not ready yet; trying again")
		return false, nil
	})
}

// isTemporary reports whether the API server did not respond, or responded that it cannot serve at the moment. An
// untrusted certificate is permanent.
func isTemporary(err error) bool {
	var untrusted *tls.CertificateVerificationError
	if err == nil || errors.As(err, &untrusted) {
		return false
	}
	code := kube.StatusOf(err).Code
	return code == 0 || code >= http.StatusInternalServerError || kube.IsTemporary(err)
}
