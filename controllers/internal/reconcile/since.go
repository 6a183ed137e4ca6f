package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Since remembers, by object, since when a state lasts, such as a refusal or a wait. The zero value is ready for use.
type Since struct{ first sync.Map }

// For returns how long the state has lasted at that time: 0 at first.
func (s *Since) For(object types.NamespacedName, now time.Time) time.Duration {
	first, _ := s.first.LoadOrStore(object, now)
	return now.Sub(first.(time.Time)) //nolint:forcetypeassert // nothing else is stored
}

// Forget must be called when the state has ended, and when the object is gone.
func (s *Since) Forget(object types.NamespacedName) { s.first.Delete(object) }
