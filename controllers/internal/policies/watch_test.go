package policies

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A policy's verdict about a review issue may rest on the owner of a project that is deleted later.
func TestTheDeletionOfAProjectOrRepositoryChangesFacts(t *testing.T) {
	harness.Same(t, "project", true, ProjectFactsDiffer.Delete(event.DeleteEvent{Object: builder.Project("p").Build()}))
	harness.Same(t, "repository", true, RepositoryFactsDiffer.Delete(event.DeleteEvent{Object: builder.Repository("r").Build()}))
}
