// Package schema_test checks the generated CRDs: their bounds by walking the schemas, and the API
// server's behaviour by storing objects in a real one.
package schema_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// crds returns the generated CRDs by kind.
func crds(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	out, err := corpus.CRDs()
	harness.Must(t, err)
	return out
}

func schemaOf(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s has %d versions, want 1", crd.Name, len(crd.Spec.Versions))
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// newObject returns an object of the kind, in namespace default if the kind is namespaced.
func newObject(crd *apiextensionsv1.CustomResourceDefinition, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(v1alpha1.GroupVersion.String())
	object.SetKind(crd.Spec.Names.Kind)
	object.SetName(name)
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		object.SetNamespace("default")
	}
	return object
}

// acceptAllKinds marks the namespace default as an organization's: API keys and webhook endpoints are created in no
// other.
func acceptAllKinds(t *testing.T) {
	t.Helper()
	mark := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.OrganizationUIDAnnotation+`":"x"}}}`))
	harness.Must(t, env.Client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, mark))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(env.Client.Create(t.Context(), builder.APIKey("probe").In("default").Build(), client.DryRunAll)).To(Succeed())
	})
}

// almighty returns the config of the only account that may write a status, with all rights, so that only the schema can
// refuse.
func almighty() *rest.Config {
	return env.Impersonate(testenv.ServiceAccountUsername(testenv.SystemNamespace, testenv.ControllerServiceAccount), user.SystemPrivilegedGroup)
}

func controller(t *testing.T) client.Client {
	t.Helper()
	return env.As(t, almighty())
}
