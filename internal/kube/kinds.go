package kube

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Object is an object of the Kubernetes API.
type Object interface {
	metav1.Object
	runtime.Object
}

// MetadataOf returns an empty object of a kind of which only the metadata is read.
func MetadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// Kind is one of this project's kinds.
type Kind struct {
	// Name of the kind, such as "Finding".
	Name string
	// Resource is its name in paths, such as "findings".
	Resource string
	// New returns an empty object.
	New func() Object
}

var kinds = []Kind{
	{"APIKey", "apikeys", func() Object { return &v1alpha1.APIKey{} }},
	{"Finding", "findings", func() Object { return &v1alpha1.Finding{} }},
	{"FindingTrend", "findingtrends", func() Object { return &v1alpha1.FindingTrend{} }},
	{"Organization", "organizations", func() Object { return &v1alpha1.Organization{} }},
	{"Project", "projects", func() Object { return &v1alpha1.Project{} }},
	{"Repository", "repositories", func() Object { return &v1alpha1.Repository{} }},
	{"Review", "reviews", func() Object { return &v1alpha1.Review{} }},
	{"ReviewIssue", "reviewissues", func() Object { return &v1alpha1.ReviewIssue{} }},
	{"Scan", "scans", func() Object { return &v1alpha1.Scan{} }},
	{"TriageOperation", "triageoperations", func() Object { return &v1alpha1.TriageOperation{} }},
	{"TriageOperationPart", "triageoperationparts", func() Object { return &v1alpha1.TriageOperationPart{} }},
	{"TriagePolicy", "triagepolicies", func() Object { return &v1alpha1.TriagePolicy{} }},
	{"WebhookDelivery", "webhookdeliveries", func() Object { return &v1alpha1.WebhookDelivery{} }},
	{"WebhookEndpoint", "webhookendpoints", func() Object { return &v1alpha1.WebhookEndpoint{} }},
}

// KindOf returns the kind of an object by its Go type. ok is false for other projects' kinds.
func KindOf(object any) (kind Kind, ok bool) {
	for _, kind := range kinds {
		if reflect.TypeOf(kind.New()) == reflect.TypeOf(object) {
			return kind, true
		}
	}
	return Kind{}, false
}

// Resource returns the name in paths of the kind with that name, or "" if it is another project's.
func Resource(name string) string {
	for _, kind := range kinds {
		if kind.Name == name {
			return kind.Resource
		}
	}
	return ""
}

// NewMapper returns a mapper of this project's kinds, which spares a client discovery.
func NewMapper() *meta.DefaultRESTMapper {
	mapper, version := meta.NewDefaultRESTMapper(nil), v1alpha1.GroupVersion
	for _, kind := range kinds {
		scope := meta.RESTScopeNamespace
		if kind.Name == "Organization" {
			scope = meta.RESTScopeRoot
		}
		mapper.AddSpecific(version.WithKind(kind.Name), version.WithResource(kind.Resource),
			version.WithResource(strings.ToLower(kind.Name)), scope)
	}
	return mapper
}
