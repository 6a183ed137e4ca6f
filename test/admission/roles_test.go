package admission_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestEachRoleHasItsRightsAndNoOthers(t *testing.T) {
	c := newCast(t, "rights")
	env.Organization(t, "elsewhere")
	const ours, system = "org-rights", testenv.SystemNamespace
	table := []struct {
		who                                        who
		verb, group, resource, sub, namespace, obj string
		allowed                                    bool
		reason                                     string
	}{
		{facade, "get", "", "secrets", "", ours, "key", false, "the facade reads no Secret"},
		{facade, "list", "", "secrets", "", ours, "", false, "the facade reads no Secret"},
		{facade, "watch", "", "secrets", "", system, "", false, "the facade reads no Secret"},
		{facade, "get", "", "secrets", "", system, "findings-signing-key", false, "who has the private key makes tokens"},
		{facade, "watch", "", "configmaps", "", system, "findings-signing-keys", true, "public keys check tokens"},
		{facade, "get", "", "configmaps", "", system, "other", false, "may read no other ConfigMap"},
		{facade, "update", "", "configmaps", "", system, "findings-signing-keys", false, "who writes the public keys decides who is let in"},
		{facade, "create", "events.k8s.io", "events", "", ours, "", true, "a refused key gets an Event"},
		{facade, "patch", "events.k8s.io", "events", "", ours, "e", false, "may create Events, and change none"},
		{facade, "list", "events.k8s.io", "events", "", ours, "", false, "may not read the Events of others"},
		{facade, "create", "", "events", "", ours, "", false, "the admission policy looks at one door"},
		{facade, "create", "appsec.dev", "findings", "", ours, "", false, "REST makes no finding"},
		{facade, "list", "appsec.dev", "apikeys", "", "", "", true, "keys of every organization"},
		{facade, "impersonate", "", "serviceaccounts", "", ours, "findings-uploads", true, "imports what is uploaded"},
		{facade, "impersonate", "", "serviceaccounts", "", ours, "scanner", false, "may not impersonate other service accounts"},
		{facade, "impersonate", "", "users", "", "", "admin", false, "may not impersonate users"},
		{facade, "impersonate", "", "groups", "", "", "system:masters", false, "may not impersonate groups"},
		{facade, "report", "appsec.dev", "findings", "", ours, "f", false, "the facade itself writes no fact"},
		{facade, "create", "appsec.dev", "scans", "", ours, "", false, "the facade itself records no scan"},
		{uploads, "report", "appsec.dev", "findings", "", ours, "f", true, "writes facts"},
		{uploads, "triage", "appsec.dev", "findings", "", ours, "f", false, "decides nothing"},
		{uploads, "create", "appsec.dev", "findings", "", "org-elsewhere", "", false, "one name per organization"},
		{uploads, "get", "", "secrets", "", ours, "key", false, "no role may read tokens"},
		{controller, "create", "", "secrets", "", ours, "", true, "tokens are kept in Secrets"},
		{controller, "create", "coordination.k8s.io", "leases", "", system, "", true, "leader election"},
		{controller, "create", "coordination.k8s.io", "leases", "", ours, "", false, "only importers create leases there"},
		{controller, "create", "", "events", "", system, "", true, "says who leads, beside the Lease"},
		{controller, "create", "", "events", "", ours, "", false, "other Events are of the new kind"},
		{controller, "patch", "", "configmaps", "", system, "findings-signing-keys", true, "publishes its public keys"},
		{controller, "list", "", "configmaps", "", system, "", false, "others' ConfigMaps may be beside them"},
		{controller, "get", "", "configmaps", "", system, "other", false, "others' ConfigMaps may be beside them"},
		{controller, "patch", "", "configmaps", "", system, "other", false, "others' ConfigMaps may be beside them"},
		{controller, "update", "", "configmaps", "", ours, "x", false, "no ConfigMap outside its own namespace"},
		{controller, "create", "", "resourcequotas", "", ours, "", true, "an organization's quota"},
		{controller, "update", "", "resourcequotas", "status", ours, "findings-quota", false, "what is used is counted by others"},
		{controller, "triage", "appsec.dev", "findings", "", ours, "", false, "controllers decide for nobody"},
		{controller, "report", "appsec.dev", "findings", "", ours, "", false, "controllers write no fact"},
		{controller, "escalate", "rbac.authorization.k8s.io", "clusterroles", "", "", "findings-scanner", false, "changes no role"},
		{scanner, "create", "coordination.k8s.io", "leases", "", ours, "", true, "two imports must not cross"},
		{scanner, "delete", "coordination.k8s.io", "leases", "", ours, "x", false, "a lease ends by itself"},
		{scanner, "report", "appsec.dev", "findings", "", ours, "f", true, "writes facts"},
		{scanner, "report", "appsec.dev", "reviews", "", ours, "r", true, "records what a review found"},
		{scanner, "list", "appsec.dev", "reviewissues", "", ours, "", true, "finds the issues that a commit still shows"},
		{scanner, "triage", "appsec.dev", "reviewissues", "", ours, "i", false, "decides nothing"},
		{triager, "triage", "appsec.dev", "reviewissues", "", ours, "i", true, "decides in pull requests too"},
		{triager, "restore", "appsec.dev", "findings", "", ours, "", false, "signs as nobody else"},
		{scanner, "restore", "appsec.dev", "findings", "", ours, "", false, "signs nothing"},
		{facade, "restore", "appsec.dev", "triagepolicies", "", ours, "", false, "signs for API keys alone"},
		{controller, "restore", "appsec.dev", "findings", "", ours, "", false, "signs nothing"},
		{scanner, "delete", "appsec.dev", "reviewissues", "", ours, "i", false, "an issue that is gone is resolved"},
		{scanner, "get", "appsec.dev", "webhookendpoints", "", ours, "e", false, "a scanner does not need it"},
		{facade, "watch", "appsec.dev", "reviews", "", "", "", true, "REST lists reviews"},
		{facade, "watch", "appsec.dev", "reviewissues", "", "", "", true, "REST shows issues"},
		{facade, "patch", "appsec.dev", "reviewissues", "", ours, "i", true, "REST decides about issues"},
		{facade, "triage", "appsec.dev", "reviewissues", "", ours, "i", true, "REST decides about issues"},
		{facade, "report", "appsec.dev", "reviewissues", "", ours, "i", false, "what a review found is a fact"},
		{facade, "delete", "appsec.dev", "reviewissues", "", ours, "i", false, "REST removes no issue"},
		{facade, "watch", "appsec.dev", "webhookdeliveries", "", "", "", true, "REST verifies deliveries"},
		{facade, "patch", "appsec.dev", "reviews", "", ours, "r", false, "REST changes no review"},
		{facade, "watch", "appsec.dev", "findingtrends", "", "", "", true, "REST shows the history"},
		{facade, "patch", "appsec.dev", "findingtrends", "", ours, "t", false, "history is read-only"},
		{controller, "create", "appsec.dev", "findingtrends", "", ours, "", true, "one per project and quarter"},
		{triager, "delete", "appsec.dev", "findingtrends", "", ours, "t", false, "nobody decides about the past"},
		{controller, "deletecollection", "appsec.dev", "reviewissues", "", ours, "", true, "a review's removal takes its issues along"},
		{controller, "create", "appsec.dev", "webhookdeliveries", "", ours, "", true, "one for each event and endpoint"},
		{controller, "report", "appsec.dev", "reviews", "", ours, "", false, "controllers write no fact"},
		{viewer, "list", "appsec.dev", "reviewissues", "", ours, "", true, "what the role is for"},
		{viewer, "list", "", "events", "", ours, "", true, "why a key is refused is in Events"},
		{viewer, "list", "", "events", "", "org-elsewhere", "", false, "each organization's Events are its own"},
		{triager, "watch", "events.k8s.io", "events", "", ours, "", true, "both groups serve Events"},
		{triager, "create", "events.k8s.io", "events", "", ours, "", false, "Events are the controllers' and the facade's to make"},
		{triager, "watch", "appsec.dev", "webhookdeliveries", "", ours, "", true, "what the role is for"},
		{triager, "patch", "appsec.dev", "webhookdeliveries", "", ours, "d", true, "asks for a redelivery"},
		{triager, "patch", "appsec.dev", "webhookdeliveries", "status", ours, "d", false, "what was sent is what was sent"},
		{triager, "create", "appsec.dev", "webhookdeliveries", "", ours, "", false, "events are the controllers' to make"},
		{triager, "delete", "appsec.dev", "webhookdeliveries", "", ours, "d", false, "retention is the controllers'"},
		{triager, "patch", "appsec.dev", "webhookendpoints", "", ours, "e", false, "where events go is for those who administer"},
		{viewer, "patch", "appsec.dev", "webhookdeliveries", "", ours, "d", false, "viewers view"},
		{facade, "patch", "appsec.dev", "webhookdeliveries", "", ours, "d", true, "REST has one sent again"},
		{scanner, "delete", "appsec.dev", "findings", "", ours, "f", false, "a scanner closes and never deletes"},
		{scanner, "get", "", "secrets", "", ours, "key", false, "no role may read tokens"},
		{scanner, "get", "appsec.dev", "apikeys", "", ours, "key", false, "a scanner does not need it"},
		{triager, "triage", "appsec.dev", "findings", "", ours, "f", true, "what the role is for"},
		{triager, "create", "appsec.dev", "findings", "", ours, "", false, "people report through scanners"},
		{viewer, "watch", "appsec.dev", "findings", "", ours, "", true, "what the role is for"},
		{viewer, "patch", "appsec.dev", "findings", "", ours, "f", false, "viewers view"},
		{viewer, "triage", "appsec.dev", "findings", "", ours, "f", false, "viewers view"},
		{triager, "report", "appsec.dev", "findings", "", ours, "f", false, "people report through scanners"},
		{scanner, "triage", "appsec.dev", "findings", "", ours, "f", false, "decides nothing"},
		{viewer, "get", "", "secrets", "", ours, "key", false, "no role may read tokens"},
	}
	for _, row := range table {
		t.Run(fmt.Sprintf("%s %s %s %s in %s", row.who, row.verb, row.resource, row.obj, row.namespace), func(t *testing.T) {
			wantAnswer(t, may(t, c.as(row.who), authorizationv1.ResourceAttributes{
				Verb: row.verb, Group: row.group, Resource: row.resource, Subresource: row.sub, Namespace: row.namespace, Name: row.obj,
			}), row.allowed, row.reason)
		})
	}
}

