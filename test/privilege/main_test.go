// Package privilege tests that the operator's service accounts have the rights that they need, and
// no others: both processes run through their life with the chart's own roles and policies, and the
// API server's audit log shows which rights were used.
package privilege

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/chart"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// The names differ from those in the manifests, so that policies that refer to a name are tested
	// too.
	releaseName = "lean"
	namespace   = "lean-system"
)

var (
	env *testenv.Environment
	// scratch is a folder that is removed after the tests.
	scratch string
	// programs is the folder of this project's programs.
	programs string
)

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context, stops *harness.Stops) (err error) {
	if scratch, err = stops.Folder("privilege"); err != nil {
		return err
	}
	if programs, err = harness.Build(ctx); err != nil {
		return err
	}
	policy := filepath.Join(scratch, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	env, err = testenv.StartBare(stops,
		"--audit-policy-file="+policy,
		"--audit-log-path="+auditLog(),
		// Every answered request is already in the log.
		"--audit-log-mode=blocking",
		// Off by default, but on in some distributions: blocking the deletion of an owner requires update on its
		// finalizers.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
	)
	return err
}

// install installs the chart, once for all tests.
func install(t *testing.T) *chart.Release {
	t.Helper()
	release := chart.NewRelease(t, env, releaseName, namespace)
	if err := env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return release // installed by another test
	}
	release.Install(t)
	for _, list := range []client.ObjectList{
		&v1alpha1.OrganizationList{}, &v1alpha1.APIKeyList{}, &v1alpha1.RepositoryList{}, &v1alpha1.ProjectList{},
		&v1alpha1.ScanList{}, &v1alpha1.FindingList{}, &v1alpha1.ReviewList{}, &v1alpha1.ReviewIssueList{},
		&v1alpha1.WebhookEndpointList{}, &v1alpha1.WebhookDeliveryList{},
	} {
		harness.Eventually(t, func(g Gomega) { g.Expect(env.Client.List(t.Context(), list)).To(Succeed()) })
	}
	return release
}

// operator starts the operator's processes as the component's Deployment does, except for the
// addresses and the files that a pod would mount.
func operator(t *testing.T, deployment string) harness.Operator {
	t.Helper()
	return harness.Operator{
		Binary: filepath.Join(programs, "findings-operator"), Folder: t.TempDir(), Namespace: namespace,
		Flags: deployedArguments(t, deployment)[1:],
	}
}
