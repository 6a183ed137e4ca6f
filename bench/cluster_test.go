package bench_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/organization"
	"github.com/appsec-dev/findings-operator/controllers/project"
	"github.com/appsec-dev/findings-operator/controllers/repository"
	"github.com/appsec-dev/findings-operator/controllers/retention"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// cluster is an organization with one repository of one project, in which the controllers see many
// findings. Except for the findings, everything is in a real API server.
type cluster struct {
	name, namespace string
	// reconcilers holds the controllers' reconcilers by controller name.
	reconcilers map[string]reconcile.Reconciler
	// stop ends the controllers. The controllers of one cluster must have stopped before the next
	// cluster is created: they see each other's resources, but not the findings added to each
	// other's caches, and would overwrite each other's counts.
	stop func()
}

// newCluster creates a cluster with n findings in the controllers' cache, a fifth of them closed an
// hour ago. They are added to the API server's lists, because storing 10,000 takes long. They
// have the status that their controller gives them, so that nothing needs to be written.
func newCluster(t testing.TB, n int) *cluster {
	t.Helper()
	c := &cluster{name: fmt.Sprintf("bench-%d-%d", n, time.Now().UnixNano()), reconcilers: map[string]reconcile.Reconciler{}}
	c.namespace = v1alpha1.NamespacePrefix + c.name
	env.Create(t, builder.Organization(c.name).Mutate(func(o *v1alpha1.Organization) {
		o.Spec.Retention = &v1alpha1.Retention{ClosedFindings: &metav1.Duration{Duration: 24 * time.Hour}}
	}).Build())

	// Start without the findings until one finding is settled: all others are copied from it.
	stop := c.start(t, nil)
	harness.Eventually(t, func(g Gomega) {
		o := testenv.Get(t, g, env, builder.Organization(c.name).Build())
		g.Expect(o.Status.Namespace).To(Equal(c.namespace))
	})
	one := builder.Finding("f-one").In(c.namespace).Tool("gosec", v1alpha1.CategoryCode).Build()
	env.Create(t, builder.Repository("repo").In(c.namespace).Build(), builder.Project("proj").In(c.namespace).Build(),
		builder.Scan("s-1", time.Now().Add(-time.Hour)).In(c.namespace).Ended(time.Now(), v1alpha1.ScanSucceeded).Build(), one)
	harness.Eventually(t, func(g Gomega) {
		// The finding's controller is not started: see start.
		_, err := c.reconcilers["finding"].Reconcile(t.Context(), c.request("finding"))
		g.Expect(err).NotTo(HaveOccurred())
		testenv.Get(t, g, env, one)
		g.Expect(v1alpha1.IsConditionTrue(one.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	})
	stop()

	c.stop = c.start(t, copies(one, n-1))
	open := n - (n-1)/5
	harness.Eventually(t, func(g Gomega) {
		repo := testenv.Get(t, g, env, builder.Repository("repo").In(c.namespace).Build())
		proj := testenv.Get(t, g, env, builder.Project("proj").In(c.namespace).Build())
		o := testenv.Get(t, g, env, builder.Organization(c.name).Build())
		g.Expect([]int32{repo.Status.Counts.Findings, proj.Status.FindingsCount, o.Status.Counts.Findings}).To(HaveEach(BeEquivalentTo(open)))
	})
	return c
}

// request returns the controller's request for the cluster's object.
func (c *cluster) request(controller string) reconcile.Request {
	switch controller {
	case "organization", "retention":
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: c.name}}
	}
	name := map[string]string{"finding": "f-one", "project": "proj", "repository": "repo"}[controller]
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: c.namespace, Name: name}}
}

// start runs the controllers as their service account, with the cache of the real manager, which holds the given
// findings in addition to the real ones.
func (c *cluster) start(t testing.TB, findings []runtime.Object) (stop func()) {
	t.Helper()
	identity, err := env.Controller(t.Context())
	harness.Must(t, err)
	options := controllers.CacheOptions()
	options.NewInformer = func(lw toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ok := kind.(*v1alpha1.Finding); ok {
			lw = padded{lw, findings}
		}
		return toolscache.NewSharedIndexInformer(lw, kind, resync, indexers)
	}
	mgr, err := ctrl.NewManager(identity, manager.Options{
		Scheme: env.Scheme, Cache: options,
		Client:     client.Options{FieldOwner: v1alpha1.ControllerFieldManager},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	harness.Must(t, err)
	for name, setup := range map[string]controllertest.Setup{
		"finding": finding.Settings{}.SetupWithManager, "organization": organization.SetupWithManager,
		"project": project.SetupWithManager, "repository": repository.SetupWithManager,
		"retention": retention.Settings{}.SetupWithManager,
	} {
		harness.Must(t, setup(t.Context(), &catcher{mgr, c, name}, controllers.Options(1)))
	}
	stop = harness.Background(t, mgr.Start)
	if !mgr.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not sync")
	}
	return stop
}

// catcher captures the controller that is added to the manager, so that the test can call its
// reconciler. The finding controller is not started: it would reconcile all findings, but the
// benchmark measures one.
type catcher struct {
	ctrl.Manager
	cluster *cluster
	name    string
}

func (c *catcher) Add(runnable manager.Runnable) error {
	if reconciler, ok := runnable.(reconcile.Reconciler); ok {
		c.cluster.reconcilers[c.name] = reconciler
		if c.name == "finding" {
			return nil
		}
	}
	return c.Manager.Add(runnable)
}

// padded lists the API server's objects and more.
type padded struct {
	toolscache.ListerWatcher
	more []runtime.Object
}

func (p padded) List(options metav1.ListOptions) (runtime.Object, error) {
	list, err := p.ListerWatcher.List(options) //nolint:staticcheck // it is what is wrapped
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	return list, meta.SetList(list, append(items, p.more...))
}

// IsWatchListSemanticsUnSupported makes the reflector call List.
func (p padded) IsWatchListSemanticsUnSupported() bool { return true }

// copies returns n copies of the finding, every fifth closed an hour ago.
func copies(one *v1alpha1.Finding, n int) []runtime.Object {
	out := make([]runtime.Object, n)
	for i := range out {
		f := one.DeepCopy()
		f.Name, f.UID = fmt.Sprintf("f-copy-%06d", i), types.UID(fmt.Sprint("copy-", i))
		if i%5 == 4 {
			f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(time.Now().Add(-time.Hour)), ScanID: "s-1"}
		}
		out[i] = f
	}
	return out
}
