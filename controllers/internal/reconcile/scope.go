package reconcile

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// Status is a pointer to the status of a kind, such as *ProjectStatus.
type Status[S any] interface{ DeepCopy() S }

// Object is an object with the status S.
type Object[S any] interface {
	client.Object
	StatusAndConditions() (S, *[]v1alpha1.Condition)
}

// Scope is what one reconcile works on: an object O with the status S, such as *Project and *ProjectStatus. A
// controller that needs more embeds it.
type Scope[O Object[S], S Status[S]] struct {
	outcome
	Object O
	// Status is the object's status. Phases change it to the state that is to be stored.
	Status S
	// Before is the stored status.
	Before S
	// Now is when the reconcile began.
	Now time.Time
}

// NewScope returns the scope of an object.
func NewScope[O Object[S], S Status[S]](object O) *Scope[O, S] {
	status, _ := object.StatusAndConditions()
	return &Scope[O, S]{Object: object, Status: status, Before: status.DeepCopy()}
}

// Judge records the verdict in the conditions.
func (s *Scope[O, S]) Judge(verdict conditions.Verdict) {
	_, list := s.Object.StatusAndConditions()
	conditions.Set(list, verdict, s.Object.GetGeneration(), s.Now)
}

// Condition records a condition of the kind's own.
func (s *Scope[O, S]) Condition(kind string, is bool, reason, message string) {
	_, list := s.Object.StatusAndConditions()
	conditions.SetOne(list, kind, is, reason, message, s.Object.GetGeneration(), s.Now)
}

// ReadyReason returns the reason of the Ready condition; "" if there is no such condition yet.
func (s *Scope[O, S]) ReadyReason() string {
	_, list := s.Object.StatusAndConditions()
	return conditions.ReadyReason(*list)
}

// Store stores the status if it differs from the stored one, and reports whether it wrote. The loop does so after the
// phases; call it only in a phase that cannot wait for that.
func (s *Scope[O, S]) Store(ctx context.Context, c client.Client) (bool, error) {
	return s.store(ctx, c, func() {})
}

func (s *Scope[O, S]) store(ctx context.Context, c client.Client, stored func()) (bool, error) {
	written, err := patch.Status(ctx, c, s.Object, s.Before, s.Status)
	if written {
		stored()
		s.Before = s.Status.DeepCopy()
	}
	return written, err
}

// scoped is what the loop needs from a scope, which is a *Scope or embeds one.
type scoped interface {
	object() client.Object
	Begin(now time.Time)
	outcomeOf() *outcome
	store(ctx context.Context, c client.Client, stored func()) (bool, error)
}

func (s *Scope[O, S]) object() client.Object { return s.Object }

// Begin takes the object's current status as the stored one. The loop calls it after reading the
// object.
func (s *Scope[O, S]) Begin(now time.Time) { s.Before, s.Now = s.Status.DeepCopy(), now }

func (s *Scope[O, S]) outcomeOf() *outcome { return &s.outcome }

// ObserveSpec records which generation the status describes, and when the spec last changed.
func (s *Scope[O, S]) ObserveSpec(generation *int64, updatedAt **v1alpha1.Time) {
	at := lastwrite.UpdatedAt(s.Object, lastwrite.Observed{Generation: *generation, UpdatedAt: *updatedAt}, s.Now)
	*generation, *updatedAt = s.Object.GetGeneration(), &at
}

// JudgeByRepository makes the object ready if the Repository exists that the dependent, such as a "project", names. If
// it does not, the watch on repositories enqueues the object later.
func (s *Scope[O, S]) JudgeByRepository(ctx context.Context, c client.Reader, name v1alpha1.ResourceName, dependent,
	ready string) error {
	exists, err := Exists(ctx, c, &v1alpha1.Repository{}, s.Object.GetNamespace(), name)
	switch {
	case err != nil:
		return err
	case !exists:
		s.Judge(conditions.NotFound(v1alpha1.ReasonRepositoryNotFound, "Repository", name, dependent))
	default:
		s.Judge(conditions.Ready(ready))
	}
	return nil
}

// Exists reports whether the cache holds an object of that name, and reads it into object, which must
// not be changed.
func Exists(ctx context.Context, c client.Reader, object client.Object, namespace string,
	name v1alpha1.ResourceName) (bool, error) {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: string(name)}, object, client.UnsafeDisableDeepCopy)
	if kube.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look up %T %q: %w", object, name, err)
	}
	return err == nil, nil
}
