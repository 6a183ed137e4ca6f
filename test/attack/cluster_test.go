package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// member is a user with a role in one organization's namespace.
type member struct {
	role   string
	config *rest.Config
	client client.Client
}

// members returns a user for each role of the organization, the scanner's own account, and an
// administrator with all rights in the namespace.
func (o *tenant) members(t *testing.T) team {
	t.Helper()
	as := func(user string, groups ...string) *rest.Config {
		return target.env.Impersonate(user, append(groups, "system:authenticated")...)
	}
	const everything = "attack-everything"
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: everything},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	harness.Must(t, client.IgnoreAlreadyExists(target.env.Client.Create(t.Context(), role)))
	owner := "owner-of-" + o.name
	binding := testenv.Bind(o.namespace, owner, everything, testenv.User(owner))
	harness.Must(t, client.IgnoreAlreadyExists(target.env.Client.Create(t.Context(), binding)))
	scanner, err := target.env.ServiceAccount(t.Context(), o.namespace, "scanner")
	harness.Must(t, err)
	all := team{
		{role: "viewer", config: as("ann", "appsec:"+o.name+":viewers")},
		{role: "triager", config: as("bob", "appsec:"+o.name+":triagers")},
		{role: "scanner", config: as("cid", "appsec:"+o.name+":scanners")},
		{role: "scanner account", config: scanner},
		{role: "owner", config: as(owner)},
	}
	for i := range all {
		m := &all[i]
		m.client = target.env.As(t, m.config)
		harness.Eventually(t, func(g Gomega) {
			said, err := m.may(t.Context(), authorizationv1.ResourceAttributes{Namespace: o.namespace, Verb: "get", Group: v1alpha1.GroupName, Resource: "findings"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(said.Allowed).To(BeTrue(), "%s must reach its own namespace, else nothing is proven", m.role)
		})
	}
	return all
}

// team holds the members of one organization; each has another role.
type team []member

// as returns a client of the member with that role.
func (all team) as(t *testing.T, role string) client.Client {
	t.Helper()
	i := slices.IndexFunc(all, func(m member) bool { return m.role == role })
	if i < 0 {
		t.Fatalf("no member has the role %q", role)
	}
	return all[i].client
}

// may asks the API server with the member's own credentials.
func (m member) may(ctx context.Context, attributes authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	err := m.client.Create(ctx, review)
	return review.Status, err
}

// resource is a resource that the API server serves, including subresources.
type resource struct {
	schema.GroupVersionKind
	name       string
	namespaced bool
}

func resources(t *testing.T) []resource {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(target.env.Config)
	harness.Must(t, err)
	_, lists, err := d.ServerGroupsAndResources()
	harness.Must(t, err)
	var all []resource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		harness.Must(t, err)
		for _, r := range list.APIResources {
			all = append(all, resource{version.WithKind(r.Kind), r.Name, r.Namespaced})
		}
	}
	if len(all) < 50 {
		t.Fatalf("the API server serves only %d resources", len(all))
	}
	return all
}

// verbs are those of Kubernetes and of this project.
var verbs = []string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate", "approve", "sign", "triage", "report", "adopt", "*",
}

// kubernetesOwn occurs in the reason for which accounts without an organization may do something:
// the discovery roles.
const kubernetesOwn = `ClusterRoleBinding "system:`

// everybodys reports whether the resource is a review of one's own access, which any user may
// create.
func everybodys(r resource) bool {
	return strings.HasPrefix(r.name, "selfsubject")
}

// No role grants any verb on a resource of another namespace, or on a cluster-scoped one.
func TestCluster_RolesReachNoOtherNamespace(t *testing.T) {
	all := tenants(t)
	attacker, victim := all[0], all[1]
	asked := verbs
	if !full {
		asked = []string{"get", "list", "create", "patch", "delete", "triage", "report", "adopt"}
	}
	served := resources(t)
	for _, m := range attacker.members(t) {
		var group errgroup.Group
		group.SetLimit(8)
		ask := func(namespace string, r resource, verb string) error {
			name, sub, _ := strings.Cut(r.name, "/")
			attributes := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: r.Group, Version: r.Version, Resource: name, Subresource: sub}
			said, err := m.may(t.Context(), attributes)
			if err != nil {
				return fmt.Errorf("ask: %w", err)
			}
			anybodys := strings.Contains(said.Reason, kubernetesOwn)
			attempt(t, cluster, !said.Allowed || anybodys, "%s of %s may %s %s.%s in %q: %s", m.role, attacker.name, verb, r.name, r.Group, namespace, said.Reason)
			return nil
		}
		for _, r := range served {
			if everybodys(r) || !full && r.Group != v1alpha1.GroupName && !slices.Contains([]string{"secrets", "serviceaccounts/token", "rolebindings", "clusterrolebindings", "namespaces", "configmaps", "events", "leases"}, r.name) {
				continue
			}
			namespaces := []string{victim.namespace, testenv.SystemNamespace, ""}
			if full {
				namespaces = append(namespaces, metav1.NamespaceDefault, metav1.NamespaceSystem)
			}
			if !r.namespaced {
				namespaces = []string{""}
			}
			for _, namespace := range namespaces {
				for _, verb := range asked {
					group.Go(func() error { return ask(namespace, r, verb) })
				}
			}
		}
		harness.Must(t, group.Wait())
	}
}

