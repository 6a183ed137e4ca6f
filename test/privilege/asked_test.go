package privilege

import (
	"context"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	otherName = "globex"
	otherHome = v1alpha1.NamespacePrefix + otherName
)

// scanned is when the scan of this package begins.
var scanned = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// unseen are grants that the API server or an admission policy checks while it handles another
// request, with that request, which is refused without the grant.
var unseen = map[string]func(context.Context, client.Client) error{
	"controller: bind clusterroles.rbac.authorization.k8s.io findings-admin":      bind("findings-admin"),
	"controller: bind clusterroles.rbac.authorization.k8s.io findings-viewer":     bind("findings-viewer"),
	"controller: bind clusterroles.rbac.authorization.k8s.io findings-triager":    bind("findings-triager"),
	"controller: bind clusterroles.rbac.authorization.k8s.io findings-scanner":    bind("findings-scanner"),
	"controller: bind clusterroles.rbac.authorization.k8s.io findings-operations": bind("findings-operations"),
	"controller: update triageoperationparts.appsec.dev/finalizers": func(ctx context.Context, c client.Client) error {
		part := &v1alpha1.TriageOperationPart{ObjectMeta: metav1.ObjectMeta{
			Namespace: otherHome, Name: "new", OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "TriageOperation", Name: "new", UID: "x",
			}},
		}}
		part.Spec.Operation = "new"
		return c.Create(ctx, part, client.DryRunAll)
	},
	"controller: update findingtrends.appsec.dev/finalizers": func(ctx context.Context, c client.Client) error {
		trend := builder.FindingTrend("new", "2026q1").In(otherHome).Build()
		trend.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project", Name: "proj", UID: "x",
		}}
		return c.Create(ctx, trend, client.DryRunAll)
	},
	"controller: adopt organizations.appsec.dev": func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "org-new", Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "x"},
		}}, client.DryRunAll)
	},
	"controller: update organizations.appsec.dev/finalizers": finalize(builder.Organization(otherName).Build()),
	"controller: update projects.appsec.dev/finalizers":      finalize(builder.Project("proj").In(otherHome).Build()),
	"controller: update repositories.appsec.dev/finalizers":  finalize(builder.Repository("repo").In(otherHome).Build()),
	"controller: update reviews.appsec.dev/finalizers":       finalize(builder.Review("review").In(otherHome).Build()),
	// Their Secrets are owned by them, and block their deletion.
	"controller: update apikeys.appsec.dev/finalizers":          own("APIKey"),
	"controller: update webhookendpoints.appsec.dev/finalizers": own("WebhookEndpoint"),
	"facade: triage findings.appsec.dev": func(ctx context.Context, c client.Client) error {
		return patchOf(builder.Finding("finding").In(otherHome).Build(), `{"spec":{"triage":{"userStatus":"muted","by":"apikey/ci"}}}`)(ctx, c)
	},
	"facade: triage reviewissues.appsec.dev": func(ctx context.Context, c client.Client) error {
		return patchOf(builder.ReviewIssue("issue").In(otherHome).Build(), `{"spec":{"triage":{"userStatus":"muted","by":"apikey/ci"}}}`)(ctx, c)
	},
	"scanner: report findings.appsec.dev":     report(builder.Finding("new").In(otherHome).Build()),
	"scanner: report reviewissues.appsec.dev": report(builder.ReviewIssue("new").In(otherHome).Build()),
	"scanner: report reviews.appsec.dev":      report(builder.Review("new").In(otherHome).Build()),
	"scanner: report scans.appsec.dev":        report(builder.Scan("new", scanned).In(otherHome).Build()),
}

// rare are grants that are needed in situations that this test cannot cause, with the situation.
var rare = map[string]string{
	"controller: create secrets (role lean-controller-local)":                 "the kinds live in another cluster, and the ClusterRole with them",
	"controller: delete leases.coordination.k8s.io (role lean-controller)":    "an hour after an import's end",
	"controller: delete findingtrends.appsec.dev (role lean-controller)":      "two years after a quarter",
	"controller: patch findingtrends.appsec.dev (role lean-controller)":       "an hour after the first row",
	"controller: get leases.coordination.k8s.io (role lean-controller-local)": "the kinds live in another cluster, and the ClusterRole with them",
}

// TestGrantsThatNoRequestShowsAreNeeded removes each grant and expects a refusal.
func TestGrantsThatNoRequestShowsAreNeeded(t *testing.T) {
	release := install(t)
	for _, object := range []client.Object{
		builder.Organization(otherName).Build(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: otherHome, Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "x"},
		}},
		builder.Repository("repo").In(otherHome).Build(),
		builder.Project("proj").In(otherHome).Build(),
		builder.Review("review").In(otherHome).Build(),
		builder.Finding("finding").In(otherHome).Build(),
		builder.ReviewIssue("issue").In(otherHome).Build(),
		testenv.Bind(otherHome, "findings-scanner", testenv.Scanner, testenv.Account(otherHome, "scanner")),
	} {
		env.Create(t, object)
	}
	clients := map[string]client.Client{}
	for account, config := range map[string]func(context.Context) (*rest.Config, error){
		controller: release.Controller,
		facade:     release.Facade,
		scanner: func(ctx context.Context) (*rest.Config, error) {
			return env.ServiceAccount(ctx, otherHome, "scanner")
		},
	} {
		given, err := config(t.Context())
		harness.Must(t, err)
		clients[account] = env.As(t, given)
	}

	all := granted(t)
	for key, ask := range unseen {
		t.Run(key, func(t *testing.T) {
			at := slices.IndexFunc(all, func(g grant) bool { return g.key() == key })
			if at < 0 {
				t.Fatal("the chart does not grant this; take it out of the table")
			}
			as := clients[all[at].account]
			harness.Eventually(t, func(g Gomega) { g.Expect(ask(t.Context(), as)).To(Succeed(), "with the grant") })
			without(t, all[at])
			harness.Eventually(t, func(g Gomega) {
				err := ask(t.Context(), as)
				g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "without the grant: %v", err)
			})
		})
	}
}

// without removes a grant from the role in the cluster until the test ends.
func without(t *testing.T, g grant) {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	harness.Must(t, env.Client.Get(t.Context(), types.NamespacedName{Name: g.role}, role))
	before := role.DeepCopy()
	role.Rules = nil
	for _, other := range grants(g.account, g.namespace, *before) {
		if other != g {
			role.Rules = append(role.Rules, other.rule())
		}
	}
	harness.Must(t, env.Client.Update(t.Context(), role))
	t.Cleanup(func() {
		before.ResourceVersion = ""
		harness.NoError(t, "put the role back", env.Client.Update(context.WithoutCancel(t.Context()), before))
	})
}

func bind(role testenv.Role) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, testenv.Bind(otherHome, "new", role), client.DryRunAll)
	}
}

func finalize(object client.Object) func(context.Context, client.Client) error {
	return patchOf(object, `{"metadata":{"finalizers":["`+v1alpha1.CleanupFinalizer+`"]}}`)
}

func patchOf(object client.Object, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		target := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it is one
		return c.Patch(ctx, target, testenv.MergePatch(patch), client.DryRunAll)
	}
}

func own(kind string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: otherHome, Name: "new",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: "x", UID: "x",
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		}}, client.DryRunAll)
	}
}

func report(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll) //nolint:forcetypeassert // it is one
	}
}
