package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Patience is how long a decision is tried for, its wait for other writers included.
const Patience = 30 * time.Second

// While writers in other replicas are faster, a writer tries again after up to two tries' time. A replica
// whose writers have all had an object leaves it to others for longer than that and a try, so that they
// get it.
const (
	longestBackoff = 2
	shortestPause  = 2
	longestPause   = 4
)

// Triager stores what people decide about objects of one kind.
type Triager[T kube.Object] struct {
	// Noun is what a client calls an object of the kind.
	Noun string

	kind kube.Kind
	// standing returns what was decided about an object until now.
	standing func(T) findingstate.Standing
	rest     rest.Interface
	lines    *lines
	pace     pace
}

func newTriager[T kube.Object](client rest.Interface, noun string, standing func(T) findingstate.Standing) *Triager[T] {
	var object T
	kind, _ := kube.KindOf(object)
	t := &Triager[T]{Noun: noun, kind: kind, standing: standing, rest: client}
	t.lines = newLines(func() time.Duration { return t.pace.between(shortestPause, longestPause) })
	return t
}

// Turn waits until no other caller of this Triager has the object. The caller calls done once it has
// written and its readers see it; then the next one has it.
//
// Without it writers of one object in one process would refuse one another's patches.
func (t *Triager[T]) Turn(ctx context.Context, object T) (done func(), err error) {
	done, err = t.lines.enter(ctx, nameOf(object))
	if err != nil {
		return nil, t.contended(object, err)
	}
	return done, nil
}

// Triage turns an object into what was decided and returns it as that write has made it.
//
// known is the object as the caller last saw it. The API server says whether that is still
// so, even where the decision changes nothing. If it is not, Triage reads the object and
// decides again, for as long as Patience and ctx allow. check is asked before each try, and its error
// ends the matter: a finding that was deleted and made again under its name may be in another
// project. An error about the state that the caller knew is asked again of the stored one.
//
// A decision whose outcome is not known may be written again: that changes nothing a second time.
func (t *Triager[T]) Triage(ctx context.Context, known Known[T], check func(Known[T]) error,
	decision Decision) (none T, err error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	current, begun := known, time.Now()
	for attempt := 1; ; attempt++ {
		err := check(current)
		if err != nil && (attempt > 1 || !problem.IsPreconditionFailed(err)) {
			return none, err
		}
		if err == nil {
			written, err := t.patch(ctx, current, decision, attempt)
			if err == nil {
				t.pace.set(time.Since(begun))
				return written, nil
			}
			if !apierrors.IsConflict(err) {
				return none, t.explain(ctx, known.Object, attempt, err)
			}
		}
		if err := t.backOff(ctx, attempt); err != nil {
			return none, t.contended(known.Object, err)
		}
		begun = time.Now()
		if current.Object, err = t.get(ctx, known.Object); err != nil {
			return none, t.explain(ctx, known.Object, attempt, err)
		}
		current.Standing = t.standing(current.Object)
	}
}

// backOff waits after a conflict. The first is mostly due to the controllers, which record what the last
// patch has changed: they do not go on.
func (t *Triager[T]) backOff(ctx context.Context, attempt int) error {
	if attempt == 1 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(t.pace.between(0, longestBackoff))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// explain is for a call that failed. Where conflicts came before it and the time was over, those are why.
func (t *Triager[T]) explain(ctx context.Context, object T, attempt int, err error) error {
	if attempt > 1 && ctx.Err() != nil {
		return t.contended(object, fmt.Errorf("%d tries: %w", attempt, err))
	}
	return explain(t.Noun, err)
}

func (t *Triager[T]) contended(object T, err error) error {
	return problem.TryAgain("others are changing the "+t.Noun+" at the same time",
		fmt.Errorf("%s %s: %w", t.Noun, nameOf(object), err))
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func (t *Triager[T]) patch(ctx context.Context, known Known[T], decision Decision,
	attempt int) (written T, err error) {
	ctx, span := tracing.Start(ctx, "kubernetes: patch "+t.Noun,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.Int("findings.attempt", attempt)))
	defer func() { end(span, err) }()
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	patch, err := mergePatch(known, decision)
	if err != nil {
		return written, err
	}
	written = t.empty()
	return written, t.rest.Patch(types.MergePatchType).
		Namespace(known.Object.GetNamespace()).Resource(t.kind.Resource).Name(known.Object.GetName()).
		Param("fieldManager", v1alpha1.APIFieldManager).
		Body(patch).
		Do(ctx).Into(written)
}

// get returns the object as it is stored now.
func (t *Triager[T]) get(ctx context.Context, known T) (stored T, err error) {
	ctx, span := tracing.Start(ctx, "kubernetes: get "+t.Noun, trace.WithSpanKind(trace.SpanKindClient))
	defer func() { end(span, err) }()
	stored = t.empty()
	return stored, kube.Get(ctx, t.rest, known.GetNamespace(), known.GetName(), stored)
}

func (t *Triager[T]) empty() T { return t.kind.New().(T) } //nolint:forcetypeassert // the kind is T's

// end ends the span of a call. Of an error it takes the reason alone: the message may repeat
// what a client sent.
func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, string(apierrors.ReasonForError(err)))
	}
	span.End()
}

// reasonsPolicy is the admission policy that requires a reason to mute, where the Organization does.
const reasonsPolicy = "findings-reasons.appsec.dev"

// explain says what an error of the API server means to a client, which knows nothing of it.
func explain(noun string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return problem.NotFound(noun)
	case apierrors.IsForbidden(err):
		// A starting API server knows neither roles nor policies for a moment.
		return problem.TryAgain("the change is not allowed, by a rule of this installation or while its API server starts",
			err)
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), reasonsPolicy):
		return reasonRequired(noun, "reason")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return problem.Internal("a rule of this installation refused the change; ask its operators", err)
	default:
		return problem.TryAgain("the change could not be stored", err)
	}
}

// reasonRequired names what is to be muted, and the member that is to hold the reason.
func reasonRequired(noun, member string) error {
	return problem.InvalidBody("the organization requires a reason to mute a " + noun + ": give one in " + member).
		In(member).Coded(problem.CodeReasonRequired)
}
