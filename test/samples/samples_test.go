// Package samples checks that the API server accepts the manifests in config/samples.
package samples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// A member that the schema does not know would be dropped silently; strict validation refuses it.
func TestEveryKindHasASampleAndTheAPIServerTakesAll(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "org-sample", Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "x"},
	}}
	harness.Must(t, env.Client.Create(t.Context(), namespace))
	files, err := filepath.Glob(filepath.Join(testenv.RepositoryRoot(), "config", "samples", "*.yaml"))
	harness.Must(t, err)
	sampled := map[string]bool{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			sample := read(t, file)
			// A kind's first sample is named after it: project.yaml, project-billing.yaml.
			if name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "-"); name != strings.ToLower(sample.GetKind()) {
				t.Errorf("the file holds a %s", sample.GetKind())
			}
			sampled[sample.GetKind()] = true
			strict := client.WithFieldValidation(env.Client, metav1.FieldValidationStrict)
			if err := strict.Create(t.Context(), sample); err != nil {
				t.Error(err)
			}
		})
	}
	for _, kind := range kinds(t) {
		if !sampled[kind] {
			t.Errorf("config/samples has no %s", kind)
		}
	}
}

func read(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	harness.Must(t, err)
	sample := &unstructured.Unstructured{}
	harness.Must(t, yaml.UnmarshalStrict(content, &sample.Object))
	return sample
}

// kinds returns the kinds of this project's group that the API server serves.
func kinds(t *testing.T) []string {
	t.Helper()
	scheme := env.Client.Scheme()
	harness.Must(t, apiextensionsv1.AddToScheme(scheme))
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	harness.Must(t, env.Client.List(t.Context(), list))
	var kinds []string
	for i := range list.Items {
		// Only the controllers write the parts of operations, and trends.
		kind := list.Items[i].Spec.Names.Kind
		if list.Items[i].Spec.Group == "appsec.dev" && kind != "TriageOperationPart" && kind != "FindingTrend" {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) < 6 {
		t.Fatalf("the API server serves only %v", kinds)
	}
	return kinds
}
