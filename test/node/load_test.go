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
	// callers and pause give a load that two cores bear beside a cluster.
	callers = 4
	pause   = 20 * time.Millisecond
	// callTimeout is far above what an answer takes, with a build beside it too: a request that is lost has
	// to show.
	callTimeout = 30 * time.Second
)

// load asks the REST API without a break, each time over a new connection, so that each
// request goes where the Service sends it at that moment.
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

// end stops the load and returns how many requests were answered, and what the others met.
func (l *load) end() (answered int, failures []string) {
	l.cancel()
	l.group.Wait()
	return l.answered, l.failures
}

// call is one request; the body has to come whole.
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
