package reviewimport

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// turns are the turns in which a review is compared, one after the other, and the issues that it may hold meanwhile.
type turns struct {
	im   *Importer
	plan *plan
	// current is nil before the first turn and after the last.
	current importer.Turn
	// issues are those of the pull request; plan gets the names of those that cannot be read.
	issues []v1alpha1.ReviewIssue
}

// next waits for the first turn, or for another once the current one is over, and lists the issues anew.
func (t *turns) next(ctx context.Context) (err error) {
	if t.current != nil && !t.current.Over() {
		return nil
	}
	t.end()
	if t.current, err = t.im.client.Turn(ctx); err == nil {
		t.issues, t.plan.unreadable, err = t.im.issues(ctx)
	}
	return err
}

// end ends the current turn, if there is one.
func (t *turns) end() {
	if t.current != nil {
		t.current.End()
	}
	t.current, t.issues = nil, nil
}
