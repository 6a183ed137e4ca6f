package testenv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Create creates the objects as the administrator.
func (e *Environment) Create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := e.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// Create creates the object as the administrator, and returns it.
func Create[O client.Object](t testing.TB, e *Environment, object O) O {
	t.Helper()
	e.Create(t, object)
	return object
}

// Deny makes a cluster administrator's own admission policy, which denies what its spec matches.
func (e *Environment) Deny(t testing.TB, name string, spec admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	e.Create(t, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: spec},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		})
}

// CreateAtOnce creates the objects as the administrator, several at a time and in no particular
// order.
func (e *Environment) CreateAtOnce(t testing.TB, objects ...client.Object) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for _, object := range objects {
		group.Go(func() error { return e.Client.Create(ctx, object) })
	}
	harness.Must(t, group.Wait())
}

// Namespace creates a namespace for the test and returns its name. It is marked as an organization's, without which it
// could hold no webhook endpoints.
func (e *Environment) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-", Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "x"},
	}}
	e.Create(t, namespace)
	return namespace.Name
}

// Organization is NewOrganization, but ends the test on an error.
func (e *Environment) Organization(t testing.TB, name string) (namespace string) {
	t.Helper()
	namespace, err := e.NewOrganization(t.Context(), name)
	harness.Must(t, err)
	return namespace
}

// UseUp creates a quota that refuses every further object like the probe, and waits until it is in force. Without a
// quota controller its numbers stay as they are; delete the quota to make room.
func (e *Environment) UseUp(t testing.TB, counted corev1.ResourceName, probe client.Object) *corev1.ResourceQuota {
	t.Helper()
	none := corev1.ResourceList{counted: resource.MustParse("0")}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: probe.GetNamespace(), Name: "used-up"},
		Spec:       corev1.ResourceQuotaSpec{Hard: none},
	}
	e.Create(t, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	harness.Must(t, e.Client.Status().Update(t.Context(), quota))
	harness.Eventually(t, func(g Gomega) {
		err := e.Client.Create(t.Context(), probe.DeepCopyObject().(client.Object), client.DryRunAll)
		g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the quota is not in force: %v", err)
		g.Expect(err.Error()).To(ContainSubstring("exceeded quota"))
	})
	return quota
}

// AsController returns a client with the rights of the controllers, which may write statuses.
func (e *Environment) AsController(t testing.TB) client.WithWatch {
	t.Helper()
	config, err := e.Controller(t.Context())
	harness.Must(t, err)
	return e.As(t, config)
}

// Gone reports whether the object no longer exists.
func (e *Environment) Gone(t testing.TB, object client.Object) bool {
	t.Helper()
	err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	harness.Must(t, client.IgnoreNotFound(err))
	return apierrors.IsNotFound(err)
}

// AwaitGone waits until none of the objects exists.
func (e *Environment) AwaitGone(t testing.TB, objects ...client.Object) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		for _, object := range objects {
			g.Expect(e.Gone(t, object)).To(BeTrue(), "%T %s is still there", object, object.GetName())
		}
	})
}

// Names lists the objects of the namespace, and returns their names.
func (e *Environment) Names(t testing.TB, list client.ObjectList, namespace string) (names []string) {
	t.Helper()
	harness.Must(t, e.Client.List(t.Context(), list, client.InNamespace(namespace)))
	harness.Must(t, meta.EachListItem(list, func(item kruntime.Object) error {
		names = append(names, item.(client.Object).GetName())
		return nil
	}))
	return names
}

// Get reads the object again from the API server and returns it.
func Get[T client.Object](t testing.TB, g Gomega, e *Environment, object T) T {
	t.Helper()
	g.Expect(e.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// Stored returns the object as it is stored.
func (e *Environment) Stored(t testing.TB, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(object.GroupVersionKind())
	harness.Must(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(object), stored))
	return stored
}

// Versions reads the objects again, and returns their names and resource versions: the same until one is written.
func (e *Environment) Versions(t testing.TB, objects ...client.Object) (versions []string) {
	t.Helper()
	for _, object := range objects {
		Get(t, NewWithT(t), e, object)
		versions = append(versions, fmt.Sprintf("%T %s: %s", object, object.GetName(), object.GetResourceVersion()))
	}
	return versions
}

// Finding returns the stored finding.
func (e *Environment) Finding(t testing.TB, namespace, name string) *v1alpha1.Finding {
	t.Helper()
	finding := &v1alpha1.Finding{}
	harness.Must(t, e.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, finding))
	return finding
}

// AwaitFindings waits until the condition Ready of each finding of the namespace is that of its current spec, and
// returns the findings, of which there must be some.
func (e *Environment) AwaitFindings(t testing.TB, namespace string) []v1alpha1.Finding {
	t.Helper()
	list := &v1alpha1.FindingList{}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(List(t, g, e, list, client.InNamespace(namespace)).Items).NotTo(BeEmpty())
		for i := range list.Items {
			current(g, &list.Items[i])
		}
	})
	return list.Items
}

// List reads the objects of the list.
func List[L client.ObjectList](t testing.TB, g Gomega, e *Environment, list L, options ...client.ListOption) L {
	t.Helper()
	g.Expect(e.Client.List(t.Context(), list, options...)).To(Succeed())
	return list
}

// Conditioned is an object with conditions, and the status S.
type Conditioned[S any] interface {
	client.Object
	StatusAndConditions() (S, *[]v1alpha1.Condition)
}

// Ready reads the object again from the API server, and returns its condition Ready, which must exist.
func Ready[O Conditioned[S], S any](t testing.TB, g Gomega, e *Environment, object O) *v1alpha1.Condition {
	t.Helper()
	return readyOf(g, Get(t, g, e, object))
}