func TestTheControllerBindsTheFourRolesAndNoOther(t *testing.T) {
	c := newCast(t, "binding")
	for role, allowed := range map[string]bool{
		"findings-viewer": true, "findings-triager": true, "findings-scanner": true, "findings-admin": true,
		"cluster-admin": false, "test-editor": false,
	} {
		binding := testenv.Bind(c.namespace, role, testenv.Role(role), testenv.Group("people"))
		wantAnswer(t, c.as(controller).Create(t.Context(), binding), allowed, "bind "+role)
	}
}

func TestOnlyControllersMarkNamespacesOfOrganizations(t *testing.T) {
	c := newCast(t, "adoption")
	maker := namespaceMaker(t)
	mark := map[string]string{v1alpha1.OrganizationUIDAnnotation: "forged"}
	plain := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}}}
	}
	marked := plain("org-forged")
	marked.Annotations = mark
	wantRefusal(t, "create with the annotation", maker.Create(t.Context(), marked))
	namespace := plain("org-squatted")
	if err := maker.Create(t.Context(), namespace); err != nil {
		t.Fatalf("a namespace without the annotation is nobody's business: %v", err)
	}
	annotate := testenv.MergePatch(`{"metadata":{"annotations":{"appsec.dev/organization-uid":"forged"}}}`)
	wantRefusal(t, "annotate", maker.Patch(t.Context(), namespace, annotate))
	wantRefusal(t, "annotate through the status", maker.Status().Patch(t.Context(), namespace, annotate))
	ours := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	for _, label := range []string{v1alpha1.RequireReasonLabel, v1alpha1.ImportsCreateLabel} {
		set := testenv.MergePatch(`{"metadata":{"labels":{"` + label + `":"false"}}}`)
		wantRefusal(t, "label with "+label, maker.Patch(t.Context(), ours, set))
	}
	remove := testenv.MergePatch(`{"metadata":{"annotations":{"appsec.dev/organization-uid":null}}}`)
	wantRefusal(t, "remove the annotation", maker.Patch(t.Context(), ours, remove))
	relabel := testenv.MergePatch(`{"metadata":{"labels":{"team":"payments"}}}`)
	harness.NoError(t, "label an organization's namespace", maker.Patch(t.Context(), ours, relabel))
	adopted := plain("org-adopted")
	adopted.Annotations = mark
	harness.NoError(t, "the controller adopts", c.as(controller).Create(t.Context(), adopted))
}

