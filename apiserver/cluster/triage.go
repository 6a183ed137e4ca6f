package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/apiserver/newest"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Patience is for how long storing a decision is tried, including the wait for other writers.
const Patience = 30 * time.Second

// maxWriters bounds the writers that wait for one object. A write takes about 20 ms, so a writer behind more than that
// many would not get a turn within Patience.
const maxWriters = 1000

// After a conflict with a writer in another replica, a writer tries again after up to twice the duration of a
// try. A replica whose writers have all had their turn leaves the object to others for longer than such a
// backoff plus a try, so that they get it.
const (
	maxBackoff = 2
	minPause   = 2
	maxPause   = 4
)

// Triager stores users' decisions about objects of one kind.
type Triager[T kube.Object] struct {
	// Noun is the name of the kind in messages to clients.
	Noun string

	// standing returns the decisions made about an object so far.
	standing func(T) findingstate.Standing
	rest     rest.Interface
	lines    slots.Lines[types.NamespacedName]
	pace     pace
}

func newTriager[T kube.Object](client rest.Interface, noun string, standing func(T) findingstate.Standing) *Triager[T] {
	t := &Triager[T]{Noun: noun, standing: standing, rest: client}
	t.lines.Most = maxWriters
	t.lines.Pause = func() time.Duration { return t.pace.between(minPause, maxPause) }
	return t
}

// Stored returns the named object as it is stored now.
func (t *Triager[T]) Stored(ctx context.Context, namespace, name string) (T, error) {
	return read[T](ctx, t.rest, namespace, name, t.Noun)
}

// Turn waits until no other caller of this Triager has the object. The caller calls done after it has written and its
// readers see the result; then the next caller gets its turn.
//
// Without turns, writers of one object in the same process would cause conflicts in each other's patches.
func (t *Triager[T]) Turn(ctx context.Context, object T) (done func(), err error) {
	done, err = t.lines.Enter(ctx, newest.Key(object))
	if err != nil {
		return nil, t.contended(object, err)
	}
	return done, nil
}

// Triage applies a decision to an object and returns the object as that write left it.
//
// known is the object as the caller last saw it. The API server checks that it is still current, even if the decision
// changes nothing. If it is not, Triage reads the object and tries again, for as long as Patience and ctx allow. Triage
// calls check before each try, because a finding that was deleted and created again under the same name may belong to
// another project. It returns check's error only for a state that the API server has just returned, because the
// caller's may be old.
//
// If the outcome of a write is unknown, the decision may be written again, which changes nothing the second time.
func (t *Triager[T]) Triage(ctx context.Context, known Known[T], check func(Known[T]) error,
	decision Decision) (none T, err error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	current, begun := known, time.Now()
	for attempt := 1; ; attempt++ {
		err := check(current)
		if err != nil && attempt > 1 {
			return none, err
		}
		if err == nil {
			written, err := t.patch(ctx, current, decision, attempt)
			if err == nil {
				t.pace.set(time.Since(begun))
				return written, nil
			}
			if !kube.IsConflict(err) {
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

// backOff waits after a conflict. It does not wait after the first one, which is usually with the controllers: they
// record the effects of the last patch and then stop writing.
func (t *Triager[T]) backOff(ctx context.Context, attempt int) error {
	if attempt == 1 {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(t.pace.between(0, maxBackoff)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// explain translates the error of a failed call. If the time ran out after conflicts, it reports the conflicts.
func (t *Triager[T]) explain(ctx context.Context, object T, attempt int, err error) error {
	if attempt > 1 && ctx.Err() != nil {
		return t.contended(object, fmt.Errorf("%d tries: %w", attempt, err))
	}
	return explain(t.Noun, err)
}

func (t *Triager[T]) contended(object T, err error) error {
	return problem.TryAgain("others are changing the "+t.Noun+" at the same time",
		fmt.Errorf("%s %s: %w", t.Noun, newest.Key(object), err))
}

func (t *Triager[T]) patch(ctx context.Context, known Known[T], decision Decision,
	attempt int) (written T, err error) {
	ctx, span := tracing.Start(ctx, "kubernetes: patch "+t.Noun,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.Int("findings.attempt", attempt)))
	defer func() { end(span, err) }()
	content, err := mergePatch(known, decision, apitime.Now())
	if err != nil {
		return written, err
	}
	return patch[T](ctx, t.rest, known.Object.GetNamespace(), known.Object.GetName(), content)
}

// get returns the object as it is stored now.
func (t *Triager[T]) get(ctx context.Context, known T) (stored T, err error) {
	ctx, span := tracing.Start(ctx, "kubernetes: get "+t.Noun, trace.WithSpanKind(trace.SpanKindClient))
	defer func() { end(span, err) }()
	stored = empty[T]()
	return stored, kube.Get(ctx, t.rest, known.GetNamespace(), known.GetName(), stored)
}

// end ends the span of a call. It records only the reason of an error: the message may repeat what a client
// sent.
func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, string(apierrors.ReasonForError(err)))
	}
	span.End()
}

// explain translates an error of the API server for a client, which does not know the API server. A problem stays
// unchanged.
func explain(noun string, err error) error {
	var known *problem.Problem
	switch {
	case errors.As(err, &known):
		return err
	case kube.IsNotFound(err):
		return problem.NotFound(noun)
	case apierrors.IsForbidden(err):
		// An API server that is starting does not know roles and policies for a moment.
		return problem.TryAgain("the change is not allowed, by a rule of this installation or while its API server starts",
			err)
	case kube.IsReasonRequired(err):
		return reasonRequired(noun, "reason", "")
	case kube.UnknownFields(err) != "":
		// Only the fields are logged: the API server's error quotes the whole object.
		return problem.OutdatedCRDs(errors.New(kube.UnknownFields(err)))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return problem.Internal("a rule of this installation refused the change; ask its operators", err)
	default:
		return problem.TryAgain("the change could not be stored", err)
	}
}

// reasonRequired returns an error that names the object to be muted and the member that must hold the reason. whose
// follows the member; see explainOperation.
func reasonRequired(noun, member, whose string) error {
	return problem.InvalidBody("the organization requires a reason to mute a " + noun + ": give one in " + member + whose).
		In(member).Coded(problem.CodeReasonRequired)
}
