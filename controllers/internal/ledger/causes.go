package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// cause is the object that caused a transition, together with many others.
type cause struct{ kind, name string }

func (c cause) String() string { return c.kind + "/" + c.name }

// The kinds of causes.
const (
	scanKind      = "Scan"
	operationKind = "TriageOperation"
	policyKind    = "TriagePolicy"
)

// causeOf returns the cause of the transition: a scan, an operation or a policy. A decision is caused by its author,
// whichever scan came last. A verdict is caused by the scan whose change made the policy decide, if there is one.
func causeOf(t v1alpha1.Transition) (cause, bool) {
	switch {
	case t.Type == v1alpha1.TransitionTriaged:
		operation, is := strings.CutPrefix(t.By, v1alpha1.OperationAuthorPrefix)
		return cause{operationKind, operation}, is
	case t.Type == v1alpha1.TransitionJudged && t.Scan == "":
		policy, is := strings.CutPrefix(t.By, v1alpha1.PolicyAuthorPrefix)
		return cause{policyKind, policy}, is
	default:
		return cause{scanKind, t.Scan}, t.Scan != ""
	}
}

// causesOf returns the causes of the transitions, without duplicates.
func causesOf(list []v1alpha1.Transition) []cause {
	var out []cause
	for _, t := range list {
		if c, is := causeOf(t); is && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// goesInPage reports whether the endpoint gets the transition as part of a page of its cause.
func (l *Ledger) goesInPage(ctx context.Context, object client.Object, t v1alpha1.Transition,
	endpoint *v1alpha1.WebhookEndpoint) (bool, error) {
	c, is := causeOf(t)
	if !is || !l.kind.paged || endpoint.Spec.Batch != v1alpha1.WebhookBatchPerScan {
		return false, nil
	}
	switch {
	case c.kind == policyKind:
		return true, nil // pages are made by the policy's name, even if it was deleted
	case !kube.IsName(c.name):
		return false, nil // the ID of a scan may be any text, and no object has this name
	}
	// The watch of causes may lag behind that of findings, so ask the API server before concluding that a cause does not
	// exist or is not committed.
	key, found := client.ObjectKey{Namespace: object.GetNamespace(), Name: c.name}, c.empty()
	err := l.client.Get(ctx, key, found, client.UnsafeDisableDeepCopy)
	if kube.IsNotFound(err) || err == nil && !isCommitted(found) {
		found = c.empty()
		err = kube.Get(ctx, l.own, key.Namespace, key.Name, found)
	}
	switch {
	case kube.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look up %s %q: %w", c.kind, c.name, err)
	}
	return isCommitted(found), nil
}

// isCommitted reports whether the cause may have changed findings. An operation that nobody has committed has changed
// none: changes with its name come from an earlier operation.
func isCommitted(cause client.Object) bool {
	operation, is := cause.(*v1alpha1.TriageOperation)
	return !is || operation.Spec.Commit
}

func (c cause) empty() client.Object {
	if c.kind == operationKind {
		return &v1alpha1.TriageOperation{}
	}
	return &v1alpha1.Scan{}
}
