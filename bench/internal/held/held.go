// Package held provides the comparisons for the service's start and memory: a list of the same objects
// by client-go, and a cache of controller-runtime with its default settings that holds them. Each runs
// in a separate process.
package held

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Way is how the objects are read.
type Way string

// The ways.
const (
	// List lists each kind in full, all kinds concurrently, from the API server's cache, as informers do without
	// streaming.
	List Way = "list"
	// Cache holds the objects in controller-runtime's cache.
	Cache Way = "cache"
)

// Job describes what to read, and from where.
type Job struct {
	Way  Way    `json:"way"`
	Host string `json:"host"`
	CA   []byte `json:"ca"`
	// Token is that of a service account that may list everything.
	Token string `json:"token"`
}

// Result is the result of a job.
type Result struct {
	// Heap is the memory in use after a garbage collection, in bytes.
	Heap  uint64 `json:"heap"`
	Error string `json:"error,omitempty"`
}

// kinds are the kinds that the REST API holds, with their resources, and the lists that List reads into.
var kinds = []struct {
	resource string
	list     client.ObjectList
	object   client.Object
}{
	{"findings", &v1alpha1.FindingList{}, &v1alpha1.Finding{}},
	{"repositories", &v1alpha1.RepositoryList{}, &v1alpha1.Repository{}},
	{"projects", &v1alpha1.ProjectList{}, &v1alpha1.Project{}},
	{"reviews", &v1alpha1.ReviewList{}, &v1alpha1.Review{}},
	{"reviewissues", &v1alpha1.ReviewIssueList{}, &v1alpha1.ReviewIssue{}},
	{"webhookdeliveries", &v1alpha1.WebhookDeliveryList{}, &v1alpha1.WebhookDelivery{}},
	{"organizations", &v1alpha1.OrganizationList{}, &v1alpha1.Organization{}},
}

// Serve does the one job that it reads from the input, answers with its result, and keeps what it
// has read in memory until the input ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var job Job
	if err := json.NewDecoder(in).Decode(&job); err != nil {
		return err
	}
	result, held, err := do(ctx, job)
	if err != nil {
		result.Error = err.Error()
	}
	if err := json.NewEncoder(out).Encode(result); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	runtime.KeepAlive(held)
	return err
}

// do returns the result and the cache that must be kept.
func do(ctx context.Context, job Job) (Result, cache.Cache, error) {
	config := &rest.Config{
		Host: job.Host, BearerToken: job.Token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: job.CA},
	}
	if job.Way == List {
		// For a list only the time is measured, not the memory.
		return Result{}, nil, listAll(ctx, config)
	}
	held, err := cacheAll(ctx, config)
	if err != nil {
		return Result{}, nil, err
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return Result{Heap: memory.HeapAlloc}, held, nil
}

func listAll(ctx context.Context, config *rest.Config) error {
	c, err := kube.NewClient(config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, kind := range kinds {
		group.Go(func() error {
			return c.Get().Resource(kind.resource).
				VersionedParams(&metav1.ListOptions{ResourceVersion: "0"}, metav1.ParameterCodec).
				Do(ctx).Into(kind.list)
		})
	}
	return group.Wait()
}

func cacheAll(ctx context.Context, config *rest.Config) (cache.Cache, error) {
	scheme := kruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	held, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if _, err := held.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.resource, err)
		}
	}
	go held.Start(ctx) //nolint:errcheck // where it fails nothing syncs
	if !held.WaitForCacheSync(ctx) {
		return nil, ctx.Err()
	}
	return held, nil
}
