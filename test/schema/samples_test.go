package schema_test

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A member that the schema does not know would be dropped silently; strict validation refuses it.
func TestEveryKindHasASampleAndTheAPIServerTakesAll(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "org-sample", Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "x"},
	}}
	env.Create(t, namespace)
	files, err := filepath.Glob(filepath.Join(harness.Root(), "config", "samples", "*.yaml"))
	harness.Must(t, err)
	sampled := map[string]bool{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			sample := readSample(t, file)
			// A kind's first sample is named after it: project.yaml, project-billing.yaml.
			name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "-")
			harness.Same(t, "the kind in the file", name, strings.ToLower(sample.GetKind()))
			sampled[sample.GetKind()] = true
			strict := client.WithFieldValidation(env.Client, metav1.FieldValidationStrict)
			harness.NoError(t, "create it", strict.Create(t.Context(), sample))
		})
	}
	for kind := range crds(t) {
		// Only the controllers write the parts of operations, and trends.
		if !sampled[kind] && kind != "TriageOperationPart" && kind != "FindingTrend" {
			t.Errorf("config/samples has no %s", kind)
		}
	}
}

func readSample(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	content := harness.File(t, file)
	sample := &unstructured.Unstructured{}
	harness.Must(t, yaml.UnmarshalStrict([]byte(content), &sample.Object))
	return sample
}