// Each replica of the REST API reads all keys each second, and everybody waits for that.
func TestAKeysLabelsAndAnnotationsAreBounded(t *testing.T) {
	c := newCast(t, "heavy-keys")
	annotated := func(name string, bytes int) *v1alpha1.APIKey {
		return builder.APIKey(name).In(c.namespace).Mutate(func(k *v1alpha1.APIKey) {
			k.Annotations = map[string]string{"note": strings.Repeat("x", bytes/2-4), "more": strings.Repeat("y", bytes/2-4)}
		}).Build()
	}
	if err := c.as(editor).Create(t.Context(), annotated("heavy", 16386)); !apierrors.IsInvalid(err) {
		t.Errorf("more than 16 KiB: want a refusal, got %v", err)
	}
	light := annotated("light", 16384)
	harness.Must(t, c.as(editor).Create(t.Context(), light))
	grow := testenv.MergePatch(`{"metadata":{"labels":{"a":"b"}}}`)
	if err := c.as(editor).Patch(t.Context(), light.DeepCopy(), grow); !apierrors.IsInvalid(err) {
		t.Errorf("labels count too: want a refusal, got %v", err)
	}
	if err := c.as(editor).Create(t.Context(), lastApplied(builder.APIKey("applied").In(c.namespace).Build())); !apierrors.IsInvalid(err) {
		t.Errorf("what kubectl apply writes down counts too: want a refusal, got %v", err)
	}
}

