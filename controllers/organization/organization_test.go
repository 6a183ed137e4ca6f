package organization

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func binding(namespace, name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func scannerAccount(namespace string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: scannerServiceAccount}}
}

func TestOrganizationGetsItsNamespaceAndRoles(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "granted")

	g := NewWithT(t)
	g.Expect(organization.Status.Namespace).To(Equal("org-granted"))
	g.Expect(organization.Status.ObservedGeneration).To(Equal(organization.Generation))
	namespace := testenv.Get(t, g, env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-granted"}})
	g.Expect(namespace.Annotations).To(HaveKeyWithValue("appsec.dev/organization-uid", string(organization.UID)))
	testenv.Get(t, g, env, scannerAccount("org-granted"))
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: name}
	}
	for role, subjects := range map[string][]rbacv1.Subject{
		"findings-viewer":  {group("appsec:granted:viewers")},
		"findings-triager": {group("appsec:granted:triagers")},
		"findings-scanner": {
			group("appsec:granted:scanners"),
			{Kind: "ServiceAccount", Namespace: "org-granted", Name: "scanner"},
			{Kind: "ServiceAccount", Namespace: "org-granted", Name: "findings-uploads"},
		},
		"findings-admin": {group("appsec:granted:admins")},
	} {
		b := testenv.Get(t, g, env, binding("org-granted", role))
		g.Expect(b.RoleRef).To(Equal(rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: role}))
		g.Expect(b.Subjects).To(Equal(subjects))
	}
}

func TestNamespaceIsLabelledAsThePoliciesNeedIt(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "labels")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-labels"}}
	labelled := func(reason, imports string) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			labels := testenv.Get(t, g, env, namespace).Labels
			g.Expect(labels["appsec.dev/require-reason"]).To(Equal(reason))
			g.Expect(labels["appsec.dev/imports-create"]).To(Equal(imports))
		})
	}
	labelled("", "false")
	changeSpec(t, organization, func(s *v1alpha1.OrganizationSpec) {
		s.Triage = &v1alpha1.OrganizationTriage{RequireReason: true}
	})
	labelled("true", "false")
	env.Patch(t, namespace, `{"metadata":{"labels":{"appsec.dev/require-reason":null,"appsec.dev/imports-create":null}}}`)
	labelled("true", "false")
	changeSpec(t, organization, func(s *v1alpha1.OrganizationSpec) {
		s.Triage, s.Imports = nil, &v1alpha1.OrganizationImports{Create: true}
	})
	labelled("", "")
	changeSpec(t, organization, func(s *v1alpha1.OrganizationSpec) { s.Imports = nil })
	labelled("", "false")
}

// A policy must not miss what happens before the first reconcile ends.
func TestNamespaceIsCreatedWithItsLabels(t *testing.T) {
	organization := builder.Organization("acme").Mutate(func(o *v1alpha1.Organization) {
		o.Spec.Triage = &v1alpha1.OrganizationTriage{RequireReason: true}
	}).Build()
	r := Reconciler{Base: reconcile.Base{Client: fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build(), Recorder: events.NewFakeRecorder(1)}}
	namespace, err := r.createNamespace(t.Context(), scopeOf(organization))
	harness.Must(t, err)
	harness.Same(t, "labels", map[string]string{
		"app.kubernetes.io/managed-by": "findings-operator", "appsec.dev/require-reason": "true", "appsec.dev/imports-create": "false",
	}, namespace.Labels)
}

