package bench

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// HeapCollected returns the bytes that the heap of a kube-apiserver holds after a garbage
// collection.
func HeapCollected(ctx context.Context, config *rest.Config) (int64, error) {
	// The second collection frees what finalizers released.
	if err := collectGarbage(ctx, config, 2); err != nil {
		return 0, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	metrics, err := harness.Get(ctx, client, config.Host+"/metrics")
	if err != nil {
		return 0, err
	}
	bytes, err := harness.Sum(metrics, "go_memstats_heap_alloc_bytes", nil)
	return int64(bytes), err
}

// collectGarbage makes a kube-apiserver collect its garbage so many times.
func collectGarbage(ctx context.Context, config *rest.Config, times int) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	for range times {
		if _, err := profile(ctx, client, config.Host, "heap", "gc=1"); err != nil {
			return fmt.Errorf("have kube-apiserver collect its garbage: %w", err)
		}
	}
	return nil
}
