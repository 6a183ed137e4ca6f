package api

import (
	"net/http"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// A stream that ends at once may hold changes that came while it was requested.
func TestThePlaceIsTheLastIDOfTheStream(t *testing.T) {
	const retry, change = "retry: 1000\n\n", "event: finding\nid: A\ndata: {\"id\":\"f-1\"}\n\n"
	for stream, want := range map[string]string{
		retry: "", retry + "id: B\n\n": "B", retry + change: "A", retry + change + "id: B\n\n": "B",
		retry + change + "event: scan\nid: B\ndata: {}\n\n": "B",
	} {
		client := New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(stream))
		}), "key", "request")
		place, err := client.Place(t.Context())
		harness.Must(t, err)
		harness.Same(t, stream, want, place)
	}
}
