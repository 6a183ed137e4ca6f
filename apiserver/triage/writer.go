package triage

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const (
	// attempts is how often a decision is tried when others write the finding at the same time.
	attempts = 5
	// writeTimeout bounds all calls of a decision together.
	writeTimeout = 15 * time.Second

	resource = "findings"
)

// Writer writes decisions. It is safe for concurrent use.
type Writer struct {
	client rest.Interface
}

// NewWriter returns a writer to the API server that config names.
func NewWriter(config *rest.Config) (*Writer, error) {
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	return &Writer{client: client}, nil
}

// Write turns a finding into what was decided and returns it as the API server now has it.
//
// known is the finding as the caller last saw it. The API server says whether that is still
// so, even where the decision changes nothing. If it is not, Write reads the finding and
// decides again, a bounded number of times. check is asked before each try, and its error ends
// the matter: a finding that was deleted and made again under its name may be in another
// project. An error about the state that the caller knew is asked again of the stored one.
//
// Its errors are problems. A decision whose outcome is not known may be written again: that
// changes nothing a second time.
func (w *Writer) Write(ctx context.Context, known *v1alpha1.Finding, check func(*v1alpha1.Finding) error, decision Decision) (*v1alpha1.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	finding := known
	for attempt := range attempts {
		err := check(finding)
		if err != nil && (attempt > 0 || !problem.IsPreconditionFailed(err)) {
			return nil, err
		}
		if err == nil {
			written, err := w.patch(ctx, finding, decision, attempt+1)
			if err == nil {
				return written, nil
			}
			if !apierrors.IsConflict(err) {
				return nil, explain(err)
			}
		}
		if finding, err = w.get(ctx, known.Namespace, known.Name); err != nil {
			return nil, explain(err)
		}
	}
	return nil, problem.Internal("others are changing the finding at the same time; try again",
		fmt.Errorf("finding %s/%s: %d conflicts in a row", known.Namespace, known.Name, attempts))
}

func (w *Writer) patch(ctx context.Context, finding *v1alpha1.Finding, decision Decision, attempt int) (written *v1alpha1.Finding, err error) {
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
	return written, w.client.Patch(types.MergePatchType).
		Namespace(finding.Namespace).Resource(resource).Name(finding.Name).
		Param("fieldManager", v1alpha1.APIFieldManager).
		Body(patch).
		Do(ctx).Into(written)
}

func (w *Writer) get(ctx context.Context, namespace, name string) (finding *v1alpha1.Finding, err error) {
	ctx, span := tracing.Start(ctx, "kubernetes: get finding", trace.WithSpanKind(trace.SpanKindClient))
	defer func() { end(span, err) }()
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	finding = &v1alpha1.Finding{}
	return finding, w.client.Get().
		Namespace(namespace).Resource(resource).Name(name).
		Do(ctx).Into(finding)
}

// end ends the span of a call. Of an error it takes the reason alone: the message may repeat
// what a client sent.
func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, string(apierrors.ReasonForError(err)))
	}
	span.End()
}

// explain says what an error of the API server means to a client, which knows nothing of it.
func explain(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return problem.NotFound("finding")
	case apierrors.IsForbidden(err):
		// A starting API server knows neither roles nor policies for a moment.
		return problem.Internal("the change is not allowed, by a rule of this installation or while its API server starts; try again", err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return problem.Internal("a rule of this installation refused the change; ask its operators", err)
	default:
		return problem.Internal("the change could not be stored; try again", err)
	}
}
