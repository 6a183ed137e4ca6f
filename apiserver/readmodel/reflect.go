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

// How long to wait before the Kubernetes API is asked again, after the first failure and at most.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// sourcesOf lists and watches a cluster in all namespaces.
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

// reflect runs a reflector for each kind. All list at once, and are heard in order.
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

// store is where a reflector puts what it sees of a kind.
type store struct {
	model *Model
	kind  kind
	// before is closed once the kind is listed that comes before, and done when nobody waits any more.
	before, done <-chan struct{}
	// listed is closed by the first list.
	listed chan struct{}
	closed bool
}

var _ cache.ReflectorBookmarkStore = &store{}

// Add takes an object that was added, as the reflector saw it.
func (s *store) Add(object any) error { return s.add(object, false) }

// Update takes an object that was changed, as the reflector saw it.
func (s *store) Update(object any) error { return s.add(object, false) }

// Delete takes an object that was deleted, with the version of its deletion.
func (s *store) Delete(object any) error { return s.add(object, true) }

// Resync has nothing to do.
func (s *store) Resync() error { return nil }

// Replace takes a list of all objects. Only one reflector calls it, and never twice at once.
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

// Bookmark says that nothing has changed since the last event.
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
