// Package implied keeps track of the findings that need no stored status.
package implied

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Statuses holds the findings that their controller has reconciled and left without a status, because all that it would
// hold follows from their creation. Nothing in such a finding tells it from one that was not reconciled yet. After a
// restart, each finding is reconciled again. Statuses is safe for concurrent use; a nil one holds nothing.
type Statuses struct {
	mu   sync.Mutex
	left map[types.NamespacedName]types.UID
	// due holds the findings whose status is to be stored all the same, and whether all deliveries of their creation were
	// made. fresh are those of them that NewlyDue has not returned yet.
	due   map[types.NamespacedName]bool
	fresh []types.NamespacedName
	news  chan event.TypedGenericEvent[News]
}

// News is an event of findings that have become due. NewlyDue returns them.
type News struct{}

// NewStatuses returns an empty Statuses.
func NewStatuses() *Statuses {
	return &Statuses{
		left: map[types.NamespacedName]types.UID{}, due: map[types.NamespacedName]bool{},
		news: make(chan event.TypedGenericEvent[News], 1),
	}
}

// Leave records that the finding is left without a status.
func (s *Statuses) Leave(finding *v1alpha1.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[client.ObjectKeyFromObject(finding)] = finding.UID
}

// Forget removes a finding that has a status or no longer exists.
func (s *Statuses) Forget(finding types.NamespacedName) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.left, finding)
	delete(s.due, finding)
}

// Suffice reports whether the finding was left without a status and has not changed since.
func (s *Statuses) Suffice(finding *v1alpha1.Finding) bool {
	if s == nil || !findingstate.AsCreated(finding) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	uid, left := s.left[client.ObjectKeyFromObject(finding)]
	return left && uid == finding.UID
}

// Store asks for the finding's status to be stored: the deliveries of its creation, which record that they were made,
// are about to go.
func (s *Statuses) Store(finding types.NamespacedName) { s.store(finding, false) }

// Lost asks for the status to be stored of a finding that was left without one, because a delivery of its creation is
// gone: it must not be made again.
func (s *Statuses) Lost(finding types.NamespacedName) {
	if s == nil {
		return
	}
	s.mu.Lock()
	_, left := s.left[finding]
	s.mu.Unlock()
	if left {
		s.store(finding, true)
	}
}

func (s *Statuses) store(finding types.NamespacedName, told bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.due[finding] = told || s.due[finding]
	s.fresh = append(s.fresh, finding)
	s.mu.Unlock()
	select {
	case s.news <- event.TypedGenericEvent[News]{}:
	default: // whoever handles the waiting event finds this one too
	}
}

// News has an event when findings have become due.
func (s *Statuses) News() <-chan event.TypedGenericEvent[News] {
	if s == nil {
		return make(chan event.TypedGenericEvent[News])
	}
	return s.news
}

// NewlyDue returns the findings that have become due since it was called last.
func (s *Statuses) NewlyDue() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.fresh
	s.fresh = nil
	return due
}

// Due reports whether the finding's status is to be stored, and whether all deliveries of its creation were made,
// whatever became of them.
func (s *Statuses) Due(finding types.NamespacedName) (due, told bool) {
	if s == nil {
		return true, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	told, due = s.due[finding]
	return due, told
}