func TestNamespaceThatIsNotOursIsLeftAlone(t *testing.T) {
	shared.Start(t, env)
	cases := map[string]struct {
		reason      string
		annotations map[string]string
	}{
		"plain": {"a namespace of that name proves nothing", nil},
		"other": {"an earlier organization's is not this one's", map[string]string{v1alpha1.OrganizationUIDAnnotation: "another"}},
		"empty": {"an empty annotation is no UID", map[string]string{v1alpha1.OrganizationUIDAnnotation: ""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t, "org-conflict-"+name, tc.annotations)
			organization := newOrganization(t, "conflict-"+name)
			harness.Eventually(t, func(g Gomega) {
				testenv.Get(t, g, env, organization)
				g.Expect(reason(organization, v1alpha1.ConditionReady)).To(Equal("NamespaceConflict/False"), tc.reason)
				g.Expect(reason(organization, v1alpha1.ConditionStalled)).To(Equal("NamespaceConflict/True"), tc.reason)
			})
			g := NewWithT(t)
			g.Expect(organization.Status.Namespace).To(BeEmpty())
			bindings := testenv.List(t, g, env, &rbacv1.RoleBindingList{}, client.InNamespace(namespace.Name))
			g.Expect(bindings.Items).To(BeEmpty(), "a role was granted in a namespace that is not ours")

			g.Expect(env.Client.Delete(t.Context(), organization)).To(Succeed())
			env.AwaitGone(t, organization)
			testenv.Get(t, g, env, namespace)
			g.Expect(namespace.DeletionTimestamp).To(BeNil(), "another's namespace was deleted")
		})
	}
}

// To delete the namespace would delete all decisions of the backup.
func TestRestoredNamespaceIsAdoptedAsTheMessageSays(t *testing.T) {
	shared.Start(t, env)
	for name, uid := range map[string]string{"restored": "earlier", "restored-without-a-uid": ""} {
		namespace := newNamespace(t, "org-"+name, map[string]string{v1alpha1.OrganizationUIDAnnotation: uid})
		finding := builder.Finding("f").In(namespace.Name).Triage(v1alpha1.UserStatusMuted, "why").Build()
		env.Create(t, finding)
		organization := newOrganization(t, name)
		says := fmt.Sprintf("kubectl annotate namespace %q appsec.dev/organization-uid=%q --overwrite", namespace.Name, organization.UID)
		harness.Eventually(t, func(g Gomega) {
			g.Expect(testenv.Ready(t, g, env, organization).Message).To(ContainSubstring(says))
		})
		namespace.Annotations[v1alpha1.OrganizationUIDAnnotation] = string(organization.UID)
		harness.Must(t, env.Client.Update(t.Context(), namespace))
		testenv.AwaitReady(t, env, organization)
		harness.Same(t, "Stalled", "absent", reason(organization, v1alpha1.ConditionStalled))
		was, g := finding.UID, NewWithT(t)
		g.Expect(testenv.Get(t, g, env, finding).UID).To(Equal(was), name)
		g.Expect(finding.Spec.Triage.Comments).To(Equal("why"), name)
	}
}

// Otherwise whoever empties the namespace one day loses the organization.
func TestADeletionThatWaitsIsTakenBackAsThePageSays(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "regretted")
	namespace := testenv.Get(t, NewWithT(t), env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-regretted"}})
	env.Create(t, builder.WebhookEndpoint("team").In(namespace.Name).Build())
	harness.Must(t, env.Client.Delete(t.Context(), organization))
	message := testenv.AwaitReason(t, env, organization, v1alpha1.ReasonNotEmpty).Message
	harness.Same(t, "whether the message names the page", true, strings.Contains(message, "docs/kinds/organization.md"))
	commands := strings.ReplaceAll(harness.Commands(t, "kinds/organization.md", "take back a deletion"), "acme", organization.Name)
	shell := exec.CommandContext(t.Context(), "bash", "-c", commands) //nolint:gosec // the page's commands
	shell.Dir = t.TempDir()
	shell.Env = append(os.Environ(), "KUBECONFIG="+testenv.WriteKubeconfig(t, env.Config, metav1.NamespaceDefault),
		"PATH="+filepath.Dir(testenv.Binary(t, "kubectl"))+":"+os.Getenv("PATH"))
	harness.Run(t, shell).Wants("organization.appsec.dev/regretted created")
	was := organization.UID
	testenv.AwaitReady(t, env, organization)
	harness.Same(t, "whether the Organization is a new one", true, organization.UID != was)
	kept := namespace.UID
	harness.Same(t, "the namespace", kept, testenv.Get(t, NewWithT(t), env, namespace).UID)
	harness.Same(t, "whether it is being deleted", false, namespace.DeletionTimestamp != nil)
	testenv.Get(t, NewWithT(t), env, builder.WebhookEndpoint("team").In(namespace.Name).Build())
}