// The results of the access reviews are also tested with real requests: every kind of this project
// is read, written and deleted in another namespace.
func TestCluster_RequestsToOtherNamespacesAreForbidden(t *testing.T) {
	all := tenants(t)
	attacker, victim := all[0], all[1]
	for _, m := range attacker.members(t) {
		c := m.client
		forbidden := func(what string, err error) {
			t.Helper()
			attempt(t, cluster, apierrors.IsForbidden(err), "%s of %s: %s: got %v, want forbidden", m.role, attacker.name, what, err)
		}
		for _, namespace := range []string{victim.namespace, testenv.SystemNamespace, ""} {
			for _, list := range []client.ObjectList{
				&v1alpha1.FindingList{}, &v1alpha1.APIKeyList{}, &v1alpha1.ProjectList{}, &v1alpha1.RepositoryList{}, &v1alpha1.ReviewList{}, &v1alpha1.ReviewIssueList{},
				&v1alpha1.ScanList{}, &v1alpha1.WebhookDeliveryList{}, &v1alpha1.WebhookEndpointList{}, &corev1.SecretList{}, &corev1.ConfigMapList{},
			} {
				forbidden(fmt.Sprintf("list %T in %q", list, namespace), c.List(t.Context(), list, client.InNamespace(namespace)))
			}
		}
		forbidden("list organizations", c.List(t.Context(), &v1alpha1.OrganizationList{}))
		finding := builder.Finding(victim.ids["finding"]).In(victim.namespace).Build()
		forbidden("get a finding", c.Get(t.Context(), client.ObjectKeyFromObject(finding), &v1alpha1.Finding{}))
		triage := testenv.MergePatch(`{"spec":{"triage":{"userStatus":"muted"}}}`)
		forbidden("triage a finding", c.Patch(t.Context(), finding, triage))
		forbidden("write a status", c.Status().Patch(t.Context(), finding, testenv.MergePatch(`{"status":{}}`)))
		forbidden("remove a finding", c.Delete(t.Context(), finding))
		forbidden("remove all findings", c.DeleteAllOf(t.Context(), &v1alpha1.Finding{}, client.InNamespace(victim.namespace)))
		forbidden("make a finding", c.Create(t.Context(), builder.Finding("f-new").In(victim.namespace).Build()))
		forbidden("make a key", c.Create(t.Context(), builder.APIKey("mine").In(victim.namespace).Build()))
		forbidden("make an organization", c.Create(t.Context(), builder.Organization("mine").Build()))
		forbidden("bind a role", c.Create(t.Context(), testenv.Bind(victim.namespace, "mine", testenv.Viewer, testenv.User("ann"))))
		secret := &corev1.Secret{}
		forbidden("get a token", c.Get(t.Context(), client.ObjectKey{Namespace: victim.namespace, Name: "key-" + victim.mark + "-token"}, secret))
		forbidden("become the controllers", m.impersonates(t, testenv.ServiceAccountUsername(testenv.SystemNamespace, testenv.ControllerServiceAccount)))
	}
	victim.unharmed(t)
}