func lastApplied[T client.Object](object T) T {
	object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: strings.Repeat("x", 100_000)})
	return object
}

// The controllers hold the metadata of all objects in memory.
func TestMetadataIsBounded(t *testing.T) {
	c := newCast(t, "heavy-metadata")
	env.Create(t, lastApplied(builder.Repository("applied").In(c.namespace).Build()))
	for reason, fill := range map[string]func(*v1alpha1.Finding){
		"an annotation": func(f *v1alpha1.Finding) { f.Annotations = map[string]string{"note": strings.Repeat("x", 16381)} },
		"labels": func(f *v1alpha1.Finding) {
			f.Labels = map[string]string{}
			for i := range 9000 {
				f.Labels[fmt.Sprintf("l%050d", i)] = fmt.Sprintf("v%050d", i)
			}
		},
		"managers": func(f *v1alpha1.Finding) {
			for i := range 101 {
				f.ManagedFields = append(f.ManagedFields, metav1.ManagedFieldsEntry{Manager: fmt.Sprint("m", i),
					Operation: metav1.ManagedFieldsOperationApply, APIVersion: v1alpha1.GroupVersion.String(), FieldsType: "FieldsV1",
					FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:evidence":{}}}`)})
			}
		},
	} {
		finding := builder.Finding("heavy").In(c.namespace).Mutate(fill).Build()
		if err := c.as(scanner).Create(t.Context(), finding); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), " hold at most ") {
			t.Errorf("%s: want a refusal with the limit, got %v", reason, err)
		}
	}
}

// Outside of organizations no quota limits the keys, which every replica of the REST API lists, nor the endpoints; and
// the controllers give each namespace's endpoints a share of the requests.
func TestKeysAndEndpointsAreCreatedInOrganizationsAlone(t *testing.T) {
	c := newCast(t, "key-places")
	unmarked := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-unmarked-keys"}}
	empty := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "org-emptily-marked-keys", Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: ""},
	}}
	env.Create(t, unmarked, empty)
	for kind, of := range map[string]func(string) client.Object{"APIKey": keyOf, "WebhookEndpoint": endpointOf} {
		env.Create(t, in(c.namespace, of("ci")))
		for _, namespace := range []string{metav1.NamespaceDefault, unmarked.Name, empty.Name} {
			wantRefusal(t, kind+" in "+namespace, env.Client.Create(t.Context(), in(namespace, of("ci"))),
				"namespace "+namespace+" belongs to no Organization", "create the "+kind+" in its status.namespace")
		}
	}
}

// Endpoints that an earlier version accepted elsewhere are served until they are deleted.
func TestAnEndpointOfNoOrganizationStaysWritable(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace(t)}}
	endpoint := in(namespace.Name, endpointOf("stray"))
	env.Create(t, endpoint)
	env.Patch(t, namespace, `{"metadata":{"annotations":null}}`)
	// The policy may still know the annotation.
	harness.Eventually(t, func(g Gomega) {
		g.Expect(apierrors.IsForbidden(env.Client.Create(t.Context(), in(namespace.Name, endpointOf("late")), client.DryRunAll))).To(BeTrue())
	})
	env.Patch(t, endpoint, `{"spec":{"disabled":true}}`)
	harness.Must(t, env.AsController(t).Status().Patch(t.Context(), endpoint, testenv.MergePatch(`{"status":{"consecutiveFailures":1}}`)))
	harness.Must(t, env.Client.Delete(t.Context(), endpoint))
}

