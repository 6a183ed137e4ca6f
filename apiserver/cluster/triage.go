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

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Patience is how long a decision is tried for, its wait for other writers included.
const Patience = 30 * time.Second

const resource = "findings"

// While writers in other replicas are faster, a writer tries again after up to two tries' time. A replica
// whose writers have all had a finding leaves it to others for longer than that and a try, so that they
// get it.
const (
	longestBackoff = 2
	shortestPause  = 2
	longestPause   = 4
)

// Turn waits until no other caller of this Client has the finding. The caller calls done once it has
// written and its readers see it; then the next one has it.
//
// Without it writers of one finding in one process would refuse one another's patches.
func (c *Client) Turn(ctx context.Context, finding types.NamespacedName) (done func(), err error) {
	done, err = c.lines.enter(ctx, finding)
	if err != nil {
		return nil, contended(finding, err)
	}
	return done, nil
}

// Triage turns a finding into what was decided and returns it as that write has made it.
//
// known is the finding as the caller last saw it. The API server says whether that is still
// so, even where the decision changes nothing. If it is not, Triage reads the finding and
// decides again, for as long as Patience and ctx allow. check is asked before each try, and its error
// ends the matter: a finding that was deleted and made again under its name may be in another
// project. An error about the state that the caller knew is asked again of the stored one.
//
// A decision whose outcome is not known may be written again: that changes nothing a second time.
func (c *Client) Triage(ctx context.Context, known Known, check func(*v1alpha1.Finding) error,
	decision Decision) (*v1alpha1.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	finding, begun := known, time.Now()
	for attempt := 1; ; attempt++ {
		err := check(finding.Finding)
		if err != nil && (attempt > 1 || !problem.IsPreconditionFailed(err)) {
			return nil, err
		}
		if err == nil {
			written, err := c.patch(ctx, finding, decision, attempt)
			if err == nil {
				c.pace.set(time.Since(begun))
				return written, nil
			}
			if !apierrors.IsConflict(err) {
				return nil, c.explain(ctx, finding.Finding, attempt, err)
			}
		}
		if err := c.backOff(ctx, attempt); err != nil {
			return nil, contended(types.NamespacedName{Namespace: known.Namespace, Name: known.Name}, err)
		}
		begun = time.Now()
		current, err := c.get(ctx, known.Namespace, known.Name)
		if err != nil {
			return nil, c.explain(ctx, known.Finding, attempt, err)
		}
		finding = knownOf(current)
	}
}

// backOff waits after a conflict. The first is mostly due to the controllers, which record what the last
// patch has changed: they do not go on.
func (c *Client) backOff(ctx context.Context, attempt int) error {
	if attempt == 1 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(c.pace.between(0, longestBackoff))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// explain is for a call that failed. Where conflicts came before it and the time was over, those are why.
func (c *Client) explain(ctx context.Context, finding metav1.Object, attempt int, err error) error {
	if attempt > 1 && ctx.Err() != nil {
		return contended(types.NamespacedName{Namespace: finding.GetNamespace(), Name: finding.GetName()},
			fmt.Errorf("%d tries: %w", attempt, err))
	}
	return explain(err)
}

func contended(finding types.NamespacedName, err error) error {
	return problem.TryAgain("others are changing the finding at the same time", fmt.Errorf("finding %s: %w", finding, err))
}

func (c *Client) patch(ctx context.Context, finding Known, decision Decision,
	attempt int) (written *v1alpha1.Finding, err error) {
	ctx, span := tracing.Start(ctx, "kubernetes: patch finding",
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.Int("findings.attempt", attempt)))
	defer func() { end(span, err) }()
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	patch, err := mergePatch(finding, decision)
	if err != nil {
		return nil, err
	}
	written = &v1alpha1.Finding{}
	return written, c.rest.Patch(types.MergePatchType).
		Namespace(finding.Namespace).Resource(resource).Name(finding.Name).
		Param("fieldManager", v1alpha1.APIFieldManager).
		Body(patch).
		Do(ctx).Into(written)
}

func (c *Client) get(ctx context.Context, namespace, name string) (finding *v1alpha1.Finding, err error) {
	ctx, span := tracing.Start(ctx, "kubernetes: get finding", trace.WithSpanKind(trace.SpanKindClient))
	defer func() { end(span, err) }()
	finding = &v1alpha1.Finding{}
	return finding, kube.Get(ctx, c.rest, namespace, name, finding)
}

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
func explain(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return problem.NotFound("finding")
	case apierrors.IsForbidden(err):
		// A starting API server knows neither roles nor policies for a moment.
		return problem.TryAgain("the change is not allowed, by a rule of this installation or while its API server starts",
			err)
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), reasonsPolicy):
		return reasonRequired("reason")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return problem.Internal("a rule of this installation refused the change; ask its operators", err)
	default:
		return problem.TryAgain("the change could not be stored", err)
	}
}

// reasonRequired names the member that is to hold the reason.
func reasonRequired(member string) error {
	return problem.InvalidBody("the organization requires a reason to mute a finding: give one in " + member).
		In(member).Coded(problem.CodeReasonRequired)
}
