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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// QuotaName is the name of the ResourceQuota in each organization's namespace that has one.
const QuotaName = "findings-quota"

const (
	countPrefix = "count/"
	groupSuffix = "." + v1alpha1.GroupName
)

// hardLimits are what the quotas come to as a ResourceQuota.
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

// setQuota makes the ResourceQuota say what the spec does, and notes what is used up. How much
// is used is counted and enforced by Kubernetes itself.
func (r *Reconciler) setQuota(ctx context.Context, s *scope) error {
	limits := hardLimits(s.Object.Spec.Quotas)
	if len(limits) == 0 {
		return r.dropQuota(ctx, s)
	}
	want := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace(),
			Name:      QuotaName,
			Labels:    map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
		},
		Spec: corev1.ResourceQuotaSpec{Hard: limits},
	}
	have := &corev1.ResourceQuota{}
	created, err := r.getOrCreate(ctx, want, have)
	if err != nil || created {
		return wrapQuota(s, err)
	}
	if !labelled(have, want.Labels) || !equality.Semantic.DeepEqual(have.Spec, want.Spec) {
		changed := have.DeepCopy()
		changed.Spec = want.Spec
		addLabels(changed, want.Labels)
		// Without the resourceVersion, which moves with each finding of an import: the spec is ours
		// alone, and whatever else becomes of it wakes us again.
		if err := r.Client.Patch(ctx, changed, client.MergeFrom(have)); err != nil {
			return wrapQuota(s, err)
		}
		have = changed
	}
	s.usedUp = usedUp(have)
	return nil
}

// dropQuota removes the ResourceQuota that an earlier spec asked for. The cache holds none but
// ours.
func (r *Reconciler) dropQuota(ctx context.Context, s *scope) error {
	have := &corev1.ResourceQuota{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace(), Name: QuotaName}, have)
	if err == nil {
		err = r.Client.Delete(ctx, have, client.Preconditions{UID: ptr.To(have.UID)})
	}
	return wrapQuota(s, client.IgnoreNotFound(err))
}

func wrapQuota(s *scope, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("resource quota %s/%s: %w", s.namespace(), QuotaName, err)
}

// usedUp names, in order, the kinds of which no more can be made.
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

// judgeQuotas says in a condition what is used up. How much of the rest is used is not
// repeated in the status: it would be written for every finding of an import.
func (s *scope) judgeQuotas() {
	list := &s.Status.Conditions
	if len(s.usedUp) == 0 {
		v1alpha1.RemoveCondition(list, v1alpha1.ConditionQuotaExceeded)
		return
	}
	v1alpha1.SetCondition(list, v1alpha1.Condition{
		Type:               v1alpha1.ConditionQuotaExceeded,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: s.Object.Generation,
		LastTransitionTime: v1alpha1.NewTime(s.Now),
		Reason:             v1alpha1.ReasonQuotaReached,
		Message: fmt.Sprintf("No more can be made of: %s. Delete what is no longer needed, have spec.retention do it, or raise spec.quotas.",
			strings.Join(s.usedUp, ", ")),
	})
}

// announceQuotas says once that something has been used up.
func (r *Reconciler) announceQuotas(s *scope) {
	before := v1alpha1.FindCondition(s.Before.Conditions, v1alpha1.ConditionQuotaExceeded)
	after := v1alpha1.FindCondition(s.Status.Conditions, v1alpha1.ConditionQuotaExceeded)
	if after != nil && (before == nil || before.Message != after.Message) {
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, v1alpha1.ReasonQuotaReached, "CountUsage", "%s",
			after.Message)
	}
}

// quotaMatters leaves out what is counted with every object that comes or goes.
var quotaMatters = watch.Updates(func(before, after *corev1.ResourceQuota) bool {
	return !equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		isManaged(before) != isManaged(after) || !slices.Equal(usedUp(before), usedUp(after))
})
