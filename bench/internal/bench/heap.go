package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// HeapCollected returns the bytes that the heap of a kube-apiserver holds after a garbage
// collection.
func HeapCollected(ctx context.Context, config *rest.Config) (int64, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	// The second collection frees what finalizers released.
	for range 2 {
		if _, err := profile(ctx, client, config.Host, "heap", "gc=1"); err != nil {
			return 0, fmt.Errorf("have kube-apiserver collect its garbage: %w", err)
		}
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	metrics, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(metrics)) {
		if value, found := strings.CutPrefix(line, "go_memstats_heap_alloc_bytes "); found {
			bytes, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return int64(bytes), err
		}
	}
	return 0, fmt.Errorf("kube-apiserver does not tell the size of its heap")
}
