//go:build node

package node

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

const (
	// callers and pause set a load that two cores can handle in addition to a cluster.
	callers = 4
	pause   = 20 * time.Millisecond
	// callTimeout is far longer than an answer takes even during a build: a lost request must be noticed.
	callTimeout = 30 * time.Second
)

// load continuously sends requests to the REST API, each over a new connection, so that each goes
// where the Service sends it at that moment.
type load struct {
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu       sync.Mutex
	answered int
	failures []string
}

func startLoad(t *testing.T, url, key string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel}
	client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	for range callers {
		l.group.Go(func() {
			for ctx.Err() == nil {
				l.note(call(client, url, key))
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	t.Cleanup(func() { cancel(); l.group.Wait() })
	return l
}

func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failures = append(l.failures, time.Now().Format(time.TimeOnly)+" "+err.Error())
		return
	}
	l.answered++
}

// end stops the load and returns the number of answered requests and the errors of the others.
func (l *load) end() (answered int, failures []string) {
	l.cancel()
	l.group.Wait()
	return l.answered, l.failures
}

// call sends one request; the body must be complete.
func call(client *http.Client, url, key string) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}