// A client may claim to have written any number of fields that do not exist.
func TestAKeysManagedFieldsAreBounded(t *testing.T) {
	c := newCast(t, "claimed-keys")
	claiming := func(name string, fields int) *v1alpha1.APIKey {
		claimed := map[string]any{}
		for i := range fields {
			claimed[fmt.Sprintf("f:%0100d", i)] = map[string]any{}
		}
		raw := harness.JSON(t, map[string]any{"f:metadata": map[string]any{"f:annotations": claimed}})
		return builder.APIKey(name).In(c.namespace).Mutate(func(k *v1alpha1.APIKey) {
			k.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate,
				APIVersion: v1alpha1.GroupVersion.String(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw))}}
		}).Build()
	}
	for _, fields := range []int{160, 8000} {
		err := c.as(editor).Create(t.Context(), claiming("heavy", fields))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.managedFields") {
			t.Errorf("%d fields: want a refusal that names managedFields, got %v", fields, err)
		}
	}
	light := claiming("light", 100)
	harness.Must(t, c.as(editor).Create(t.Context(), light))
	grow := light.DeepCopy()
	grow.ManagedFields = append(grow.ManagedFields, claiming("", 100).ManagedFields...)
	grow.ManagedFields[len(grow.ManagedFields)-1].Manager = "n"
	if err := c.as(editor).Update(t.Context(), grow); !apierrors.IsInvalid(err) {
		t.Errorf("an update that claims more: want a refusal, got %v", err)
	}
	light.Spec.Description = "still writable"
	harness.Must(t, c.as(editor).Update(t.Context(), light))
}

// foreignNamespace creates a namespace of no organization.
func foreignNamespace(t *testing.T) *corev1.Namespace {
	t.Helper()
	return testenv.Create(t, env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "foreign-"}})
}

