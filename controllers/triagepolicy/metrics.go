package triagepolicy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// policyMetrics holds the last observed status of each policy and sums them up at each scrape. No metric has a label
// for the policy, because the number of policies is unbounded.
type policyMetrics struct {
	policiesBy, findingsBy *prometheus.Desc

	mu       sync.Mutex
	policies map[types.NamespacedName]v1alpha1.TriagePolicyStatus
}

// theMetrics is process-wide, like the registry.
var theMetrics = newPolicyMetrics(metrics.Registry)

// theEvaluations counts how often a policy was evaluated over a finding for the counts.
var theEvaluations = promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{
	Name: "findings_triage_policy_evaluations_total",
	Help: "Evaluations of triage policies over findings, to count what the policies match.",
})

// reasons lists the reasons of the condition InForce. Each is exported even if no policy has it.
var reasons = []string{
	v1alpha1.ReasonInForce, v1alpha1.ReasonEarlierGeneration, v1alpha1.ReasonNeverMatched, v1alpha1.ReasonShadowed,
	v1alpha1.ReasonPreview, v1alpha1.ReasonNotYetValid, v1alpha1.ReasonPolicyExpired, v1alpha1.ReasonTooMany,
	v1alpha1.ReasonTooManyPolicies, v1alpha1.ReasonTooCostly, v1alpha1.ReasonNotCompiled,
}

func newPolicyMetrics(registry prometheus.Registerer) *policyMetrics {
	n := &policyMetrics{
		policiesBy: prometheus.NewDesc("findings_triage_policies",
			"Triage policies by the reason of their condition InForce.", []string{"reason"}, nil),
		findingsBy: prometheus.NewDesc("findings_triage_policy_findings",
			"Findings that triage policies match, by outcome; a finding counts once per matching policy.",
			[]string{"outcome"}, nil),
		policies: map[types.NamespacedName]v1alpha1.TriagePolicyStatus{},
	}
	registry.MustRegister(n)
	return n
}

func (n *policyMetrics) observe(name types.NamespacedName, policy *v1alpha1.TriagePolicy) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.policies[name] = *policy.Status.DeepCopy()
}

func (n *policyMetrics) forget(name types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.policies, name)
}

// Describe names the metrics.
func (n *policyMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- n.policiesBy
	out <- n.findingsBy
}

// Collect sums up the statuses.
func (n *policyMetrics) Collect(out chan<- prometheus.Metric) {
	n.mu.Lock()
	defer n.mu.Unlock()
	by := map[string]float64{}
	var applied, shadowed, overridden, failed float64
	for _, status := range n.policies {
		if in := v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionInForce); in != nil {
			by[in.Reason]++
		}
		applied, shadowed = applied+float64(status.Applied), shadowed+float64(status.Shadowed)
		overridden, failed = overridden+float64(status.Overridden), failed+float64(status.Failed)
	}
	for _, reason := range reasons {
		out <- prometheus.MustNewConstMetric(n.policiesBy, prometheus.GaugeValue, by[reason], reason)
	}
	for outcome, value := range map[string]float64{
		"applied": applied, "shadowed": shadowed, "overridden": overridden, "failed": failed,
	} {
		out <- prometheus.MustNewConstMetric(n.findingsBy, prometheus.GaugeValue, value, outcome)
	}
}
