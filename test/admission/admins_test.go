package admission_test

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// try is one request, which changes nothing.
type try func(t *testing.T, as client.Client, namespace string) error

func creates(object func(name string) client.Object) try {
	return func(t *testing.T, as client.Client, namespace string) error {
		return as.Create(t.Context(), in(namespace, object("new")), client.DryRunAll)
	}
}

func patches(object func(name string) client.Object, patch string) try {
	return func(t *testing.T, as client.Client, namespace string) error {
		return as.Patch(t.Context(), in(namespace, object("there")), testenv.MergePatch(patch), client.DryRunAll)
	}
}

func patchesStatus(object func(name string) client.Object, patch string) try {
	return func(t *testing.T, as client.Client, namespace string) error {
		return as.Status().Patch(t.Context(), in(namespace, object("there")), testenv.MergePatch(patch),
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	}
}

func deletes(object func(name string) client.Object) try {
	return func(t *testing.T, as client.Client, namespace string) error {
		return as.Delete(t.Context(), in(namespace, object("there")), client.DryRunAll)
	}
}

func gets(object client.Object) try {
	return func(t *testing.T, as client.Client, namespace string) error {
		return as.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "there"}, object)
	}
}

func lists(list client.ObjectList) try {
	return func(t *testing.T, as client.Client, namespace string) error {
		return as.List(t.Context(), list, client.InNamespace(namespace))
	}
}

func organizationOf(name string) client.Object { return builder.Organization(name).Build() }

func roleBindingOf(name string) client.Object {
	return testenv.Bind("", name, testenv.Scanner, testenv.User("ada"))
}

func secretOf(name string) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// described is a project with an assessment by users.
func described(name string) client.Object {
	return builder.Project(name).User(v1alpha1.ProjectAssessment{Exposure: "public"}).Build()
}

// inhabit creates one object of each kind in the namespace.
func inhabit(t *testing.T, namespace string) {
	t.Helper()
	for _, of := range []func(string) client.Object{
		repositoryOf, projectOf, findingOpen, scanOf, reviewOf, issueOf, endpointOf, deliveryOf, keyOf, secretOf,
	} {
		env.Create(t, in(namespace, of("there")))
	}
}

