// Package ownsecret keeps the Secret that a controller makes for an object.
//
// Secrets are read only from the API server, so that no cache holds them; the watch holds metadata of those with
// the operator's label.
package ownsecret

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Store reads and writes Secrets of objects. A write fails if the Secret has changed since it was read.
type Store struct {
	client client.Client
	live   client.Reader
}

// NewStore returns a Store.
func NewStore(mgr ctrl.Manager) Store { return Store{mgr.GetClient(), mgr.GetAPIReader()} }

// Get returns the Secret of the owner, nil if there is none. It fails with AlreadyExists if a Secret of another owner
// has the name. It deletes that of an earlier owner first; AlreadyExists then means that a finalizer keeps it. It fails
// with NotFound if the API server no longer has the owner, but perhaps another one of the name.
func (s Store) Get(ctx context.Context, owner client.Object, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.live.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: name}, secret)
	switch {
	case kube.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get secret %s: %w", name, err)
	case metav1.IsControlledBy(secret, owner):
		return secret, nil
	}
	leftBehind, err := s.leftBehind(ctx, secret, owner)
	switch {
	case err != nil:
		return nil, err
	case leftBehind:
		// The garbage collector would remove it, too, but later.
		if err := s.Delete(ctx, secret); err != nil || len(secret.Finalizers) == 0 {
			return nil, err
		}
	}
	return nil, taken(name)
}

func taken(name string) error {
	return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, name)
}

// leftBehind reports whether the Secret belongs to an earlier, deleted owner of the same name. It fails with NotFound
// if the API server no longer has the owner. The owner was read from a cache, so it may itself be the deleted one.
func (s Store) leftBehind(ctx context.Context, secret *corev1.Secret, owner client.Object) (bool, error) {
	kind, err := s.client.GroupVersionKindFor(owner)
	if err != nil {
		return false, err
	}
	of := metav1.GetControllerOf(secret)
	if of == nil || of.Kind != kind.Kind || of.Name != owner.GetName() ||
		!strings.HasPrefix(of.APIVersion, kind.Group+"/") || of.UID == owner.GetUID() {
		return false, nil
	}
	current := kube.MetadataOf(kind)
	err = s.live.Get(ctx, client.ObjectKeyFromObject(owner), current)
	if err == nil && current.UID != owner.GetUID() {
		resource := schema.GroupResource{Group: kind.Group, Resource: kube.Resource(kind.Kind)}
		err = apierrors.NewNotFound(resource, owner.GetName())
	}
	if err != nil {
		return false, fmt.Errorf("check whether the %s of secret %s still exists: %w", kind.Kind, secret.Name, err)
	}
	return true, nil
}

// New returns a Secret of the owner that is not stored yet.
func New(owner client.Object, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: name}, Type: corev1.SecretTypeOpaque,
	}
}

// Put stores the Secret: it updates a Secret that was read, and creates a new one. It fails with a conflict if the name
// was taken meanwhile, which the next reconcile handles. An immutable Secret is deleted and recreated, so its content
// must be replaceable; Put fails with AlreadyExists if a finalizer keeps it. inUse means that the stored Secret holds
// something still valid: an immutable one is then deleted only if the API server would accept the new one, for which a
// quota that is exactly full has no room.
func (s Store) Put(ctx context.Context, owner client.Object, secret *corev1.Secret, inUse bool) error {
	var old *corev1.Secret
	if Frozen(secret) {
		if len(secret.Finalizers) > 0 {
			return taken(secret.Name)
		}
		old, secret = secret, New(owner, secret.Name)
		secret.Annotations, secret.Data = old.Annotations, old.Data
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)
	if err := controllerutil.SetControllerReference(owner, secret, s.client.Scheme()); err != nil {
		return fmt.Errorf("secret %s: %w", secret.Name, err)
	}
	if secret.ResourceVersion != "" {
		return s.update(ctx, secret)
	}
	if old != nil {
		if err := s.makeRoom(ctx, old, secret, inUse); err != nil {
			return err
		}
	}
	err := s.client.Create(ctx, secret)
	switch {
	case kube.IsAlreadyExists(err):
		return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, secret.Name, err)
	case err != nil:
		return fmt.Errorf("create secret %s: %w", secret.Name, err)
	}
	return nil
}

// makeRoom deletes the old Secret. It keeps a Secret in use, which may be the only copy of a token, if the API server
// would refuse the new one because of a policy or a full quota. That can be tried while the name is taken, because
// admission comes first.
func (s Store) makeRoom(ctx context.Context, old, replacement *corev1.Secret, inUse bool) error {
	if inUse {
		err := s.client.Create(ctx, replacement.DeepCopy(), client.DryRunAll)
		if err != nil && !kube.IsAlreadyExists(err) {
			return fmt.Errorf("create secret %s: %w", old.Name, err)
		}
	}
	return s.Delete(ctx, old)
}

// KeepWatched restores the operator's label if it was removed, because the watch does not see Secrets without it.
func (s Store) KeepWatched(ctx context.Context, secret *corev1.Secret) error {
	if secret.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy {
		return nil
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)
	return s.update(ctx, secret)
}

func (s Store) update(ctx context.Context, secret *corev1.Secret) error {
	if err := s.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("update secret %s: %w", secret.Name, err)
	}
	return nil
}

// Delete deletes the Secret, if it is unchanged since it was read.
func (s Store) Delete(ctx context.Context, secret *corev1.Secret) error {
	if err := s.client.Delete(ctx, secret, patch.AsSeen(secret)); kube.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete secret %s: %w", secret.Name, err)
	}
	return nil
}

// Frozen reports whether the Secret is immutable.
func Frozen(secret *corev1.Secret) bool { return ptr.Deref(secret.Immutable, false) }

// SerialAnnotation holds the serial of the rotation that wrote the Secret, for the reconcile after a crash
// before the status was written.
const SerialAnnotation = v1alpha1.GroupName + "/rotation-serial"

// Serial returns the annotation's serial; 0 if it is missing or not a number.
func Serial(secret *corev1.Secret) int64 {
	serial, err := strconv.ParseInt(secret.Annotations[SerialAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return serial
}

// SetSerial sets the serial annotation of the Secret.
func SetSerial(secret *corev1.Secret, serial int64) {
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, SerialAnnotation, strconv.FormatInt(serial, 10))
}
