package main

import (
	"context"
	"encoding/json"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// accepted checks by a dry run that the API server accepts the policies. Users who may not write policies may still
// test them: the report then notes that this was not checked. A policy that a quota or a rule of the cluster forbids is
// refused, as it would be when applied.
func (t *trials) accepted(ctx context.Context, s *session) (errs []error) {
	for _, trial := range t.all {
		switch err := s.dryWrite(ctx, trial.filed); {
		case err == nil:
		case apierrors.IsForbidden(err) && !kube.IsQuotaExceeded(err) && !s.mayWritePolicies(ctx):
			trial.report.note("you may not write policies here, so the API server was not asked whether it accepts this one: " +
				printable(err.Error()))
		default:
			errs = append(errs, fmt.Errorf("%s: the API server refuses policy %s: %w", trial.filed.source, trial.filed.Name, err))
		}
	}
	return errs
}

// mayWritePolicies reports whether the user has every right that writing policies requires.
func (s *session) mayWritePolicies(ctx context.Context) bool {
	for _, right := range []struct{ verb, kind string }{
		{"create", "TriagePolicy"}, {"patch", "TriagePolicy"}, {"triage", "Finding"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: s.namespace, Verb: right.verb, Group: v1alpha1.GroupName, Resource: kube.Resource(right.kind),
			},
		}}
		if err := s.create(ctx, review); err != nil || !review.Status.Allowed {
			return false
		}
	}
	return true
}

// dryWrite checks whether the API server accepts the policy exactly as the file declares it. Unlike kubectl apply, it
// keeps none of the stored labels, annotations and spec.
func (s *session) dryWrite(ctx context.Context, policy *filedPolicy) error {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": policy.declared}}
	object.SetGroupVersionKind(policyKind)
	object.SetName(policy.Name)
	object.SetNamespace(policy.Namespace)
	object.SetLabels(policy.Labels)
	object.SetAnnotations(policy.Annotations)
	// The JSON patch operation add replaces what exists.
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/metadata/labels", "value": policy.Labels},
		{"op": "add", "path": "/metadata/annotations", "value": policy.Annotations},
		{"op": "add", "path": "/spec", "value": policy.declared},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = s.client.Patch(ctx, object.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), client.DryRunAll, strict,
		client.FieldOwner(fieldManager))
	if kube.IsNotFound(err) {
		err = s.client.Create(ctx, object, client.DryRunAll, strict, client.FieldOwner(fieldManager))
	}
	return s.explainUnknownFields(err)
}
