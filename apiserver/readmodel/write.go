package readmodel

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/newest"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// kind is a kind of resource that is watched.
type kind int

// The kinds, in the order that their first lists are heard in: what findings are joined with comes
// before them, so that each is rendered once.
const (
	organizations kind = iota
	repositories
	projects
	reviews
	reviewIssues
	webhookDeliveries
	scans
	triageOperations
	trends
	findings
	kinds
)

func (k kind) String() string {
	return [kinds]string{
		"organizations", "repositories", "projects", "reviews", "reviewissues", "webhookdeliveries", "scans",
		"triageoperations", "findingtrends", "findings",
	}[k]
}

// change is a write to the read model: an object as somebody saw it, or its deletion.
type change struct {
	kind    kind
	object  metav1.Object
	deleted bool
}

// write is the one way into the read model: watch events, lists and patch results all come
// through here. What is not news changes nothing. The caller holds the mutex.
func (m *Model) write(c change) error {
	key := newest.Key(c.object)
	known := m.versions[c.kind]
	decide := known.Put
	if c.deleted {
		decide = known.Remove
	}
	news, err := decide(c.object, m.clock.Now())
	m.metrics.held[c.kind].Store(int64(known.Len()))
	if err != nil {
		return fmt.Errorf("%s of %s: %w", key, c.kind, err)
	}
	if news {
		m.take(c, key)
	}
	return nil
}

// take brings the partition up to a change that is news.
func (m *Model) take(c change, key types.NamespacedName) {
	if c.kind == organizations {
		m.takeOrganization(still[*v1alpha1.Organization](c), key.Name)
		return
	}
	p := m.partition(key.Namespace)
	switch c.kind {
	case repositories:
		m.takeRepository(p, still[*v1alpha1.Repository](c), key.Name)
	case projects:
		m.takeProject(p, still[*v1alpha1.Project](c), key.Name)
	case reviews:
		m.takeReview(p, still[*v1alpha1.Review](c), key.Name)
	case reviewIssues:
		m.takeIssue(p, still[*v1alpha1.ReviewIssue](c), key.Name)
	case webhookDeliveries:
		m.takeDelivery(p, still[*v1alpha1.WebhookDelivery](c), key.Name)
	case scans:
		m.takeScan(p, still[*v1alpha1.Scan](c), key.Name)
	case triageOperations:
		m.takeOperation(p, still[*v1alpha1.TriageOperation](c), key.Name)
	case trends:
		m.takeTrend(p, still[*v1alpha1.FindingTrend](c), key.Name)
	case findings:
		m.takeFinding(p, still[*preparedFinding](c), key.Name)
	}
	if p.empty() {
		delete(m.partitions, key.Namespace)
	}
}

// still is the object that a change leaves; nil where it was deleted.
func still[T metav1.Object](c change) (object T) {
	if !c.deleted {
		object, _ = c.object.(T)
	}
	return object
}

func (m *Model) takeOrganization(organization *v1alpha1.Organization, name string) {
	m.takeImports(organization, name)
	before, after := m.namespaces[name], ""
	if organization != nil {
		after = organization.Status.Namespace
	}
	if before == after {
		return
	}
	if after == "" {
		delete(m.namespaces, name)
	} else {
		m.namespaces[name] = after
	}
	for _, namespace := range []string{before, after} {
		if namespace != "" {
			m.settleOwner(namespace)
		}
	}
	m.publishOrganizations()
}

// stamp is the time to show for the last change of an object's spec, by its status or, where
// that is of an older generation, by what the object tells of it.
//
// It takes no account of what a controller has yet to find out about a review or an issue, the
// counters and the state: it will record them with a later time than any that could be given
// here, and a client that asks for what has changed since its last visit then gets them.
func (m *Model) stamp(object metav1.Object, generation int64, updatedAt *v1alpha1.Time) stamp {
	observed := lastwrite.Observed{Generation: generation, UpdatedAt: updatedAt}
	at, recorded := lastwrite.Shown(object, observed, m.clock.Now())
	return stamp{uid: object.GetUID(), at: at, recorded: recorded}
}

// trimmed are the metadata that are shown, or that a patch is decided by.
func trimmed(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              meta.Name,
		Namespace:         meta.Namespace,
		UID:               meta.UID,
		ResourceVersion:   meta.ResourceVersion,
		Generation:        meta.Generation,
		CreationTimestamp: meta.CreationTimestamp,
	}
}