// Removing the annotation makes the organization's data unavailable in the REST API.
func TestNamespaceThatIsNoLongerOursIsGivenUp(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "robbed")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-robbed"}}
	testenv.Change(t, env, namespace, func(n *corev1.Namespace) {
		n.Annotations[v1alpha1.OrganizationUIDAnnotation] = "another"
	})
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, env, organization)
		g.Expect(organization.Status.Namespace).To(BeEmpty())
		g.Expect(reason(organization, v1alpha1.ConditionStalled)).To(Equal("NamespaceConflict/True"))
	})
}

func TestAccessIsKeptAsItShouldBe(t *testing.T) {
	shared.Start(t, env)
	readyOrganization(t, "kept")
	const namespace = "org-kept"
	intruder := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}
	change := func(t *testing.T, role string, apply func(*rbacv1.RoleBinding)) {
		t.Helper()
		testenv.Change(t, env, binding(namespace, role), apply)
	}
	cases := map[string]struct {
		reason string
		tamper func(t *testing.T)
	}{
		"deleted": {"a role that is gone comes back", func(t *testing.T) {
			harness.Must(t, env.Client.Delete(t.Context(), binding(namespace, viewerRole)))
		}},
		"subject added": {"nobody grants a role by the way", func(t *testing.T) {
			change(t, triagerRole, func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, intruder) })
		}},
		"many subjects added": {"also beyond those that the cache holds", func(t *testing.T) {
			change(t, scannerRole, func(b *rbacv1.RoleBinding) {
				b.Subjects = append(b.Subjects, slices.Repeat([]rbacv1.Subject{intruder}, 10)...)
			})
		}},
		"subjects removed": {"nor takes one", func(t *testing.T) {
			change(t, scannerRole, func(b *rbacv1.RoleBinding) { b.Subjects = nil })
		}},
		"label removed": {"the label is what the watch goes by", func(t *testing.T) {
			change(t, viewerRole, func(b *rbacv1.RoleBinding) { b.Labels, b.Subjects = nil, []rbacv1.Subject{intruder} })
		}},
		"role exchanged": {"a role reference cannot be changed, only made anew", func(t *testing.T) {
			harness.Must(t, env.Client.Delete(t.Context(), binding(namespace, viewerRole)))
			forged := binding(namespace, viewerRole)
			forged.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
			forged.Subjects = []rbacv1.Subject{intruder}
			// The controller may be faster than this test; then the create fails.
			_ = env.Client.Create(t.Context(), forged)
		}},
		"account deleted": {"the scanner's account comes back", func(t *testing.T) {
			harness.Must(t, env.Client.Delete(t.Context(), scannerAccount(namespace)))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.tamper(t)
			harness.Eventually(t, func(g Gomega) {
				testenv.Get(t, g, env, scannerAccount(namespace))
				for _, want := range roleBindings("kept", namespace) {
					have := testenv.Get(t, g, env, binding(namespace, want.Name))
					g.Expect(have.RoleRef).To(Equal(want.RoleRef), tc.reason)
					g.Expect(have.Subjects).To(Equal(want.Subjects), tc.reason)
					g.Expect(have.Labels).To(HaveKeyWithValue(v1alpha1.ManagedByLabel, v1alpha1.ManagedBy), tc.reason)
				}
			})
		})
	}
}

// An Event that joins the series of another binding would hide that the administrators' binding was changed too.
func TestEachRestoredRoleBindingHasAnEventOfItsOwn(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "bound")
	var want []string
	for _, role := range []string{viewerRole, adminRole} {
		testenv.Change(t, env, binding("org-bound", role), func(b *rbacv1.RoleBinding) { b.Subjects = nil })
		want = append(want, "RoleBinding "+role+" in org-bound had been changed; changed it back")
	}
	harness.Eventually(t, func(g Gomega) {
		var notes []string
		for _, event := range testenv.List(t, g, env, &eventsv1.EventList{}).Items {
			if event.Regarding.UID == organization.UID && event.Reason == "AccessRestored" {
				notes = append(notes, event.Note)
			}
		}
		g.Expect(notes).To(ConsistOf(want))
	})
}

