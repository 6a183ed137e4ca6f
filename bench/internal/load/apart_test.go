package load

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// With Apart, each connection sends only its own requests; together the connections send all.
func TestConnectionsApartShareNoRequest(t *testing.T) {
	const connections, requests = 3, 12
	var lock sync.Mutex
	by := map[string]map[string]bool{}
	address := serve(t, func(w http.ResponseWriter, request *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		if by[request.URL.Path] == nil {
			by[request.URL.Path] = map[string]bool{}
		}
		by[request.URL.Path][request.RemoteAddr] = true
		w.Header().Set("Content-Length", "0")
	})
	job := Job{Target: Target{Name: "test", Address: address}, Connections: connections, Apart: true, For: 50 * time.Millisecond}
	for i := range requests {
		job.Target.Requests = append(job.Target.Requests, Get(address, fmt.Sprint("/", i)))
	}
	_, err := Run(t.Context(), job)
	harness.Must(t, err)
	for path, from := range by {
		harness.Same(t, "connections over which "+path+" was sent", 1, len(from))
	}
	job.Target.Requests = job.Target.Requests[:requests-1]
	if _, err := Run(t.Context(), job); err == nil {
		t.Errorf("%d requests were shared out among %d connections", requests-1, connections)
	}
}
