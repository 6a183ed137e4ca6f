// Package implied keeps track of the findings that need no stored status, and of those that get one anyway.
package implied

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Statuses holds the findings that their controller has reconciled and left without a status, because their creation
// implies all of it. Nothing in such a finding distinguishes it from one that was not reconciled yet. After a restart,
// each finding is reconciled again. Statuses is safe for concurrent use; with a nil one, every status is stored.
type Statuses struct {
	mu   sync.Mutex
	left map[types.NamespacedName]left
	// owing holds, by namespace, the names of those in left whose creation is still to be delivered to an endpoint.
	owing map[string]sets.Set[string]
	// requested holds the findings whose status is to be stored anyway.
	requested map[types.NamespacedName]*request
	// enqueue enqueues a finding; nil until OnRequest is called.
	enqueue func(types.NamespacedName)
}

// left is a finding that was left without a status.
type left struct {
	finding types.UID
	// creation is what the finding itself no longer shows once its facts have changed.
	creation *findingstate.Creation
}

// request for the status of a finding.
type request struct {
	finding types.UID
	// lost holds the names of the deliveries of its creation that somebody has deleted. Nothing else records that they
	// were made.
	lost []string
}

// NewStatuses returns an empty Statuses.
func NewStatuses() *Statuses {
	return &Statuses{left: map[types.NamespacedName]left{}, owing: map[string]sets.Set[string]{},
		requested: map[types.NamespacedName]*request{}}
}

// Leave records that the finding is left without a status; it has the observed one. It may owe the delivery of its
// creation to an endpoint with a backlog.
func (s *Statuses) Leave(finding *v1alpha1.Finding, owes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(finding)
	s.left[key] = left{finding.UID, findingstate.CreationOf(&finding.Status)}
	if !owes {
		s.paid(key)
		return
	}
	if s.owing[key.Namespace] == nil {
		s.owing[key.Namespace] = sets.Set[string]{}
	}
	s.owing[key.Namespace].Insert(key.Name)
}

// paid records that the finding owes nothing.
func (s *Statuses) paid(finding types.NamespacedName) {
	names := s.owing[finding.Namespace]
	names.Delete(finding.Name)
	if len(names) == 0 {
		delete(s.owing, finding.Namespace)
	}
}

// Owes reports whether the object is a finding that was left without a status and owes a delivery.
func (s *Statuses) Owes(object client.Object) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.left[client.ObjectKeyFromObject(object)]
	return l.finding == object.GetUID() && s.owing[object.GetNamespace()].Has(object.GetName())
}

// Owing returns the names of the namespace's findings that were left without a status and owe a delivery.
func (s *Statuses) Owing(namespace string) []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owing[namespace].UnsortedList()
}

// Creation returns what was seen of the finding's creation when it was left; nil if it was not.
func (s *Statuses) Creation(finding *v1alpha1.Finding) *findingstate.Creation {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, is := s.left[client.ObjectKeyFromObject(finding)]; is && l.finding == finding.UID {
		return l.creation
	}
	return nil
}

// Forget removes a finding whose status records all that is known of it here, or that no longer exists.
func (s *Statuses) Forget(finding types.NamespacedName) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.left, finding)
	delete(s.requested, finding)
	s.paid(finding)
}

// Suffice reports whether the finding was left without a status and has not changed since.
func (s *Statuses) Suffice(finding *v1alpha1.Finding) bool {
	if s == nil || !findingstate.AsCreated(finding) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, is := s.left[client.ObjectKeyFromObject(finding)]
	return is && l.finding == finding.UID
}

// OnRequest sets the function that enqueues a finding whose status is requested.
func (s *Statuses) OnRequest(enqueue func(types.NamespacedName)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enqueue = enqueue
}

// Request asks for the finding's status to be stored, before the deliveries that record its creation go.
func (s *Statuses) Request(finding *v1alpha1.Finding) {
	if s == nil {
		return
	}
	key := client.ObjectKeyFromObject(finding)
	s.request(key, finding.UID)
	s.mu.Lock()
	enqueue := s.enqueue
	s.mu.Unlock()
	if enqueue != nil {
		enqueue(key)
	}
}

// Lose requests the status of a finding because a delivery that recorded its creation is gone. The caller has the
// finding reconciled.
func (s *Statuses) Lose(finding *v1alpha1.Finding, delivery string) {
	if s != nil {
		s.request(client.ObjectKeyFromObject(finding), finding.UID, delivery)
	}
}

func (s *Statuses) request(finding types.NamespacedName, uid types.UID, lost ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.requested[finding]
	if known == nil || known.finding != uid {
		known = &request{finding: uid}
		s.requested[finding] = known
	}
	known.lost = append(known.lost, lost...)
}

// IsRequested reports whether the finding's status is to be stored although it follows from its creation.
func (s *Statuses) IsRequested(finding *v1alpha1.Finding) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.requested[client.ObjectKeyFromObject(finding)]
	return known != nil && known.finding == finding.UID
}

// IsLost reports whether that delivery of the creation of the object, a finding, was deleted.
func (s *Statuses) IsLost(object client.Object, delivery string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.requested[client.ObjectKeyFromObject(object)]
	return known != nil && known.finding == object.GetUID() && slices.Contains(known.lost, delivery)
}
