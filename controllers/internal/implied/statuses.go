// Package implied keeps track of the findings that need no stored status, and of those that get one anyway.
package implied

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Statuses holds the findings that their controller has reconciled and left without a status, because it follows from
// their creation. In the API server, such a finding looks like one that was not reconciled yet, so after a restart each
// finding is reconciled again. Statuses is safe for concurrent use; with a nil one, every status is stored.
type Statuses struct {
	mu sync.Mutex
	// known holds the entries of the findings, by namespace and name.
	known map[string]map[string]entry
	// enqueue enqueues a finding; nil until OnRequest is called.
	enqueue func(types.NamespacedName)
}

// entry is the state kept of one finding.
type entry struct {
	finding types.UID
	// creation keeps what the finding no longer shows once its facts have changed; nil unless the finding was left without
	// a status.
	creation *findingstate.Creation
	// owes means that the finding was left without a status, and its creation has yet to be delivered to an endpoint.
	owes bool
	// requested means that the status is to be stored anyway.
	requested bool
	// lost holds the names of the deliveries of its creation that somebody has deleted. It is the only record that they
	// were made.
	lost []string
}

// NewStatuses returns an empty Statuses.
func NewStatuses() *Statuses {
	return &Statuses{known: map[string]map[string]entry{}}
}

// of returns the entry of the object, a finding; an empty one if the entry belongs to another finding with the same
// name.
func (s *Statuses) of(object client.Object) entry {
	if s == nil {
		return entry{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.known[object.GetNamespace()][object.GetName()]; e.finding == object.GetUID() {
		return e
	}
	return entry{}
}

// update changes the finding's entry under the lock. It discards the entry of another finding with the same name, even
// of a later one, because Request and Lose are called with what was read earlier. The later one is reconciled again.
func (s *Statuses) update(finding *v1alpha1.Finding, apply func(*entry)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	findings := s.known[finding.Namespace]
	if findings == nil {
		findings = map[string]entry{}
		s.known[finding.Namespace] = findings
	}
	e := findings[finding.Name]
	if e.finding != finding.UID {
		e = entry{finding: finding.UID}
	}
	apply(&e)
	findings[finding.Name] = e
}

// Leave records that the finding is left without a status, given the observed one. It may owe the delivery of its
// creation to an endpoint with a backlog.
func (s *Statuses) Leave(finding *v1alpha1.Finding, owes bool) {
	creation := findingstate.CreationOf(&finding.Status)
	s.update(finding, func(e *entry) { e.creation, e.owes = creation, owes })
}

// Owes reports whether the object is a finding that was left without a status and owes a delivery.
func (s *Statuses) Owes(object client.Object) bool { return s.of(object).owes }

// Owing returns the names of the namespace's findings that were left without a status and owe a delivery.
func (s *Statuses) Owing(namespace string) (names []string) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.known[namespace] {
		if e.owes {
			names = append(names, name)
		}
	}
	return names
}

// Creation returns the finding's creation as seen when it was left without a status; nil if it was not.
func (s *Statuses) Creation(finding *v1alpha1.Finding) *findingstate.Creation {
	return s.of(finding).creation
}

// Forget drops the entry of a finding whose status records all of it, or that no longer exists.
func (s *Statuses) Forget(finding types.NamespacedName) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	findings := s.known[finding.Namespace]
	delete(findings, finding.Name)
	if len(findings) == 0 {
		delete(s.known, finding.Namespace)
	}
}

// Suffice reports whether the finding was left without a status and has not changed since.
func (s *Statuses) Suffice(finding *v1alpha1.Finding) bool {
	return findingstate.AsCreated(finding) && s.Creation(finding) != nil
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

// Request asks for the finding's status to be stored, before the deliveries that record its creation are removed.
func (s *Statuses) Request(finding *v1alpha1.Finding) {
	var enqueue func(types.NamespacedName) // also read under the lock
	s.update(finding, func(e *entry) { e.requested, enqueue = true, s.enqueue })
	if enqueue != nil {
		enqueue(client.ObjectKeyFromObject(finding))
	}
}

// Lose requests the status of a finding because a delivery that recorded its creation is gone. The caller must have the
// finding reconciled.
func (s *Statuses) Lose(finding *v1alpha1.Finding, delivery string) {
	s.update(finding, func(e *entry) { e.requested, e.lost = true, append(e.lost, delivery) })
}

// IsRequested reports whether the finding's status is to be stored although it follows from its creation.
func (s *Statuses) IsRequested(finding *v1alpha1.Finding) bool {
	return s == nil || s.of(finding).requested
}

// IsLost reports whether that delivery of the creation of the object, a finding, was deleted.
func (s *Statuses) IsLost(object client.Object, delivery string) bool {
	return slices.Contains(s.of(object).lost, delivery)
}
