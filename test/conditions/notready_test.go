package conditions_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// hindered is an object that cannot become ready, with the reason.
type hindered struct {
	object  client.Object
	reason  string
	stalled bool
	// says is a part of the message, which explains what to do or what is happening.
	says string
}

// hindrances returns one example for each kind; the controllers' own tests cover all.
func hindrances(t *testing.T, namespace string) map[string]hindered {
	t.Helper()
	env.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-taken"}})
	env.Create(t, builder.Repository("repo").In(namespace).Build())
	return map[string]hindered{
		"Organization":    {builder.Organization("taken").Build(), v1alpha1.ReasonNamespaceConflict, true, "Otherwise give the Organization another name"},
		"Repository":      {held(t, namespace), v1alpha1.ReasonDeleting, false, "its projects are being removed"},
		"Project":         {builder.Project("lost").In(namespace).Mutate(func(p *v1alpha1.Project) { p.Spec.RepositoryRef.Name = "nowhere" }).Build(), v1alpha1.ReasonRepositoryNotFound, false, "create it"},
		"Finding":         {builder.Finding("lost").In(namespace).Build(), v1alpha1.ReasonProjectNotFound, false, "create it"},
		"Scan":            {builder.Scan("dead", time.Now().Add(-2*time.Hour)).In(namespace).Build(), v1alpha1.ReasonAbandoned, true, "Scan again."},
		"Review":          {builder.Review("lost").In(namespace).Mutate(func(r *v1alpha1.Review) { r.Spec.RepositoryRef.Name = "nowhere" }).Build(), v1alpha1.ReasonRepositoryNotFound, false, "create it"},
		"ReviewIssue":     {builder.ReviewIssue("lost").In(namespace).Mutate(func(i *v1alpha1.ReviewIssue) { i.Spec.ReviewRef.Name = "nowhere" }).Build(), v1alpha1.ReasonReviewNotFound, false, "create it"},
		"TriageOperation": {builder.TriageOperation("back", "").Undoes("nowhere").In(namespace).Build(), v1alpha1.ReasonNotUndoable, true, "does not exist in this namespace"},
		"TriagePolicy":    {builder.TriagePolicy("wrong", "finding.rule == ''").In(namespace).Build(), v1alpha1.ReasonNotCompiled, true, "does not compile"},
		"APIKey":          {builder.APIKey("off").In(namespace).Disabled().Build(), v1alpha1.ReasonDisabled, false, "remove it to enable the key"},
		"WebhookEndpoint": {
			builder.WebhookEndpoint("mute").In(namespace).Secret("nowhere").Build(), v1alpha1.ReasonSecretNotFound, true, "remove spec.secretRef",
		},
		"WebhookDelivery": {
			builder.WebhookDelivery("lost", time.Now()).In(namespace).Endpoint("nowhere").Build(), v1alpha1.ReasonEndpointNotFound, false, "create it",
		},
	}
}

// held returns a repository that is being deleted and waits for a project with a foreign finalizer.
func held(t *testing.T, namespace string) *v1alpha1.Repository {
	t.Helper()
	project := builder.Project("held").In(namespace).Mutate(func(p *v1alpha1.Project) {
		p.Spec.RepositoryRef.Name = "leaving"
		p.Finalizers = []string{"example.com/held"}
	}).Build()
	env.Create(t, project)
	t.Cleanup(func() {
		release := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := env.Client.Patch(context.Background(), project, release); client.IgnoreNotFound(err) != nil {
			t.Log(err)
		}
	})
	return builder.Repository("leaving").In(namespace).Build()
}

func TestWhatIsNotReadySaysWhyAndWhatToDo(t *testing.T) {
	all := kinds(t)
	running := startControllers(t)
	organization := testenv.Create(t, env, builder.Organization("hindered").Build())
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, organization).Status.Namespace).NotTo(BeEmpty())
	})
	cases := hindrances(t, organization.Status.Namespace)
	for _, kind := range all {
		t.Run(kind, func(t *testing.T) {
			hindrance, tried := cases[kind]
			if !tried {
				t.Fatal("hindrances has no object of this kind: add one that cannot become ready")
			}
			env.Create(t, hindrance.object)
			if hindrance.reason == v1alpha1.ReasonDeleting {
				deleteOnceKnown(t, hindrance.object)
			}
			checkHindered(t, kind, hindrance)
		})
	}
	namespace := organization.Status.Namespace
	env.Create(t, builder.Scan("running", time.Now()).In(namespace).Build(), // other lasting states than in the pages
		builder.Review("pull").In(namespace).PullRequest("repo", 7).Reviewed("a", time.Now().Add(-time.Hour)).Reviewed("b", time.Now()).Build(),
		builder.ReviewIssue("resolved").In(namespace).Review("pull").SeenIn("a").Build())
	// While it is held, its repository looks for it each second.
	env.Patch(t, builder.Project("held").In(namespace).Build(), `{"metadata":{"finalizers":null}}`)
	running.beginAnew(t, all)
}

// deleteOnceKnown waits for the finalizer before it deletes the object, which would otherwise be
// removed immediately.
func deleteOnceKnown(t *testing.T, object client.Object) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, object).GetFinalizers()).To(ContainElement(v1alpha1.CleanupFinalizer))
	})
	harness.Must(t, env.Client.Delete(t.Context(), object))
}

func checkHindered(t *testing.T, kind string, want hindered) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	object.SetNamespace(want.object.GetNamespace())
	object.SetName(want.object.GetName())
	var ready, stalled *v1alpha1.Condition
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, env, object)
		is := statusOf(t, object)
		ready = v1alpha1.FindCondition(is.Conditions, v1alpha1.ConditionReady)
		stalled = v1alpha1.FindCondition(is.Conditions, v1alpha1.ConditionStalled)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Reason).To(Equal(want.reason))
		g.Expect(ready.ObservedGeneration).To(Equal(object.GetGeneration()))
	})
	harness.Same(t, "Ready", metav1.ConditionFalse, ready.Status)
	if (stalled != nil) != want.stalled {
		t.Errorf("Stalled is %v, want it there: %t", stalled, want.stalled)
	}
	if stalled != nil && (stalled.Status != metav1.ConditionTrue || stalled.Reason != ready.Reason || stalled.Message != ready.Message) {
		t.Errorf("Stalled says other than Ready: %v", stalled)
	}
	harness.Contains(t, "the message", ready.Message, want.says)
	checkMessage(t, kind, ready.Message)
}