// Whoever replaces a binding again and again would create an Event each time.
func TestRepeatedReplacementsOfARoleBindingAreOneEvent(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "replaced")
	for range 2 {
		harness.Eventually(t, func(g Gomega) {
			forged := binding("org-replaced", viewerRole)
			g.Expect(env.Client.Delete(t.Context(), forged)).To(Succeed())
			forged.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
			g.Expect(env.Client.Create(t.Context(), forged)).To(Succeed(), "the controller was faster")
		})
		harness.Eventually(t, func(g Gomega) {
			g.Expect(testenv.Get(t, g, env, binding("org-replaced", viewerRole)).RoleRef.Name).To(Equal(viewerRole))
		})
	}
	harness.Eventually(t, func(g Gomega) {
		var times []int32
		for _, event := range testenv.List(t, g, env, &eventsv1.EventList{}).Items {
			if event.Regarding.UID == organization.UID && event.Reason == "AccessRestored" {
				times = append(times, ptr.Deref(event.Series, eventsv1.EventSeries{Count: 1}).Count)
			}
		}
		g.Expect(times).To(Equal([]int32{2}))
	})
}

// Without its finalizer a deleted organization would leave its namespace behind.
func TestLostFinalizerComesBack(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "unfinalized")
	testenv.Change(t, env, organization, func(o *v1alpha1.Organization) { o.Finalizers = nil })
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, organization).Finalizers).To(ConsistOf(v1alpha1.CleanupFinalizer))
	})
}

func TestForgedRoleReferenceIsReplacedAtTheStart(t *testing.T) {
	// No controller runs while the forgery is put in place.
	organization := newOrganization(t, "forged")
	newNamespace(t, "org-forged", map[string]string{v1alpha1.OrganizationUIDAnnotation: string(organization.UID)})
	forged := binding("org-forged", viewerRole)
	forged.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	env.Create(t, forged)
	shared.Alone(t, env)
	testenv.AwaitReady(t, env, organization)
	harness.Same(t, "the role that the binding grants", viewerRole, testenv.Get(t, NewWithT(t), env, binding("org-forged", viewerRole)).RoleRef.Name)
}

func TestCountsFollowWhatTheOrganizationHas(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "counted")
	const namespace = "org-counted"
	statuses := env.AsController(t)
	for i := range 3 {
		repository := testenv.Create(t, env, builder.Repository(fmt.Sprintf("repo-%d", i)).In(namespace).Build())
		repository.Status.Counts.Findings = int32(10 * (i + 1))
		harness.Must(t, statuses.Status().Update(t.Context(), repository))
	}
	env.Create(t, builder.Project("project").In(namespace).Repository("repo-0").Build(), builder.APIKey("key").In(namespace).Build())
	counts := func(want v1alpha1.OrganizationCounts) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) { g.Expect(testenv.Get(t, g, env, organization).Status.Counts).To(Equal(want)) })
	}
	counts(v1alpha1.OrganizationCounts{Repositories: 3, Projects: 1, Findings: 60, APIKeys: 1})

	harness.Must(t, env.Client.Delete(t.Context(), builder.APIKey("key").In(namespace).Build()))
	repository := testenv.Get(t, NewWithT(t), env, builder.Repository("repo-2").In(namespace).Build())
	repository.Status.Counts.Findings = 5
	harness.Must(t, statuses.Status().Update(t.Context(), repository))
	counts(v1alpha1.OrganizationCounts{Repositories: 3, Projects: 1, Findings: 35})
}

