package organization

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// quotaName is the name of the ResourceQuota in each organization's namespace that has one.
const quotaName = "findings-quota"

const (
	countPrefix = "count/"
	groupSuffix = "." + v1alpha1.GroupName
)

// hardLimits converts the quotas to the hard limits of a ResourceQuota.
func hardLimits(quotas *v1alpha1.OrganizationQuotas) corev1.ResourceList {
	if quotas == nil {
		return nil
	}
	limits := corev1.ResourceList{}
	for plural, limit := range map[string]*int64{
		"findings":          quotas.Findings,
		"repositories":      quotas.Repositories,
		"projects":          quotas.Projects,
		"scans":             quotas.Scans,
		"reviews":           quotas.Reviews,
		"reviewissues":      quotas.ReviewIssues,
		"triageoperations":  quotas.TriageOperations,
		"triagepolicies":    quotas.TriagePolicies,
		"apikeys":           quotas.APIKeys,
		"webhookendpoints":  quotas.WebhookEndpoints,
		"webhookdeliveries": quotas.WebhookDeliveries,
	} {
		if limit != nil {
			limits[corev1.ResourceName(countPrefix+plural+groupSuffix)] = *resource.NewQuantity(*limit, resource.DecimalSI)
		}
	}
	return limits
}

// setQuota updates the ResourceQuota, and records which quotas are exhausted. Kubernetes itself counts the usage and
// enforces the limits.
func (r *Reconciler) setQuota(ctx context.Context, s *scope) error {
	limits := hardLimits(s.Object.Spec.Quotas)
	if len(limits) == 0 {
		return r.dropQuota(ctx, s)
	}
	want := &corev1.ResourceQuota{
		ObjectMeta: managedMeta(s.namespace(), quotaName),
		Spec:       corev1.ResourceQuotaSpec{Hard: limits},
	}
	have := &corev1.ResourceQuota{}
	created, err := r.getOrCreate(ctx, want, have)
	if err != nil || created {
		return wrapQuota(s, err)
	}
	if !isManaged(have) || !equality.Semantic.DeepEqual(have.Spec, want.Spec) {
		changed := have.DeepCopy()
		changed.Spec = want.Spec
		metav1.SetMetaDataLabel(&changed.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)
		// Patch without the resourceVersion, which changes with each finding of an import. Only we write the spec, and the
		// watch reports any other change.
		if err := r.Client.Patch(ctx, changed, client.MergeFrom(have)); err != nil {
			return wrapQuota(s, err)
		}
		have = changed
	}
	s.usedUp = usedUp(have)
	return nil
}

// dropQuota removes the ResourceQuota of an earlier spec. The cache holds only our own.
func (r *Reconciler) dropQuota(ctx context.Context, s *scope) error {
	have := &corev1.ResourceQuota{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace(), Name: quotaName}, have)
	if err == nil {
		err = r.Client.Delete(ctx, have, client.Preconditions{UID: new(have.UID)})
	}
	return wrapQuota(s, kube.IgnoreNotFound(err))
}

func wrapQuota(s *scope, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("resource quota %s/%s: %w", s.namespace(), quotaName, err)
}

// usedUp returns the plural names of the kinds whose quota is exhausted, sorted.
func usedUp(quota *corev1.ResourceQuota) []string {
	var out []string
	for name, limit := range quota.Spec.Hard {
		if used, known := quota.Status.Used[name]; known && used.Cmp(limit) >= 0 {
			out = append(out, strings.TrimSuffix(strings.TrimPrefix(string(name), countPrefix), groupSuffix))
		}
	}
	slices.Sort(out)
	return out
}

// judgeQuotas sets the condition for exhausted quotas. The status does not contain the usage, which would be written
// for every finding of an import.
func (s *scope) judgeQuotas() {
	if len(s.usedUp) == 0 {
		v1alpha1.RemoveCondition(&s.Status.Conditions, v1alpha1.ConditionQuotaExceeded)
		return
	}
	consequence := ""
	if slices.Contains(s.usedUp, "webhookdeliveries") {
		consequence = " Until a webhook delivery can be created, the status of objects that owe too many does not change."
	}
	s.Condition(v1alpha1.ConditionQuotaExceeded, true, v1alpha1.ReasonQuotaReached,
		fmt.Sprintf("The quota is used up for: %s. Delete objects that are no longer needed, set spec.retention to remove them, or raise spec.quotas.",
			strings.Join(s.usedUp, ", "))+consequence)
}

// announceQuotas sends an Event when the set of exhausted quotas changes.
func (r *Reconciler) announceQuotas(s *scope) {
	before := v1alpha1.FindCondition(s.Before.Conditions, v1alpha1.ConditionQuotaExceeded)
	after := v1alpha1.FindCondition(s.Status.Conditions, v1alpha1.ConditionQuotaExceeded)
	if after != nil && (before == nil || before.Message != after.Message) {
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, v1alpha1.ReasonQuotaReached, "CountUsage", "%s",
			after.Message)
	}
}

// quotaMatters ignores updates of the usage that neither exhaust nor free a quota.
var quotaMatters = watch.Updates(func(before, after *corev1.ResourceQuota) bool {
	return !equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		isManaged(before) != isManaged(after) || !slices.Equal(usedUp(before), usedUp(after))
})
