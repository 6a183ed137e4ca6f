package finding

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// nameCommitter records who committed the operation that has decided, because the operation may be deleted. Nobody is
// named if the cache no longer has it: a request per finding would cost too much.
func (r *Reconciler) nameCommitter(ctx context.Context, s *scope) error {
	// added is a part of s.Status.Transitions: a change to it changes the status.
	added := findingstate.History(s.Status).Since(findingstate.History(s.Before))
	for i := range added {
		name, is := strings.CutPrefix(added[i].By, v1alpha1.OperationAuthorPrefix)
		if !is || added[i].Type != v1alpha1.TransitionTriaged {
			continue
		}
		key, operation := client.ObjectKey{Namespace: s.Object.Namespace, Name: name}, &v1alpha1.TriageOperation{}
		err := r.Client.Get(ctx, key, operation, client.UnsafeDisableDeepCopy)
		switch {
		case kube.IsNotFound(err):
			continue
		case err != nil:
			s.LeaveStatus() // a stored transition would get no author and no line of the audit log
			return fmt.Errorf("look up the operation %q: %w", name, err)
		}
		added[i].Author = findingstate.Committer(operation, s.Object)
	}
	return nil
}
