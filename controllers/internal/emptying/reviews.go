// Package emptying tells the controller of Reviews which reviews retention is removing.
package emptying

import (
	"sync"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Reviews holds, by namespace, the UID of the review whose issues retention is removing, over several turns. It is safe
// for concurrent use.
type Reviews struct{ uids sync.Map }

// Begin must be called before the first issue is removed. It replaces the other review of the namespace, if any.
func (r *Reviews) Begin(review *v1alpha1.Review) { r.uids.Store(review.Namespace, review.UID) }

// End must be called once the review in that namespace is removed, or stays.
func (r *Reviews) End(namespace string) { r.uids.Delete(namespace) }

// Has reports whether the issues of the review are being removed. Whoever counts them must call it afterwards.
func (r *Reviews) Has(review *v1alpha1.Review) bool {
	uid, found := r.uids.Load(review.Namespace)
	return found && uid == review.UID
}
