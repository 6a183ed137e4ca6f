package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// longestPause bounds one attempt to reach the API server, and the pause until the next.
const longestPause = 10 * time.Second

// AwaitAPIServer returns once the API server that config names answers, or with an error when ctx ends. A process that
// ended instead would be restarted by the kubelet ever more rarely, at last after five minutes.
func AwaitAPIServer(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for the API server: %w", err)
	}
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 8, Cap: longestPause}
	return pause.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, longestPause)
		defer cancel()
		err := client.RESTClient().Get().AbsPath("/api").Do(ctx).Error()
		if !passes(err) {
			return true, nil // what an answer means is for those to judge who need more of the API server
		}
		ctrl.Log.WithName("start").Error(err, "The API server does not answer yet; it is asked again")
		return false, nil
	})
}

// passes reports whether the API server did not answer, or only that it cannot at the moment.
func passes(err error) bool {
	var unanswered *url.Error
	var answer apierrors.APIStatus
	return errors.As(err, &unanswered) || apierrors.IsTooManyRequests(err) ||
		errors.As(err, &answer) && answer.Status().Code >= http.StatusInternalServerError
}
