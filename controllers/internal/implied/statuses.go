// Package implied keeps track of the findings that need no stored status.
package implied

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Statuses holds the findings that their controller has reconciled and left without a status, because all that it would
// hold follows from their creation. Nothing in such a finding tells it from one that was not reconciled yet. After a
// restart, each finding is reconciled again. Statuses is safe for concurrent use; a nil one holds nothing.
type Statuses struct {
	mu   sync.Mutex
	left map[types.NamespacedName]types.UID
}

// NewStatuses returns an empty Statuses.
func NewStatuses() *Statuses { return &Statuses{left: map[types.NamespacedName]types.UID{}} }

// Leave records that the finding is left without a status.
func (s *Statuses) Leave(finding *v1alpha1.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[client.ObjectKeyFromObject(finding)] = finding.UID
}

// Forget removes a finding that gets a status or no longer exists.
func (s *Statuses) Forget(finding types.NamespacedName) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.left, finding)
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