func TestARefusalIsShownAndStopsNoCount(t *testing.T) {
	shared.Start(t, env)
	organization := readyOrganization(t, "refused")
	const namespace = "org-refused"
	probe := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}}
	quota := env.UseUp(t, "count/serviceaccounts", probe)
	harness.Must(t, env.Client.Delete(t.Context(), scannerAccount(namespace)))
	env.Create(t, builder.Repository("repo").In(namespace).Build())
	harness.Eventually(t, func(g Gomega) {
		ready := testenv.Ready(t, g, env, organization)
		g.Expect(reason(organization, v1alpha1.ConditionReady)).To(Equal("Refused/False"))
		g.Expect(ready.Message).To(ContainSubstring("exceeded quota"))
		g.Expect(organization.Status.Counts.Repositories).To(BeEquivalentTo(1))
		g.Expect(organization.Status.Namespace).To(Equal(namespace), "its keys are still accepted")
	})
	harness.Must(t, env.Client.Delete(t.Context(), quota))
	env.Patch(t, organization, `{"metadata":{"annotations":{"try":"at-once"}}}`)
	testenv.AwaitReady(t, env, organization)
}

func TestWhatIsRefusedIsTriedAgainSoon(t *testing.T) {
	terminating := &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	forbids := func(details *metav1.StatusDetails) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Details: details}}
	}
	for reason, c := range map[string]struct {
		err       error
		held      string
		undeleted error
		again     time.Duration
		shown     string
	}{
		"a rule of the cluster":                 {fmt.Errorf("quota: %w", forbids(nil)), "", nil, reconcile.RefusedRetry, "The API server refuses"},
		"the same while a removal waits":        {fmt.Errorf("quota: %w", forbids(nil)), "Scan (a few)", nil, reconcile.RefusedRetry, "organization.md. Meanwhile"},
		"the same while a deletion fails":       {forbids(nil), "", apierrors.NewInternalError(errors.New("x")), reconcile.RefusedRetry, "down. Meanwhile"},
		"its namespace, which is being deleted": {fmt.Errorf("quota: %w", forbids(terminating)), "", nil, 0, ""},
	} {
		organization := builder.Organization("acme").Build()
		stored := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(organization).WithStatusSubresource(organization).Build()
		loop := reconcile.Loop[*scope]{
			Base: reconcile.Base{Client: stored, Clock: clock.RealClock{}}, New: newScope,
			Phases: []reconcile.Phase[*scope]{showRefusal(func(_ context.Context, s *scope) error {
				s.held, s.undeleted = c.held, c.undeleted
				return c.err
			})},
		}
		result, err := loop.Run(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "acme"}})
		harness.Same(t, reason+": it is an error", c.shown == "", err != nil)
		harness.Same(t, reason+": when it is tried again", c.again, result.RequeueAfter)
		harness.Must(t, stored.Get(t.Context(), types.NamespacedName{Name: "acme"}, organization))
		checkReadyMessage(t, reason, organization, c.shown)
	}
}

// Else Ready would be True although the access, or the quota, is not as the spec asks.
func TestADeniedRemovalIsAnErrorWhateverItsCode(t *testing.T) {
	denied := webhookerrors.ToStatusErr("hold.example.org", &metav1.Status{Code: http.StatusNotFound})
	s := newScope()
	s.Object = builder.Organization("acme").Build()
	forged := roleBinding(s.namespace(), viewerRole)
	forged.RoleRef.Name = "cluster-admin"
	stored := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(forged, quotaIn(s.namespace())).
		WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return denied },
		}).Build()
	r := &Reconciler{Base: reconcile.Base{Client: stored, Live: stored, Clock: clock.RealClock{}}}
	for reason, err := range map[string]error{
		"a RoleBinding": r.ensureRoleBinding(t.Context(), s, roleBinding(s.namespace(), viewerRole)),
		"a quota":       r.setQuota(t.Context(), s),
	} {
		harness.ErrorContains(t, reason, err, "denied the request")
	}
}