func readyOf[O Conditioned[S], S any](g Gomega, object O) *v1alpha1.Condition {
	_, conditions := object.StatusAndConditions()
	ready := v1alpha1.FindCondition(*conditions, v1alpha1.ConditionReady)
	g.Expect(ready).NotTo(BeNil(), object.GetName())
	return ready
}

// current returns the object's condition Ready, which must be that of its current spec: the controllers set it last.
func current[O Conditioned[S], S any](g Gomega, object O) *v1alpha1.Condition {
	ready := readyOf(g, object)
	g.Expect(ready.ObservedGeneration).To(Equal(object.GetGeneration()), "%s: %s", object.GetName(), ready.Message)
	return ready
}

// AwaitReason waits until the object's condition Ready is that of its current spec and has the reason, and returns it.
func AwaitReason[O Conditioned[S], S any](t testing.TB, e *Environment, object O, want string) (ready *v1alpha1.Condition) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		ready = current(g, Get(t, g, e, object))
		g.Expect(ready.Reason).To(Equal(want), ready.Message)
	})
	return ready
}

// AwaitReady waits until the object's condition Ready is that of its current spec and true.
func AwaitReady[O Conditioned[S], S any](t testing.TB, e *Environment, object O) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		ready := current(g, Get(t, g, e, object))
		g.Expect(ready.Status).To(Equal(metav1.ConditionTrue), ready.Message)
	})
}

// CreateReady creates the object as the administrator, and returns it once its condition Ready is true.
func CreateReady[O Conditioned[S], S any](t testing.TB, e *Environment, object O) O {
	t.Helper()
	e.Create(t, object)
	AwaitReady(t, e, object)
	return object
}

// AwaitObserved waits until the object's condition Ready is that of its current spec, and returns it.
func AwaitObserved[O Conditioned[S], S any](t testing.TB, e *Environment, object O) (ready *v1alpha1.Condition) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		ready = current(g, Get(t, g, e, object))
	})
	return ready
}

// Token waits until the key has a token, and returns it.
func Token(ctx context.Context, c client.Client, key *v1alpha1.APIKey) (token string, err error) {
	err = harness.Until(ctx, "API key "+key.Name+" has a token", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(key), key); err != nil {
			return err
		}
		if !v1alpha1.IsConditionTrue(key.Status.Conditions, v1alpha1.ConditionReady) {
			return errors.New("it is not ready")
		}
		secret := &corev1.Secret{}
		name := client.ObjectKey{Namespace: key.Namespace, Name: string(key.Status.SecretRef.Name)}
		if err := c.Get(ctx, name, secret); err != nil {
			return err
		}
		token = string(secret.Data[v1alpha1.APIKeyTokenKey])
		return nil
	})
	return token, err
}

// TokenNow returns the token in the key's Secret, or an empty one if there is no Secret.
func (e *Environment) TokenNow(t testing.TB, key *v1alpha1.APIKey) string {
	t.Helper()
	secret := &corev1.Secret{}
	err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name + "-token"}, secret)
	harness.Must(t, client.IgnoreNotFound(err))
	return string(secret.Data[v1alpha1.APIKeyTokenKey])
}

// Reconciled creates the organization, waits until the controllers have reconciled it, and returns its namespace.
func (e *Environment) Reconciled(t testing.TB, organization *v1alpha1.Organization) (namespace string) {
	t.Helper()
	return CreateReady(t, e, organization).Status.Namespace
}

// Key creates the API key, and returns its token once the controllers have issued it.
func (e *Environment) Key(t testing.TB, key *v1alpha1.APIKey) (token string) {
	t.Helper()
	e.Create(t, key)
	token, err := Token(t.Context(), e.Client, key)
	harness.Must(t, err)
	return token
}

// Change applies a change to the stored object, and retries on a conflict.
func Change[T client.Object](t testing.TB, e *Environment, object T, apply func(T)) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		apply(Get(t, g, e, object))
		g.Expect(e.Client.Update(t.Context(), object)).To(Succeed())
	})
}

// ChangeStatus applies a change to the stored object's status with the controllers' rights, and retries on a conflict.
func ChangeStatus[T client.Object](t testing.TB, e *Environment, object T, apply func(T)) {
	t.Helper()
	controller := e.AsController(t)
	harness.Eventually(t, func(g Gomega) {
		apply(Get(t, g, e, object))
		g.Expect(controller.Status().Update(t.Context(), object)).To(Succeed())
	})
}

// MergePatch returns a JSON merge patch.
func MergePatch(body string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(body)) }

// Patch applies a JSON merge patch to the object as the administrator.
func (e *Environment) Patch(t testing.TB, object client.Object, body string) {
	t.Helper()
	if err := e.Client.Patch(t.Context(), object, MergePatch(body)); err != nil {
		t.Fatalf("patch %T %s with %s: %v", object, object.GetName(), body, err)
	}
}

// Writes yields the objects of a kind in the namespace each time one is written from now on, except
// for creations. The test fails if no write arrives within harness.Patience.
func Writes[T client.Object](t testing.TB, e *Environment, list client.ObjectList, namespace string) iter.Seq[T] {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	t.Cleanup(cancel)
	events, err := e.Client.Watch(ctx, list, client.InNamespace(namespace))
	harness.Must(t, err)
	t.Cleanup(events.Stop)
	return func(yield func(T) bool) {
		for event := range events.ResultChan() {
			if event.Type == watch.Modified && !yield(event.Object.(T)) {
				return
			}
		}
		t.Fatalf("the last write that was waited for did not come within %s", harness.Patience)
	}
}

// CountWrites returns how many writes come before the last one.
func CountWrites[T client.Object](writes iter.Seq[T], last func(T) bool) (count int) {
	for written := range writes {
		if last(written) {
			break
		}
		count++
	}
	return count
}
