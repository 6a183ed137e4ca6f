package kinds

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/controllers/cursorkeys"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestTheSecretIsMadeOnceWithTheRightsOfTheControllers(t *testing.T) {
	config := account(t)
	made := eventually(t, run(t, config))
	if n := len(made.Data["key-1"]); len(made.Data) != 1 || n != 32 {
		t.Errorf("the Secret holds %d keys, key-1 of %d bytes; want one of 32", len(made.Data), n)
	}
	another := run(t, config) // a replica, or the same after a restart
	harness.Eventually(t, func(g Gomega) { g.Expect(another.HasWaiters()).To(BeTrue()) })
	harness.Same(t, "the Secret", made, eventually(t, another))
}

// The API server counts a refused creation in the used quota, until the quota controller counts again minutes later.
func TestAnExistingSecretUsesNoFurtherQuota(t *testing.T) {
	const namespace = testenv.SystemNamespace
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cursor-keys"}}
	harness.Must(t, client.IgnoreNotFound(env.Client.Delete(t.Context(), secret)))
	clock := run(t, account(t))
	eventually(t, clock)
	many := corev1.ResourceList{corev1.ResourceSecrets: resource.MustParse("1000")}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "secrets"},
		Spec:       corev1.ResourceQuotaSpec{Hard: many},
	}
	env.Create(t, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: many, Used: corev1.ResourceList{corev1.ResourceSecrets: resource.MustParse("0")}}
	harness.Must(t, env.Client.Status().Update(t.Context(), quota))
	used := func(g Gomega) int64 {
		secrets := testenv.Get(t, g, env, quota).Status.Used[corev1.ResourceSecrets]
		return secrets.Value()
	}
	harness.Eventually(t, func(g Gomega) { // until the API server counts
		probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "counted-"}}
		env.Create(t, probe)
		g.Expect(used(g)).To(BeNumerically(">", 0))
	})
	before := used(NewWithT(t))
	for range 3 {
		harness.Eventually(t, func(g Gomega) { g.Expect(clock.HasWaiters()).To(BeTrue()) })
		clock.Step(time.Minute)
	}
	harness.Eventually(t, func(g Gomega) { g.Expect(clock.HasWaiters()).To(BeTrue()) })
	harness.Same(t, "used quota of Secrets after three checks", before, used(NewWithT(t)))
}

// SECURITY.md tells users to delete the Secret if it leaks.
func TestADeletedSecretIsMadeAgain(t *testing.T) {
	clock := run(t, account(t))
	leaked := eventually(t, clock)
	harness.Must(t, env.Client.Delete(t.Context(), leaked))
	if made := eventually(t, clock); cmp.Equal(made.Data, leaked.Data) {
		t.Error("the leaked keys are used again")
	}
}

// It may start before its role exists: the pods of an installation start in any order.
func TestCreationIsRetriedUntilPermitted(t *testing.T) {
	const namespace, name = testenv.SystemNamespace, "early"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cursor-keys"}}
	harness.Must(t, client.IgnoreNotFound(env.Client.Delete(t.Context(), secret)))
	config, err := env.ServiceAccount(t.Context(), namespace, name)
	harness.Must(t, err)
	clock := run(t, config)
	harness.Eventually(t, func(g Gomega) { g.Expect(clock.HasWaiters()).To(BeTrue()) })
	if !env.Gone(t, secret) {
		t.Fatal("it was allowed without a role")
	}
	env.Create(t, testenv.Bind(namespace, name, "cluster-admin", testenv.Account(namespace, name)))
	eventually(t, clock)
}

// account has the rights of config/manager and no others: the ClusterRole of config/rbac holds
// more where the kinds live in the same cluster.
func account(t *testing.T) *rest.Config {
	t.Helper()
	const namespace, name = testenv.SystemNamespace, testenv.ControllerServiceAccount
	harness.Must(t, env.ApplyFile(t.Context(), filepath.Join(harness.Root(), "config", "manager", "role.yaml")))
	binding := testenv.Get(t, NewWithT(t), env, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})
	harness.Must(t, env.Client.Delete(t.Context(), binding))
	t.Cleanup(func() {
		binding.ResourceVersion = ""
		harness.Must(t, env.Client.Create(context.WithoutCancel(t.Context()), binding))
	})
	config, err := env.ServiceAccount(t.Context(), namespace, name)
	harness.Must(t, err)
	return config
}

// run runs a Maker until the end of the test, and returns its clock.
func run(t *testing.T, config *rest.Config) *testclock.FakeClock {
	t.Helper()
	maker, err := cursorkeys.New(config, testenv.SystemNamespace, "cursor-keys", logr.Discard())
	harness.Must(t, err)
	clock := testclock.NewFakeClock(time.Now())
	maker.Clock = clock
	harness.Background(t, maker.Start)
	return clock
}

// eventually returns the Secret once it exists. Each look is a minute later, for a role that is not effective at once.
func eventually(t *testing.T, clock *testclock.FakeClock) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.SystemNamespace, Name: "cursor-keys"}}
	harness.Eventually(t, func(g Gomega) {
		clock.Step(time.Minute)
		testenv.Get(t, g, env, secret)
	})
	return secret
}