// A rule of the cluster that protects namespaces, or a webhook that is down, may hold a deletion for days.
func TestWhatHoldsADeletionIsShown(t *testing.T) {
	for reason, c := range map[string]struct {
		err   error
		again bool // without an error
		want  string
		// frozen is set if the namespace cannot be changed either.
		frozen bool
	}{
		"a refusal":               {apierrors.NewForbidden(schema.GroupResource{}, "org-acme", errors.New("a protected namespace")), true, "refuses to delete", false},
		"a refusal as conflict":   {webhookerrors.ToStatusErr("x", &metav1.Status{Code: http.StatusConflict}), true, "refuses to delete", false},
		"a failure":               {apierrors.NewInternalError(errors.New("a webhook")), false, "occurred: a webhook", false},
		"a failure of all writes": {apierrors.NewInternalError(errors.New("a webhook")), false, "occurred: a webhook", true},
		"a change meanwhile":      {apierrors.NewConflict(schema.GroupResource{}, "org-acme", errors.New("moved on")), true, "", false},
		"no answer":               {errors.New("connection refused"), false, "", false},
	} {
		organization := builder.Organization("acme").Build()
		organization.UID, organization.Finalizers = "acme", []string{v1alpha1.CleanupFinalizer}
		organization.DeletionTimestamp = new(metav1.Now())
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "org-acme", Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "acme"},
		}}
		stored := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(organization, namespace).
			WithStatusSubresource(organization).WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return c.err },
			Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if _, is := object.(*corev1.Namespace); is && c.frozen {
					return c.err
				}
				return to.Patch(ctx, object, patch, opts...)
			},
		}).Build()
		r := &Reconciler{Base: reconcile.Base{Client: stored, Live: stored, Clock: clock.RealClock{}}}
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "acme"}})
		harness.Same(t, reason+": it is tried again without an error", c.again, result.RequeueAfter > 0 && err == nil)
		harness.Same(t, reason+": it is an error", !c.again, err != nil)
		harness.Must(t, stored.Get(t.Context(), types.NamespacedName{Name: "acme"}, organization))
		checkReadyMessage(t, reason, organization, c.want)
		harness.Must(t, stored.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
		harness.Same(t, reason+": it follows its spec", c.want != "" && !c.frozen, namespace.Labels[v1alpha1.ImportsCreateLabel] == "false")
		bindings := &rbacv1.RoleBindingList{}
		harness.Must(t, stored.List(t.Context(), bindings, client.InNamespace(namespace.Name)))
		harness.Same(t, reason+": it grants access", c.want != "", len(bindings.Items) > 0)
	}
}

// Released, the Organization would leave the namespace behind.
func TestA404OfAProxyIsNoAnswerAboutANamespace(t *testing.T) {
	hidden := handlertest.Gets(func(client.ObjectKey, client.Object) error {
		return harness.ProxyRefusal(http.StatusNotFound, http.MethodGet)
	})
	s := newScope()
	s.Object = builder.Organization("acme").Build()
	err := (&Reconciler{Base: reconcile.Base{Live: hidden}}).remove(t.Context(), s)
	harness.ErrorContains(t, "a namespace that a proxy hides", err, "get namespace org-acme")
}

// checkReadyMessage checks that the message of Ready contains the text; if want is "", that Ready is not set.
func checkReadyMessage(t *testing.T, what string, organization *v1alpha1.Organization, want string) {
	t.Helper()
	message := ""
	if ready := v1alpha1.FindCondition(organization.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		message = ready.Message
	}
	if !strings.Contains(message, want) || (message == "") != (want == "") {
		t.Errorf("%s: the message is %q, want %q in it", what, message, want)
	}
}

