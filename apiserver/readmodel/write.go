package readmodel

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/newest"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// kind is a watched kind of resource.
type kind int

// The kinds, in the order in which their first lists are applied: the objects that findings are joined with
// come before them, so that each finding is rendered once.
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

// known returns the kind of the Kubernetes API.
func (k kind) known() kube.Kind {
	known, _ := kube.KindOf([kinds]kube.Object{
		organizations:     &v1alpha1.Organization{},
		repositories:      &v1alpha1.Repository{},
		projects:          &v1alpha1.Project{},
		reviews:           &v1alpha1.Review{},
		reviewIssues:      &v1alpha1.ReviewIssue{},
		webhookDeliveries: &v1alpha1.WebhookDelivery{},
		scans:             &v1alpha1.Scan{},
		triageOperations:  &v1alpha1.TriageOperation{},
		trends:            &v1alpha1.FindingTrend{},
		findings:          &v1alpha1.Finding{},
	}[k])
	return known
}

// String returns the kind's name in paths of the Kubernetes API.
func (k kind) String() string { return k.known().Resource }

// change is a write to the read model: an observed state of an object, or its deletion.
type change struct {
	kind    kind
	object  metav1.Object
	deleted bool
	// listed is the version of the list that holds the object; "" for a single object.
	listed string
}

// write is the only way into the read model: watch events, lists and patch results all come through here. A
// state that is not newer changes nothing. The caller holds the mutex.
func (m *Model) write(c change) error {
	key := newest.Key(c.object)
	known := m.versions[c.kind]
	decide := known.Put
	switch {
	case c.deleted:
		decide = known.Remove
	case c.listed != "":
		decide = func(object metav1.Object, now time.Time) (bool, error) {
			return known.PutListed(object, c.listed, now)
		}
	}
	newer, err := decide(c.object, m.clock.Now())
	m.metrics.held[c.kind].Store(int64(known.Len()))
	if err != nil {
		return fmt.Errorf("%s of %s: %w", key, c.kind, err)
	}
	if newer {
		m.set(c, key)
	}
	return nil
}

// set makes a change that is newer in its partition.
func (m *Model) set(c change, key types.NamespacedName) {
	if c.kind == organizations {
		m.setOrganization(current[*v1alpha1.Organization](c), key.Name)
		return
	}
	p := m.partition(key.Namespace)
	switch c.kind {
	case repositories:
		m.setRepository(p, current[*v1alpha1.Repository](c), key.Name)
	case projects:
		m.setProject(p, current[*v1alpha1.Project](c), key.Name)
	case reviews:
		m.setReview(p, current[*v1alpha1.Review](c), key.Name)
	case reviewIssues:
		m.setIssue(p, current[*v1alpha1.ReviewIssue](c), key.Name)
	case webhookDeliveries:
		m.setDelivery(p, current[*v1alpha1.WebhookDelivery](c), key.Name)
	case scans:
		m.setScan(p, current[*v1alpha1.Scan](c), key.Name)
	case triageOperations:
		m.setOperation(p, current[*v1alpha1.TriageOperation](c), key.Name)
	case trends:
		m.setTrend(p, current[*v1alpha1.FindingTrend](c), key.Name)
	case findings:
		m.setFinding(p, current[*preparedFinding](c), key.Name)
	}
	if p.empty() {
		delete(m.partitions, key.Namespace)
	}
}

// current returns the object after a change; nil if it was deleted.
func current[T metav1.Object](c change) (object T) {
	if !c.deleted {
		object, _ = c.object.(T)
	}
	return object
}

func (m *Model) setOrganization(organization *v1alpha1.Organization, name string) {
	m.setImports(organization, name)
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
			m.assignOwner(namespace)
		}
	}
	m.publishOrganizations()
}

// stamp returns the time to show for the last change of an object's spec: from its status or, if the status is
// of an older generation, from the object's metadata.
//
// It ignores the counters and the state of a review or an issue that a controller has yet to compute: the
// controller will record them with a later time than any that could be shown here, so a client that asks for
// changes since its last request gets them.
func (m *Model) stamp(object metav1.Object) stamp {
	observed, _ := observedOf(object)
	at, recorded := lastwrite.Shown(object, observed, m.clock.Now())
	return stamp{uid: object.GetUID(), at: at, recorded: recorded}
}

// trimmed returns the metadata that is shown or that patches depend on.
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
