// Package v1alpha1 holds the kinds of the appsec.dev API group: an application-security
// team's findings and what lives beside them.
//
// Every string and list is bounded, so that no object of any kind can come near the
// 1.5 MB that etcd accepts: the sum of maxLength x maxItems over a kind stays under
// 160,000 characters, of which stored JSON may write each as six bytes.
//
// +kubebuilder:object:generate=true
// +groupName=appsec.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind in this package.
const GroupName = "appsec.dev"

// Category is the kubectl category of every kind: `kubectl get appsec`.
const Category = "appsec"

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers every kind in this package.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&APIKey{}, &APIKeyList{},
		&Finding{}, &FindingList{},
		&FindingTrend{}, &FindingTrendList{},
		&Organization{}, &OrganizationList{},
		&Project{}, &ProjectList{},
		&Repository{}, &RepositoryList{},
		&Review{}, &ReviewList{},
		&ReviewIssue{}, &ReviewIssueList{},
		&Scan{}, &ScanList{},
		&TriageOperation{}, &TriageOperationList{},
		&TriageOperationPart{}, &TriageOperationPartList{},
		&TriagePolicy{}, &TriagePolicyList{},
		&WebhookDelivery{}, &WebhookDeliveryList{},
		&WebhookEndpoint{}, &WebhookEndpointList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
