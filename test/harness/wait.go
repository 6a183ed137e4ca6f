package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Patience is how long a condition may take to hold on a busy machine.
	Patience = 2 * time.Minute
	// interval is the pause between two checks of a condition. After a check that takes long, such as one that lists
	// hundreds of objects, the pause is longer, up to maxPause: polling cost a third of the processor time of some
	// packages.
	interval = 40 * time.Millisecond
	maxPause = 500 * time.Millisecond
	// answerTimeout bounds a single readiness check.
	answerTimeout = 5 * time.Second
)

// Eventually polls until the assertions hold, for at most Patience.
func Eventually(t testing.TB, assertions func(g gomega.Gomega)) {
	t.Helper()
	Within(t, Patience, assertions)
}

// Within polls until the assertions hold, for at most patience.
func Within(t testing.TB, patience time.Duration, assertions func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(paced(t.Context(), assertions)).WithContext(t.Context()).
		WithTimeout(patience).WithPolling(interval).Should(gomega.Succeed())
}

// paced returns the assertions with a pause before each check but the first: twice the time of the previous one.
func paced(ctx context.Context, assertions func(g gomega.Gomega)) func(g gomega.Gomega) {
	var took time.Duration
	return func(g gomega.Gomega) {
		Pause(ctx, min(2*took, maxPause))
		began := time.Now()
		defer func() { took = time.Since(began) }() // a failed assertion panics
		assertions(g)
	}
}

// Until polls until the check returns nil, for at most Patience. Its error contains the check's
// last error.
func Until(ctx context.Context, what string, check func(context.Context) error) error {
	return UntilWithin(ctx, Patience, what, check)
}

// UntilWithin is Until with another patience.
func UntilWithin(ctx context.Context, patience time.Duration, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, errors.Join(err, last))
	}
	return nil
}

// Pause waits for the duration, and reports whether it passed before the context ended.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// awaitAnswer returns when the URL answers 200. It returns an error when the context ends or over
// returns one. A nil client means one without credentials.
func awaitAnswer(ctx context.Context, client *http.Client, url string, over func() error) error {
	last := errors.New("no answer")
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		if err := over(); err != nil {
			return false, err
		}
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		_, last = Get(ctx, client, url)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// Get returns the body of the URL's answer; any status but 200 is an error.
func Get(ctx context.Context, client *http.Client, url string) (body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	status, content, err := Answer(client, request)
	switch {
	case err != nil:
		return "", err
	case status != http.StatusOK:
		return "", fmt.Errorf("%s answers %d: %.200s", url, status, content)
	}
	return string(content), nil
}

// Answer sends the request and returns the status and the body of its answer, both in full. A nil client means one
// without credentials.
func Answer(client *http.Client, request *http.Request) (status int, body []byte, err error) {
	response, err := cmp.Or(client, http.DefaultClient).Do(request)
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, errors.Join(err, response.Body.Close())
}

// Background runs a function until stop is called or the test ends, and fails the test if the function returns an error
// or returns earlier.
func Background(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := run(ctx)
		if ctx.Err() == nil {
			t.Errorf("what ran in the background ended by itself, with %v", err)
			err = nil // reported
		}
		done <- err
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("what ran in the background ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