// impersonates attempts a request in another user's name.
func (m member) impersonates(t *testing.T, user string) error {
	t.Helper()
	if m.config.Impersonate.UserName != "" {
		// The test's own impersonation interferes: impersonating another user requires a right of its
		// own.
		said, err := m.may(t.Context(), authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users", Name: user})
		if err != nil || said.Allowed {
			return err
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, user, nil)
	}
	config := rest.CopyConfig(m.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return target.env.As(t, config).List(t.Context(), &v1alpha1.OrganizationList{})
}

// The owner of a namespace has rights only there: no object created in it may refer to objects
// elsewhere, and the owner cannot change what ties the namespace to its organization.
func TestCluster_AnOwnerCannotReachOutOfTheNamespace(t *testing.T) {
	all := tenants(t)
	attacker, victim := all[0], all[1]
	c := attacker.members(t).as(t, "owner")
	refuse := func(what string, err error) {
		t.Helper()
		attempt(t, cluster, apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err), "%s: got %v, want a refusal", what, err)
	}
	for _, name := range []string{"../" + victim.namespace + "/" + victim.ids["repository"], victim.namespace + "/x", "..", "a%2fb", "A", "*", ""} {
		refuse("a finding of repository "+name, c.Create(t.Context(), builder.Finding("f-out").In(attacker.namespace).Project(name, attacker.ids["project"]).Build()))
		refuse("a project of repository "+name, c.Create(t.Context(), builder.Project("p-out").In(attacker.namespace).Repository(name).Build()))
		refuse("an endpoint with the secret "+name, c.Create(t.Context(), builder.WebhookEndpoint("w-out").In(attacker.namespace).Secret(name).Build()))
		refuse("an issue of the review "+name, c.Create(t.Context(), builder.ReviewIssue("i-out").In(attacker.namespace).Review(name).Build()))
	}
	for what, patch := range map[string]string{
		"give the namespace to another": `{"metadata":{"annotations":{"` + v1alpha1.OrganizationUIDAnnotation + `":"x"}}}`,
		"set the namespace free":        `{"metadata":{"annotations":{"` + v1alpha1.OrganizationUIDAnnotation + `":null}}}`,
	} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: attacker.namespace}}
		refuse(what, c.Patch(t.Context(), namespace, testenv.MergePatch(patch)))
	}
	key := builder.APIKey("key-" + attacker.mark).In(attacker.namespace).Build()
	refuse("write the status of a key", c.Status().Patch(t.Context(), key, testenv.MergePatch(`{"status":{"keyID":"x"}}`)))
	// The API server drops a status that is sent with a create.
	theirs := testenv.List(t, NewWithT(t), target.env, &v1alpha1.APIKeyList{}, client.InNamespace(victim.namespace))
	forged := builder.APIKey("forged-" + attacker.mark + letters(6)).In(attacker.namespace).Mutate(func(k *v1alpha1.APIKey) { k.Status = theirs.Items[0].Status }).Build()
	harness.Must(t, c.Create(t.Context(), forged))
	attempt(t, cluster, forged.Status.KeyID == "", "a key was made with the status of another's")
	s := shot{method: "GET", path: "/v1/findings"}
	a := target.facade.send(t, victim.token, s)
	attempt(t, cluster, !attacker.tells(a, s), "another's token shows the forger's data")
	// The API server refuses an object whose body names another namespace.
	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "WebhookEndpoint",
		"metadata": map[string]any{"name": "w-out", "namespace": victim.namespace}, "spec": map[string]any{"url": "https://example.com"},
	}}
	refuse("make an endpoint elsewhere", c.Create(t.Context(), other))
	victim.unharmed(t)
}

// A namespace with the organization's prefix that the controllers did not create is not adopted,
// and nothing is created in it.
func TestCluster_ANamespaceThatATenantMadeIsNotAdopted(t *testing.T) {
	const somebody = "namespace-maker"
	target.env.Create(t, testenv.Grant(somebody, testenv.User(somebody), rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create", "update", "patch", "get"},
	})...)
	c := target.env.As(t, target.env.Impersonate(somebody))
	for _, annotated := range []bool{false, true} {
		name := "taken-" + letters(6)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.NamespacePrefix + name, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}}}
		harness.Eventually(t, func(g Gomega) {
			g.Expect(client.IgnoreAlreadyExists(c.Create(t.Context(), namespace.DeepCopy()))).To(Succeed())
		})
		made := builder.Organization(name).RequestsPerMinute(plenty).Build()
		target.env.Create(t, made)
		if annotated {
			// Now the UID is known, and the tenant copies it.
			patch := testenv.MergePatch(`{"metadata":{"annotations":{"` + v1alpha1.OrganizationUIDAnnotation + `":"` + string(made.UID) + `"}}}`)
			err := c.Patch(t.Context(), namespace.DeepCopy(), patch)
			attempt(t, cluster, apierrors.IsForbidden(err), "a tenant put the organization's UID on its namespace: %v", err)
		}
		harness.Eventually(t, func(g Gomega) {
			g.Expect(target.env.Client.Get(t.Context(), client.ObjectKeyFromObject(made), made)).To(Succeed())
			g.Expect(made.Status.Conditions).To(ContainElement(And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Reason", v1alpha1.ReasonNamespaceConflict))))
		})
		attempt(t, cluster, made.Status.Namespace == "", "the namespace of another was adopted: %s", made.Status.Namespace)
		err := target.env.Client.Create(t.Context(), builder.APIKey("trap").In(namespace.Name).Build())
		attempt(t, cluster, apierrors.IsForbidden(err), "a key was created in it: %v", err)
		// Wait for a reconcile that happens after all of this.
		newOrganization(t, "after-"+letters(6), plenty)
		nothingIn(t, namespace.Name)
	}
}

// nothingIn expects no objects of this project in the namespace.
func nothingIn(t *testing.T, namespace string) {
	t.Helper()
	for _, list := range []client.ObjectList{&rbacv1.RoleBindingList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{}, &corev1.ResourceQuotaList{}} {
		items := slices.DeleteFunc(target.env.Names(t, list, namespace), func(name string) bool { return name == "default" })
		attempt(t, cluster, len(items) == 0, "%T in %s: %v", list, namespace, items)
	}
}
