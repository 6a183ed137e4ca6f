package repository

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/tally"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// closedClass is the class of closed findings, which count for no category: their number is not
// shown, but a removal needs it.
const closedClass = "closed"

// everyFinding counts a finding for its repository, by category, or as closed.
func everyFinding(object client.Object) tally.Share {
	finding := object.(*v1alpha1.Finding)
	class := string(finding.Spec.Category)
	if findingstate.State(finding) == v1alpha1.FindingStateClosed {
		class = closedClass
	}
	return tally.ShareOf(finding, finding.Spec.RepositoryRef.Name, class)
}

// everyProject counts a project for its repository.
func everyProject(object client.Object) tally.Share {
	return tally.ShareOf(object, object.(*v1alpha1.Project).Spec.RepositoryRef.Name, "")
}

// everyScan counts a scan for its repository.
func everyScan(object client.Object) tally.Share {
	scan := object.(*v1alpha1.Scan)
	return tally.ShareOf(scan, repositoryOfScan(scan), "")
}

// everyReview counts a review for its repository.
func everyReview(object client.Object) tally.Share {
	return tally.ShareOf(object, object.(*v1alpha1.Review).Spec.RepositoryRef.Name, "")
}

func repositoryOfScan(scan *v1alpha1.Scan) v1alpha1.ResourceName { return scan.Spec.RepositoryRef.Name }