func TestWhatKeepsANamespaceFromBeingEmptiedIsShown(t *testing.T) {
	const fails, remain = ` Kubernetes fails to empty it: "legal hold".`, "Some content in the namespace has finalizers remaining: "
	hold := func(finalizers string) string {
		return fmt.Sprintf(" The namespace, or objects in it, still have finalizers of other programs: %q. If that lasts,", finalizers)
	}
	for reason, c := range map[string]struct {
		kind                     corev1.NamespaceConditionType
		message, finalizer, want string
	}{
		"its content":               {corev1.NamespaceDeletionContentFailure, "legal hold", "", fails},
		"discovery":                 {corev1.NamespaceDeletionDiscoveryFailure, "legal hold", "", fails},
		"a group version":           {corev1.NamespaceDeletionGVParsingFailure, "legal hold", "", fails},
		"nothing":                   {corev1.NamespaceContentRemaining, "findings.appsec.dev has 3 resource instances", "", ""},
		"our own finalizers":        {corev1.NamespaceFinalizersRemaining, remain + "appsec.dev/cleanup in 3 resource instances", "", ""},
		"the namespace's finalizer": {corev1.NamespaceContentRemaining, "", "example.com/held", hold("example.com/held")},
		"a finalizer of both": {corev1.NamespaceFinalizersRemaining, remain + "example.com/audit in 2 resource instances, " +
			"foregroundDeletion in 1 resource instances", "example.com/audit", hold("example.com/audit, foregroundDeletion")},
		"finalizers of others": {corev1.NamespaceFinalizersRemaining, remain + "appsec.dev/cleanup in 3 resource instances, " +
			"example.com/audit in 2 resource instances, foregroundDeletion in 1 resource instances", "", hold("example.com/audit, foregroundDeletion")},
	} {
		organization := builder.Organization("acme").Build()
		organization.UID, organization.Finalizers = "acme", []string{v1alpha1.CleanupFinalizer}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "org-acme", Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "acme"},
			DeletionTimestamp: new(metav1.Now()), Finalizers: []string{cmp.Or(c.finalizer, v1alpha1.CleanupFinalizer)},
		}}
		namespace.Status.Conditions = []corev1.NamespaceCondition{{Type: c.kind, Status: corev1.ConditionTrue, Message: c.message}}
		if c.want == fails {
			namespace.Status.Conditions = append(namespace.Status.Conditions, corev1.NamespaceCondition{
				Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionTrue, Message: "a later one",
			})
		}
		stored := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(organization, namespace).
			WithStatusSubresource(organization).Build()
		r := &Reconciler{Base: reconcile.Base{Client: stored, Live: stored, Clock: clock.RealClock{}}}
		check := func(message string) {
			t.Helper()
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "acme"}})
			harness.Must(t, err)
			harness.Must(t, stored.Get(t.Context(), types.NamespacedName{Name: "acme"}, organization))
			checkReadyMessage(t, reason, organization, message+c.want)
			shown := v1alpha1.FindCondition(organization.Status.Conditions, v1alpha1.ConditionReady).Message
			harness.Same(t, reason+": nothing else is shown", c.want == "", strings.HasSuffix(shown, message))
		}
		check("it is created again once it is gone.")
		harness.Must(t, stored.Delete(t.Context(), organization))
		check("is being removed.")
	}
}

func TestReconciledOrganizationIsNotWritten(t *testing.T) {
	stop := shared.Alone(t, env)
	organization := testenv.CreateReady(t, env, builder.Organization("calm").Mutate(func(o *v1alpha1.Organization) {
		o.Spec.Quotas = &v1alpha1.OrganizationQuotas{Findings: new(int64(10))}
	}).Build())
	objects := []client.Object{organization, scannerAccount("org-calm"), quotaIn("org-calm"),
		binding("org-calm", viewerRole), binding("org-calm", triagerRole), binding("org-calm", scannerRole)}
	before := env.Versions(t, objects...)
	stop()
	// A start reconciles everything; the new organization shows when that is done.
	shared.Alone(t, env)
	readyOrganization(t, "calm-marker")
	harness.Same(t, "what is stored", before, env.Versions(t, objects...))
}

func TestTwoControllersMakeOneNamespace(t *testing.T) {
	shared.Alone(t, env)
	shared.Alone(t, env)
	for i := range 10 {
		organization := readyOrganization(t, fmt.Sprintf("raced-%d", i))
		namespace := testenv.Get(t, NewWithT(t), env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: organization.Status.Namespace}})
		if !ours(namespace, organization) {
			t.Errorf("%s carries %v", namespace.Name, namespace.Annotations)
		}
	}
}

