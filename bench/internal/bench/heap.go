package bench

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/harness"
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
	bytes, err := harness.Sum(string(metrics), "go_memstats_heap_alloc_bytes", nil)
	return int64(bytes), err
}
