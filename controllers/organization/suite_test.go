package organization

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

var shared = controllertest.Share(SetupWithManager)

func TestMain(m *testing.M) { controllertest.Main(m, &env) }

func newOrganization(t *testing.T, name string) *v1alpha1.Organization {
	t.Helper()
	return testenv.Create(t, env, builder.Organization(name).Build())
}

// readyOrganization creates an organization, and waits until it is ready.
func readyOrganization(t *testing.T, name string) *v1alpha1.Organization {
	t.Helper()
	return testenv.CreateReady(t, env, builder.Organization(name).Build())
}

func newNamespace(t *testing.T, name string, annotations map[string]string) *corev1.Namespace {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name, Annotations: annotations}
	return testenv.Create(t, env, &corev1.Namespace{ObjectMeta: meta})
}

func reason(organization *v1alpha1.Organization, conditionType string) string {
	if c := v1alpha1.FindCondition(organization.Status.Conditions, conditionType); c != nil {
		return c.Reason + "/" + string(c.Status)
	}
	return "absent"
}
