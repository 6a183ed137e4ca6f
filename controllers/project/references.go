package project

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/tally"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// The classes that findings are counted in. The number of closed findings is not shown, but a
// removal needs it.
const (
	openClass   = "open"
	closedClass = "closed"
)

// everyFinding counts a finding for its project, closed findings separately.
func everyFinding(object client.Object) tally.Share {
	finding := object.(*v1alpha1.Finding)
	class := openClass
	if findingstate.State(finding) == v1alpha1.FindingStateClosed {
		class = closedClass
	}
	return tally.ShareOf(finding, finding.Spec.ProjectRef.Name, class)
}

// everyScan counts a scan for its project.
func everyScan(object client.Object) tally.Share {
	scan := object.(*v1alpha1.Scan)
	return tally.ShareOf(scan, projectOfScan(scan), "")
}

func projectOfScan(scan *v1alpha1.Scan) v1alpha1.ResourceName { return scan.Spec.ProjectRef.Name }

func repositoryOfProject(project *v1alpha1.Project) v1alpha1.ResourceName {
	return project.Spec.RepositoryRef.Name
}

// worthReconciling ignores our own status writes, except when a project begins to wait for its repository.
var worthReconciling = watch.SpecOr(func(before, after *v1alpha1.Project) bool {
	return watch.FinalizersChanged(before, after) ||
		watch.BeginsToWait(before.Status.Conditions, after.Status.Conditions, v1alpha1.ReasonRepositoryNotFound)
})
