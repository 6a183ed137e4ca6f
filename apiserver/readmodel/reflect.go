package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// The delay before the Kubernetes API is called again: after the first failure, and at most.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// sourcesOf returns sources that list and watch a cluster in all namespaces.
func sourcesOf(config *rest.Config) (*Sources, error) {
	if config == nil {
		return nil, errors.New("the read model needs a Kubernetes client configuration or sources")
	}
	reader, err := kube.NewReader(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the read model: %w", err)
	}
	source := func(object kube.Object) kube.Source {
		kind, _ := kube.KindOf(object)
		return reader.Source(kind)
	}
	return &Sources{
		Organizations:     source(&v1alpha1.Organization{}),
		Repositories:      source(&v1alpha1.Repository{}),
		Projects:          source(&v1alpha1.Project{}),
		Reviews:           source(&v1alpha1.Review{}),
		ReviewIssues:      source(&v1alpha1.ReviewIssue{}),
		WebhookDeliveries: source(&v1alpha1.WebhookDelivery{}),
		Scans:             source(&v1alpha1.Scan{}),
		TriageOperations:  source(&v1alpha1.TriageOperation{}),
		FindingTrends:     source(&v1alpha1.FindingTrend{}),
		Findings:          source(&v1alpha1.Finding{}),
	}, nil
}

// reflect runs one reflector per kind. All list at the same time, but their first lists are applied in order.
func (m *Model) reflect(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	before := make(chan struct{})
	close(before) // nothing comes before the first
	for _, s := range []struct {
		kind     kind
		source   kube.Source
		expected kube.Object
	}{
		{organizations, m.sources.Organizations, &v1alpha1.Organization{}},
		{repositories, m.sources.Repositories, &v1alpha1.Repository{}},
		{projects, m.sources.Projects, &v1alpha1.Project{}},
		{reviews, m.sources.Reviews, &v1alpha1.Review{}},
		{reviewIssues, m.sources.ReviewIssues, &v1alpha1.ReviewIssue{}},
		{webhookDeliveries, m.sources.WebhookDeliveries, &v1alpha1.WebhookDelivery{}},
		{scans, m.sources.Scans, &v1alpha1.Scan{}},
		{triageOperations, m.sources.TriageOperations, &v1alpha1.TriageOperation{}},
		{trends, m.sources.FindingTrends, &v1alpha1.FindingTrend{}},
		{findings, m.sources.Findings, &v1alpha1.Finding{}},
	} {
		store := &store{model: m, kind: s.kind, before: before, listed: make(chan struct{}), done: ctx.Done()}
		before = store.listed
		reflector := cache.NewReflectorWithOptions(m.listWatch(s.kind, s.source, s.expected), s.expected, store,
			cache.ReflectorOptions{
				Name:   s.kind.String(),
				Logger: &m.log,
				Backoff: &wait.Backoff{
					Duration: firstRetry, Cap: lastRetry, Steps: int(lastRetry / firstRetry), Factor: 2, Jitter: 1,
				},
			})
		group.Go(func() error {
			reflector.RunWithContext(ctx)
			return nil
		})
	}
	return group.Wait()
}

// store receives the objects of a kind from a reflector.
type store struct {
	model *Model
	kind  kind
	// before is closed once the preceding kind is listed, and done when the model stops.
	before, done <-chan struct{}
	// listed is closed by the first list.
	listed chan struct{}
	closed bool
}

var _ cache.ReflectorBookmarkStore = &store{}

// Add applies an added object.
func (s *store) Add(object any) error { return s.add(object, false) }

// Update applies a changed object.
func (s *store) Update(object any) error { return s.add(object, false) }

// Delete applies the deletion of an object, with the version of the deletion.
func (s *store) Delete(object any) error { return s.add(object, true) }

// Resync does nothing.
func (s *store) Resync() error { return nil }

// Replace applies a list of all objects. Only one reflector calls it, never concurrently.
func (s *store) Replace(list []any, listVersion string) error {
	select {
	case <-s.before:
	case <-s.done:
		return context.Canceled
	}
	objects := make([]metav1.Object, len(list))
	for i := range list {
		object, ok := list[i].(metav1.Object)
		if !ok {
			return fmt.Errorf("list of %s holds a %T", s.kind, list[i])
		}
		objects[i] = object
	}
	if err := s.model.replace(s.kind, objects, listVersion); err != nil {
		return err
	}
	if !s.closed {
		s.closed = true
		close(s.listed)
	}
	return nil
}

// Bookmark records that nothing has changed since the last event.
func (s *store) Bookmark(version string) error {
	s.model.hear(s.kind)
	s.model.noticeQuiet(s.kind, version)
	return nil
}

func (s *store) add(object any, deleted bool) error {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("watch of %s holds a %T", s.kind, object)
	}
	return s.model.add(change{kind: s.kind, object: accessor, deleted: deleted})
}
