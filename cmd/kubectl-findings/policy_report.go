package main

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// policyTestResult is what the command prints.
type policyTestResult struct {
	Policies []*policyReport `json:"policies"`
	// Gate is absent without --fail-on.
	Gate *policyGateResult `json:"gate,omitempty"`
}

// policyReport compares one policy with the cluster. Only findings that are not closed are counted.
type policyReport struct {
	Namespace string `json:"namespace"`
	Policy    string `json:"policy"`
	// Source is the file.
	Source   string                  `json:"source"`
	Mode     v1alpha1.PolicyMode     `json:"mode"`
	Priority int32                   `json:"priority"`
	Set      v1alpha1.PolicyDecision `json:"set"`
	Cluster  policyInCluster         `json:"cluster"`

	// Findings is how many findings were evaluated.
	Findings   int                           `json:"findings"`
	Matched    int                           `json:"matched"`
	Applied    int                           `json:"applied"`
	Shadowed   int                           `json:"shadowed"`
	ShadowedBy map[v1alpha1.ResourceName]int `json:"shadowedBy,omitempty"`
	Overridden int                           `json:"overridden"`
	Agreed     int                           `json:"agreed"`
	Failed     int                           `json:"failed"`
	// Failure is an example of the failures.
	Failure     *v1alpha1.PolicyFailure `json:"failure,omitempty"`
	MaxFindings int32                   `json:"maxFindings"`
	// Limit is how many findings it may match in its current state: fewer than MaxFindings once it was stopped.
	Limit int32 `json:"limit"`
	// Stopped is the reason why the policy could not come into force.
	Stopped string   `json:"stopped,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	Gained  []verdictChange `json:"gained"`
	Lost    []verdictChange `json:"lost"`
	Changed []verdictChange `json:"changed"`

	// costly means that the policy in the cluster has this expression and cannot be counted, and that this spec is not in
	// force.
	costly bool
	// mayLoseMode means that applying the file may end what the policy decides.
	mayLoseMode bool
}

// policyInCluster is the state of the policy of the same name in the cluster.
type policyInCluster struct {
	Exists     bool  `json:"exists"`
	Generation int64 `json:"generation,omitempty"`
	// InForce is the generation that is in force; 0 if there is none, for the reason in Why.
	InForce int64  `json:"inForce,omitempty"`
	Why     string `json:"why,omitempty"`
	// Applied is how many findings it currently decides about.
	Applied int `json:"applied"`
}

// verdictChange is a finding whose verdict changes: by another policy, or to another decision of the same policy.
type verdictChange struct {
	Finding  string         `json:"finding"`
	Severity v1alpha1.Level `json:"severity"`
	Title    string         `json:"title"`
	// Was and Becomes are absent if no policy decides.
	Was     *policyVerdict `json:"was,omitempty"`
	Becomes *policyVerdict `json:"becomes,omitempty"`
}

// policyVerdict is what a policy decides about a finding.
type policyVerdict struct {
	Policy     v1alpha1.ResourceName   `json:"policy"`
	UserStatus v1alpha1.PolicyStatus   `json:"userStatus"`
	Reason     v1alpha1.DecisionReason `json:"reason,omitempty"`
	Comment    string                  `json:"comment,omitempty"`
}

func shownVerdict(v *v1alpha1.FindingVerdict) *policyVerdict {
	if v == nil {
		return nil
	}
	return &policyVerdict{v.Policy, v.UserStatus, v.Reason, v.Comment}
}

func (t *trials) newReport(trial *trial) *policyReport {
	spec := &trial.filed.Spec
	r := &policyReport{
		Namespace: trial.filed.Namespace, Policy: trial.filed.Name, Source: trial.filed.source,
		Mode: cmp.Or(spec.Mode, v1alpha1.PolicyPreview), Priority: spec.Priority, Set: spec.Set, MaxFindings: spec.Limit(),
		Limit:  spec.Limit(),
		Gained: []verdictChange{}, Lost: []verdictChange{}, Changed: []verdictChange{},
		mayLoseMode: trial.filed.mayLoseMode,
	}
	if stored := t.world.policies[r.Policy]; stored != nil {
		r.Cluster = policyInCluster{Exists: true, Generation: stored.Generation}
		if in := stored.Status.InForce; in != nil {
			r.Cluster.InForce = in.Generation
		}
		same := stored.Spec
		same.By = spec.By // the API server keeps the author of an unchanged spec
		unchanged := sameSpec(&same, spec)
		if c := v1alpha1.FindCondition(stored.Status.Conditions, v1alpha1.ConditionInForce); c != nil {
			r.Cluster.Why = c.Reason
		}
		r.costly = spec.Match == stored.Spec.Match && isCostly(stored) &&
			!(unchanged && r.Cluster.InForce == stored.Generation)
		r.Limit = rules.Limit(spec, unchanged && rules.Stopped(stored))
		if stored.Status.ObservedGeneration != stored.Generation {
			r.note("the controllers have not observed the newest version in the cluster: the previous one is compared")
		}
	}
	if trial.filed.modeNote != "" {
		r.note(trial.filed.modeNote)
	}
	if r.Mode != v1alpha1.PolicyApply {
		r.note("the policy has mode Preview, which decides nothing: this is what mode Apply would do")
	}
	if rules.WindowOf(spec, t.now) == rules.NotYetValid {
		r.note("spec.validFrom is in the future: this is what the policy would do if it were valid now")
	}
	if trial.ends {
		r.note("applying the file as it is would end the policy's decisions in the cluster, so they are listed as lost")
	}
	return r
}

// isCostly reports whether the controllers gave up counting the policy's newest generation. The condition InForce may
// have another reason, such as Preview or TooMany. A policy that has just been stopped has TooMany and no count until
// its next count. So do most that earlier controllers gave up counting.
func isCostly(policy *v1alpha1.TriagePolicy) bool {
	c := v1alpha1.FindCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.ObservedGeneration != policy.Generation {
		return false
	}
	uncounted := policy.Status.InForce == nil && policy.Status.Matched == 0
	return c.Reason == v1alpha1.ReasonTooCostly || c.Reason == v1alpha1.ReasonTooMany && uncounted
}

// sameSpec reports whether both would be stored the same. Equality of apimachinery panics on times of v1alpha1.
func sameSpec(a, b *v1alpha1.TriagePolicySpec) bool {
	one, _ := json.Marshal(a)
	other, _ := json.Marshal(b)
	return bytes.Equal(one, other)
}

func (r *policyReport) note(text string) { r.Notes = append(r.Notes, text) }

// count records the policy's outcome for one finding.
func (r *policyReport) count(finding *v1alpha1.Finding, trial rules.Trial) {
	r.Findings++
	switch trial.Outcome {
	case rules.NotMatched:
		return
	case rules.Failed:
		r.Failed++
		if r.Failure == nil {
			r.Failure = &v1alpha1.PolicyFailure{
				Finding: v1alpha1.ResourceName(finding.Name), Message: rules.Failure(trial.Err),
			}
		}
		return
	case rules.Decides:
		r.Applied++
	case rules.Shadowed:
		r.Shadowed++
		if r.ShadowedBy == nil {
			r.ShadowedBy = map[v1alpha1.ResourceName]int{}
		}
		r.ShadowedBy[trial.By.Name]++
	case rules.Overridden:
		r.Overridden++
	case rules.Agreed:
		r.Agreed++
	}
	r.Matched++
}

// compare records the change for a finding that the policy decides about, before or after.
func (r *policyReport) compare(finding *v1alpha1.Finding, was, becomes *v1alpha1.FindingVerdict) {
	mine := func(v *v1alpha1.FindingVerdict) bool { return v != nil && string(v.Policy) == r.Policy }
	change := verdictChange{
		Finding: finding.Name, Severity: finding.Spec.Details.Severity, Title: finding.Spec.Details.Title,
		Was: shownVerdict(was), Becomes: shownVerdict(becomes),
	}
	if mine(was) {
		r.Cluster.Applied++
	}
	switch {
	case !mine(was) && mine(becomes):
		r.Gained = append(r.Gained, change)
	case mine(was) && !mine(becomes):
		r.Lost = append(r.Lost, change)
	case mine(was) && !findingstate.SameVerdict(was, becomes):
		r.Changed = append(r.Changed, change)
	}
}

// conclude records why the policy could not come into force, by the rules of the controllers.
func (r *policyReport) conclude(trial *trial, t *trials) {
	_, has := t.world.policies[r.Policy]
	inForce := has && r.Cluster.InForce != 0
	switch {
	case rules.WindowOf(trial.policy.Spec, t.now) == rules.Expired:
		r.Stopped = v1alpha1.ReasonPolicyExpired
	case !inForce && len(trial.others) >= rules.MaxInForce:
		r.Stopped = v1alpha1.ReasonTooManyPolicies
	case r.Matched > int(r.Limit):
		r.Stopped = v1alpha1.ReasonTooMany
	case r.costly:
		r.Stopped = v1alpha1.ReasonTooCostly
	}
	if len(r.ShadowedBy) > 0 && r.Applied == 0 {
		r.note("other policies decide about all that this one could decide about: see spec.priority")
	}
}