// The right to patch namespaces is for two labels, in the namespaces of organizations.
func TestWhatTheControllersChangeOfANamespace(t *testing.T) {
	c := newCast(t, "labelled")
	ours := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	patch := func(namespace *corev1.Namespace, body string) error {
		return c.as(controller).Patch(t.Context(), namespace.DeepCopy(), testenv.MergePatch(body))
	}
	const label = `{"metadata":{"labels":{"appsec.dev/require-reason":"true"}}}`
	for _, body := range []string{label, `{"metadata":{"labels":{"appsec.dev/require-reason":null,"appsec.dev/imports-create":"false"}}}`} {
		harness.NoError(t, body, patch(ours, body))
	}
	wantRefusal(t, "a namespace of no organization", patch(foreign, label))
	wantRefusal(t, "another label", patch(ours, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`))
	env.Patch(t, ours.DeepCopy(), `{"metadata":{"labels":{"team":"payments"}}}`)
	wantRefusal(t, "a label removed", patch(ours, `{"metadata":{"labels":{"team":null}}}`))
	wantRefusal(t, "an annotation", patch(ours, `{"metadata":{"annotations":{"a":"b"}}}`))
	wantRefusal(t, "a finalizer", patch(ours, `{"metadata":{"finalizers":["appsec.dev/keep"]}}`))
	foreign = foreignNamespace(t) // Kubernetes lets nobody delete default
	wantRefusal(t, "delete one of no organization", c.as(controller).Delete(t.Context(), foreign, client.DryRunAll))
	harness.NoError(t, "delete an organization's", c.as(controller).Delete(t.Context(), ours, client.DryRunAll))
}

// The rights to write these kinds hold in every namespace, and are for those of organizations.
func TestTheControllersGiveAccessInOrganizationsAlone(t *testing.T) {
	c := newCast(t, "accessible")
	foreign := foreignNamespace(t).Name
	for kind, object := range map[string]func(in string) client.Object{
		"a service account": func(in string) client.Object {
			return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "controlled"}}
		},
		"a quota": func(in string) client.Object {
			return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "controlled"}}
		},
		"a role binding": func(in string) client.Object {
			return testenv.Bind(in, "controlled", testenv.Viewer)
		},
	} {
		// The policy may not be in force yet.
		harness.Eventually(t, func(g Gomega) {
			g.Expect(apierrors.IsForbidden(c.as(controller).Create(t.Context(), object(foreign), client.DryRunAll))).To(BeTrue(), kind)
		})
		env.Create(t, object(foreign))
		label := testenv.MergePatch(`{"metadata":{"labels":{"a":"b"}}}`)
		wantRefusal(t, "change "+kind, c.as(controller).Patch(t.Context(), object(foreign), label))
		if kind != "a service account" { // the controllers have no right to delete those
			wantRefusal(t, "delete "+kind, c.as(controller).Delete(t.Context(), object(foreign)))
			harness.Must(t, c.as(controller).Create(t.Context(), object(c.namespace)))
			harness.Must(t, c.as(controller).Patch(t.Context(), object(c.namespace), label))
			harness.Must(t, c.as(controller).Delete(t.Context(), object(c.namespace)))
		}
	}
}

// With the right to write every Secret, the controllers could otherwise have Kubernetes fill one with the token of any
// account.
func TestTheControllersWriteSecretsOfKeysAndEndpointsAlone(t *testing.T) {
	c := newCast(t, "secretive")
	secret := func(in, owner string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "controlled"}}
		if owner != "" {
			s.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: owner, Name: "x", UID: "x", Controller: new(true),
			}}
		}
		return s
	}
	// The policy may not be in force yet.
	harness.Eventually(t, func(g Gomega) {
		err := c.as(controller).Create(t.Context(), secret(c.namespace, ""), client.DryRunAll)
		g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "of nobody: %v", err)
	})
	wantRefusal(t, "of another kind", c.as(controller).Create(t.Context(), secret(c.namespace, "Repository")))
	token := secret(c.namespace, "APIKey")
	token.Type, token.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "scanner"}
	wantRefusal(t, "with an account's token", c.as(controller).Create(t.Context(), token))

	taken := secret(c.namespace, "")
	env.Create(t, taken)
	taken.Data = map[string][]byte{"a": []byte("b")}
	wantRefusal(t, "change somebody's", c.as(controller).Update(t.Context(), taken))
	taken.OwnerReferences = secret(c.namespace, "APIKey").OwnerReferences
	wantRefusal(t, "take somebody's", c.as(controller).Update(t.Context(), taken))
	wantRefusal(t, "delete somebody's", c.as(controller).Delete(t.Context(), taken))
	harness.Must(t, env.Client.Delete(t.Context(), taken))

	for _, ours := range []*corev1.Secret{secret(c.namespace, "APIKey"), secret(c.namespace, "WebhookEndpoint"),
		secret(foreignNamespace(t).Name, "WebhookEndpoint"), secret(testenv.SystemNamespace, "")} {
		as := c.as(controller)
		harness.Must(t, as.Create(t.Context(), ours))
		ours.Data = map[string][]byte{"a": []byte("b")}
		harness.Must(t, as.Update(t.Context(), ours))
		harness.Must(t, as.Delete(t.Context(), ours))
	}
}

// An organization is cluster-scoped: the policy sees a request without a namespace.
func TestWhoPutsAFinalizerOnAnOrganization(t *testing.T) {
	c := newCast(t, "finalized")
	organization := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "finalized"}}
	patch := client.RawPatch(types.MergePatchType, harness.JSON(t, finalizer))
	wantRefusal(t, "without update on organizations/finalizers", namespaceMaker(t).Patch(t.Context(), organization, patch))
	harness.NoError(t, "the controller", c.as(controller).Patch(t.Context(), organization, patch))
}

// namespaceMaker is a service account that may write namespaces and organizations, but has no custom
// verb.
func namespaceMaker(t *testing.T) client.Client {
	t.Helper()
	const name = "test-namespace-maker"
	for _, object := range testenv.Grant(name, testenv.Account("default", name), []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status"}, Verbs: []string{"create", "update", "patch"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"organizations"}, Verbs: []string{"create", "update", "patch"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"findings"}, Verbs: []string{"get"}},
	}...) {
		harness.Must(t, client.IgnoreAlreadyExists(env.Client.Create(t.Context(), object)))
	}
	config, err := env.Member(t.Context(), "default", name, name)
	harness.Must(t, err)
	return env.As(t, config)
}