// TestWhatAnOrganizationsAdministratorMayDo acts as a user whom the identity provider has put into the group.
func TestWhatAnOrganizationsAdministratorMayDo(t *testing.T) {
	ours, theirs := env.Organization(t, "administered"), env.Organization(t, "unadministered")
	inhabit(t, ours)
	inhabit(t, theirs)
	const group = "appsec:administered:admins"
	env.Create(t, testenv.Bind(ours, string(testenv.Admin), testenv.Admin, testenv.Group(group)))
	ada := env.As(t, env.Impersonate("ada", group, "system:authenticated"))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(lists(&v1alpha1.FindingList{})(t, ada, ours)).To(Succeed(), "the binding is in force")
	})

	table := []struct {
		reason    string
		try       try
		namespace string
		allowed   bool
	}{
		{"makes a repository", creates(repositoryOf), ours, true},
		{"makes a project", creates(projectOf), ours, true},
		{"makes a project and describes it", creates(described), ours, true},
		{"makes an endpoint", creates(endpointOf), ours, true},
		{"makes a key", creates(keyOf), ours, true},
		{"changes a repository", patches(repositoryOf, `{"spec":{"scanBranch":"trunk"}}`), ours, true},
		{"changes a project", patches(projectOf, `{"spec":{"owner":"team","user":{"exposure":"public"}}}`), ours, true},
		{"changes an endpoint", patches(endpointOf, `{"spec":{"disabled":true}}`), ours, true},
		{"rotates a key", patches(keyOf, `{"spec":{"rotation":{"serial":1}}}`), ours, true},
		{"deletes a repository", deletes(repositoryOf), ours, true},
		{"deletes a project", deletes(projectOf), ours, true},
		{"deletes an endpoint", deletes(endpointOf), ours, true},
		{"deletes a key", deletes(keyOf), ours, true},
		{"reads findings", lists(&v1alpha1.FindingList{}), ours, true},
		{"reads scans", lists(&v1alpha1.ScanList{}), ours, true},
		{"reads reviews", lists(&v1alpha1.ReviewList{}), ours, true},
		{"reads review issues", lists(&v1alpha1.ReviewIssueList{}), ours, true},
		{"reads deliveries", lists(&v1alpha1.WebhookDeliveryList{}), ours, true},
		{"reads Events", lists(&corev1.EventList{}), ours, true},
		{"reads the token of a key", gets(&corev1.Secret{}), ours, true},

		{"looks for no Secrets", lists(&corev1.SecretList{}), ours, false},
		{"makes no Secret", creates(secretOf), ours, false},
		{"changes no Secret", patches(secretOf, `{"stringData":{"secret":"x"}}`), ours, false},
		{"deletes no Secret", deletes(secretOf), ours, false},
		{"makes no Event", asks("create", "events.k8s.io", "events", ""), ours, false},
		{"gives nobody a role", creates(roleBindingOf), ours, false},
		{"writes no finding", creates(findingOpen), ours, false},
		{"changes no fact of a finding", patches(findingOpen, `{"spec":{"ruleID":"R2"}}`), ours, false},
		{"decides about no finding", patches(findingOpen, `{"spec":{"triage":{"userStatus":"muted"}}}`), ours, false},
		{"deletes no finding", deletes(findingOpen), ours, false},
		{"records no scan", creates(scanOf), ours, false},
		{"records no review", creates(reviewOf), ours, false},
		{"records no review's issue", creates(issueOf), ours, false},
		{"sends no event", creates(deliveryOf), ours, false},
		{"asks for no redelivery", patches(deliveryOf, `{"metadata":{"annotations":{"appsec.dev/redeliver":"1"}}}`), ours, false},
		{"writes no repository's status", patchesStatus(repositoryOf, `{"status":{"projects":3}}`), ours, false},
		{"writes no key's status", patchesStatus(keyOf, `{"status":{"keyID":"x"}}`), ours, false},
		{"keeps no repository from being deleted", patches(repositoryOf, `{"metadata":{"finalizers":["appsec.dev/cleanup"]}}`), ours, false},
		{"has no key deleted with something else",
			patches(keyOf, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"x","uid":"x"}]}}`), ours, false},
		{"changes no organization", patches(func(string) client.Object { return organizationOf("administered") },
			`{"spec":{"displayName":"Mine"}}`), "", false},
		{"makes no organization", creates(organizationOf), "", false},
		{"takes no scanner's part", asks("impersonate", "", "serviceaccounts", "scanner"), ours, false},
		{"gets no scanner's token", asks("create", "", "serviceaccounts/token", "scanner"), ours, false},

		{"is nobody elsewhere: findings", lists(&v1alpha1.FindingList{}), theirs, false},
		{"is nobody elsewhere: tokens", gets(&corev1.Secret{}), theirs, false},
		{"is nobody elsewhere: repositories", creates(repositoryOf), theirs, false},
		{"is nobody elsewhere: keys", creates(keyOf), theirs, false},
		{"is nobody in all namespaces", lists(&v1alpha1.RepositoryList{}), "", false},
	}
	for _, row := range table {
		t.Run(row.reason, func(t *testing.T) {
			wantAnswer(t, row.try(t, ada, row.namespace), row.allowed, row.reason)
		})
	}
}

// asks returns a try that asks the API server whether the requester has an access that is not
// exercised.
func asks(verb, group, resource, name string) try {
	return func(t *testing.T, as client.Client, namespace string) error {
		return may(t, as, authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Name: name, Namespace: namespace,
		})
	}
}

func may(t *testing.T, as client.Client, attributes authorizationv1.ResourceAttributes) error {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	}
	if err := as.Create(t.Context(), review); err != nil || review.Status.Allowed {
		return err
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: attributes.Group, Resource: attributes.Resource},
		attributes.Name, errors.New(review.Status.Reason))
}

// TestWhatKubernetesOwnRolesReach binds view, edit and admin, with the rights that this project
// aggregates to them.
func TestWhatKubernetesOwnRolesReach(t *testing.T) {
	env.StartControllerManager(t, "clusterrole-aggregation-controller")
	namespace := env.Organization(t, "aggregated")
	inhabit(t, namespace)
	people := map[string]client.Client{}
	for _, role := range []string{"view", "edit", "admin"} {
		config, err := env.Member(t.Context(), namespace, "one-who-may-"+role, testenv.Role(role))
		harness.Must(t, err)
		people[role] = env.As(t, config)
	}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(creates(repositoryOf)(t, people["admin"], namespace)).To(Succeed())
		g.Expect(patches(findingOpen, `{"spec":{"triage":{"userStatus":"muted"}}}`)(t, people["edit"], namespace)).To(Succeed())
		g.Expect(patches(findingOpen, `{"spec":{"triage":{"userStatus":"muted"}}}`)(t, people["admin"], namespace)).To(Succeed())
	})
	for _, row := range []struct {
		reason            string
		try               try
		view, edit, admin bool
	}{
		{"reads findings", lists(&v1alpha1.FindingList{}), true, true, true},
		{"reads keys, which hold no token", lists(&v1alpha1.APIKeyList{}), true, true, true},
		{"reads deliveries", lists(&v1alpha1.WebhookDeliveryList{}), true, true, true},
		{"reads endpoints, whose URL may be as good as a password", lists(&v1alpha1.WebhookEndpointList{}), false, true, true},
		{"reads tokens", gets(&corev1.Secret{}), false, true, true},
		{"decides about a finding", patches(findingOpen, `{"spec":{"triage":{"userStatus":"muted"}}}`), false, true, true},
		{"asks for a redelivery", patches(deliveryOf, `{"metadata":{"annotations":{"appsec.dev/redeliver":"1"}}}`), false, true, true},
		{"makes a repository", creates(repositoryOf), false, false, true},
		{"makes a project", creates(described), false, false, true},
		{"makes a key", creates(keyOf), false, false, true},
		{"makes an endpoint", creates(endpointOf), false, false, true},
		{"changes a repository", patches(repositoryOf, `{"spec":{"scanBranch":"trunk"}}`), false, false, true},
		{"forges a finding", creates(findingOpen), false, false, false},
		{"forges a fact", patches(findingOpen, `{"spec":{"ruleID":"R2"}}`), false, false, false},
		{"forges a scan", creates(scanOf), false, false, false},
		{"forges a review", creates(reviewOf), false, false, false},
		{"deletes a finding", deletes(findingOpen), false, false, false},
		{"forges a status", patchesStatus(repositoryOf, `{"status":{"projects":3}}`), false, false, false},
		{"changes an organization", patches(func(string) client.Object { return organizationOf("aggregated") }, `{"spec":{"displayName":"Mine"}}`),
			false, false, false},
	} {
		for role, allowed := range map[string]bool{"view": row.view, "edit": row.edit, "admin": row.admin} {
			in := namespace
			if strings.Contains(row.reason, "organization") {
				in = ""
			}
			wantAnswer(t, row.try(t, people[role], in), allowed, role+" "+row.reason)
		}
	}
}

// Whoever grants what the refusal names lets them strip the finalizer that removes the children.
func TestAReplaceThatDropsAFinalizerIsToldToApplyInstead(t *testing.T) {
	c := newCast(t, "replaced")
	repository := testenv.Create(t, env, builder.Repository("shop").In(c.namespace).Build())
	env.Patch(t, repository, `{"metadata":{"finalizers":["appsec.dev/cleanup"]}}`)
	repository.Finalizers = nil
	err := c.as(reporter).Update(t.Context(), repository)
	harness.ErrorContains(t, "a manifest without the stored finalizer", err,
		"use kubectl apply or kubectl edit, or remove Argo CD's Replace=true")
}