// With Kubernetes' own namespace controller, which removes what a deleted namespace contains.
func TestNamespacesAreDeleted(t *testing.T) {
	shared.Start(t, env)
	env.StartControllerManager(t, "namespace-controller")
	t.Run("removal waits until the organization is empty", removalWaitsUntilTheOrganizationIsEmpty)
	t.Run("removal removes the contents when asked", removalRemovesTheContentsWhenAsked)
	t.Run("a namespace that was deleted is made anew", aNamespaceThatWasDeletedIsMadeAnew)
}

func removalWaitsUntilTheOrganizationIsEmpty(t *testing.T) {
	t.Parallel() // it mostly waits
	organization := readyOrganization(t, "full")
	repository := testenv.Create(t, env, builder.Repository("repo").In("org-full").Build())
	harness.Must(t, env.Client.Delete(t.Context(), organization))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(reason(testenv.Get(t, g, env, organization), v1alpha1.ConditionStalled)).To(Equal("NotEmpty/True"))
	})
	namespace := testenv.Get(t, NewWithT(t), env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-full"}})
	if namespace.DeletionTimestamp != nil {
		t.Fatal("the namespace is being deleted while it holds a repository")
	}
	// Meanwhile it is in use.
	harness.Must(t, env.Client.Delete(t.Context(), binding("org-full", viewerRole)))
	env.Create(t, builder.Repository("late").In("org-full").Build())
	changeSpec(t, organization, func(s *v1alpha1.OrganizationSpec) {
		s.Triage = &v1alpha1.OrganizationTriage{RequireReason: true}
		s.Quotas = &v1alpha1.OrganizationQuotas{Findings: new(int64(7))}
	})
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, env, binding("org-full", viewerRole))
		g.Expect(testenv.Get(t, g, env, namespace).Labels).To(HaveKeyWithValue(v1alpha1.RequireReasonLabel, "true"))
		hard := testenv.Get(t, g, env, quotaIn("org-full")).Spec.Hard["count/findings.appsec.dev"]
		g.Expect(hard.String()).To(Equal("7"))
		g.Expect(testenv.Get(t, g, env, organization).Status.Counts.Repositories).To(BeEquivalentTo(2))
		g.Expect(organization.Status.ObservedGeneration).To(Equal(organization.Generation))
		g.Expect(reason(organization, v1alpha1.ConditionStalled)).To(Equal("NotEmpty/True"))
	})
	harness.Must(t, env.Client.Delete(t.Context(), builder.Repository("late").In("org-full").Build()))
	harness.Must(t, env.Client.Delete(t.Context(), repository))
	env.AwaitGone(t, namespace, organization)
}

func removalRemovesTheContentsWhenAsked(t *testing.T) {
	t.Parallel() // it mostly waits
	organization := readyOrganization(t, "forced")
	repository := builder.Repository("repo").In("org-forced").Build()
	repository.Finalizers = []string{"example.com/audit"}
	env.Create(t, repository)
	harness.Must(t, env.Client.Delete(t.Context(), organization))
	env.Patch(t, organization, `{"metadata":{"annotations":{"appsec.dev/remove-contents":"true"}}}`)
	harness.Eventually(t, func(g Gomega) {
		ready := v1alpha1.FindCondition(testenv.Get(t, g, env, organization).Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready.Message).To(ContainSubstring(`is being removed. The namespace, or objects in it, still have finalizers of other programs: "example.com/audit".`))
	})
	env.Patch(t, repository, `{"metadata":{"finalizers":null}}`)
	env.AwaitGone(t, repository, organization)

	// A new organization of the same name starts empty.
	readyOrganization(t, "forced")
}

func aNamespaceThatWasDeletedIsMadeAnew(t *testing.T) {
	t.Parallel() // it mostly waits
	organization := readyOrganization(t, "rebuilt")
	namespace := testenv.Get(t, NewWithT(t), env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-rebuilt"}})
	first := namespace.UID
	harness.Must(t, env.Client.Delete(t.Context(), namespace))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, namespace).UID).NotTo(Equal(first))
		testenv.Get(t, g, env, binding("org-rebuilt", viewerRole))
		g.Expect(testenv.Get(t, g, env, organization).Status.Namespace).To(Equal("org-rebuilt"))
	})
}
