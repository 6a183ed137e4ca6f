package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// known holds the member of the full shape about stale decisions.
type known struct {
	DecisionStale string `json:"decision_stale"`
}

// Repeating a decision writes only if the decision is stale.
func TestADecisionIsRepeatedWhereItIsStale(t *testing.T) {
	o := newOrganization(t)
	first, second := o.key("first"), o.key("second")
	o.finding(first, builder.Finding("f-1"))
	first.patch("/v2/findings/f-1", `{"user_status":"muted"}`).wants(200, "a decision")
	decided := o.stored("f-1")
	signed := slices.ContainsFunc(decided.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == v1alpha1.APIFieldManager
	})
	if !signed {
		t.Errorf("the field manager is missing: %v", decided.ManagedFields)
	}
	second.patch("/v2/findings/f-1", `{"user_status":"muted"}`).wants(200, "the same about the same facts")
	if got := o.stored("f-1"); got.ResourceVersion != decided.ResourceVersion {
		t.Errorf("that wrote %+v", got.Spec.Triage)
	}
	o.kubectlPatch("f-1", `{"spec":{"details":{"severity":"high"}}}`)
	o.lists(second, "/v2/findings?severity=high", "f-1")
	if stale := o.stored("f-1"); !findingstate.Stale(stale) {
		t.Errorf("other facts make it stale: %+v", stale.Spec.Triage)
	}
	harness.Same(t, "decision_stale", "severity low, now high", decoded[known](second.get("/v2/findings/f-1")).DecisionStale)
	second.patch("/v2/findings/f-1", `{"comments":"why"}`).wants(200, "a comment alone")
	if stale := o.stored("f-1"); !findingstate.Stale(stale) {
		t.Errorf("a comment alone repeats nothing: %+v", stale.Spec.Triage)
	}
	second.patch("/v1/findings/f-1", `{"user_status":"muted"}`).wants(200, "the same about other facts")
	want := v1alpha1.FindingTriage{UserStatus: "muted", Comments: "why", By: "apikey/second", Basis: "rated=high"}
	harness.Same(t, "spec.triage", want, o.stored("f-1").Spec.Triage)
	harness.Same(t, "decision_stale after the decision was repeated", "", decoded[known](second.get("/v2/findings/f-1")).DecisionStale)
	second.patch("/v2/findings/f-1", `{"user_status":"open"}`).wants(200, "no decision")
	want = v1alpha1.FindingTriage{UserStatus: "open", Comments: "why", By: "apikey/second"}
	harness.Same(t, "spec.triage", want, o.stored("f-1").Spec.Triage)
}

// A decision rests on the facts that were shown when it was sent, not on what a scan has written
// since.
func TestADecisionRestsOnWhatWasSeen(t *testing.T) {
	seen := newOrganization(t).changedSince(`{"spec":{"details":{"severity":"high"}}}`)
	decision := decides(v1alpha1.UserStatusMuted)
	decision.Basis = findingstate.Basis(&seen.Object.Spec)
	for range 2 {
		written, err := facadeClient(t).Findings.Triage(t.Context(), seen, always, decision)
		harness.Must(t, err)
		harness.Same(t, "stale because of", "severity low, now high", findingstate.WhyStale(written))
	}
}

// If two people change different members concurrently, both changes are stored.
func TestConcurrentPatchesOfStatusAndCommentsBothHold(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	for i := range 3 {
		id := fmt.Sprintf("f-%d", i)
		o.finding(c, builder.Finding(id))
		var wait sync.WaitGroup
		for _, body := range []string{`{"user_status":"muted"}`, `{"comments":"why"}`} {
			wait.Go(func() {
				a, err := c.try(http.MethodPatch, "/v2/findings/"+id, body, header("Content-Type", "application/json"))
				if err != nil || a.status != 200 {
					t.Errorf("%s: %d, %v", body, a.status, err)
				}
			})
		}
		wait.Wait()
		if got := o.stored(id).Spec.Triage; got.UserStatus != "muted" || got.Comments != "why" {
			t.Errorf("%s: got %+v", id, got)
		}
	}
}

// facadeClient returns a client with the facade's rights.
func facadeClient(t testing.TB) *cluster.Client {
	t.Helper()
	config, err := env.Facade(t.Context())
	harness.Must(t, err)
	c, err := cluster.NewClient(config)
	harness.Must(t, err)
	return c
}

// knownFinding is a finding as a caller of the facade's client knows it.
type knownFinding = cluster.Known[*v1alpha1.Finding]

func asSeen(finding *v1alpha1.Finding) knownFinding {
	return knownFinding{Object: finding, Standing: findingstate.StandingOf(finding)}
}

// changedSince creates the finding f-1, changes it, and returns it as it was before.
func (o *organization) changedSince(patch string) knownFinding {
	o.t.Helper()
	o.create(builder.Finding("f-1").In(o.namespace).Build())
	seen := asSeen(o.stored("f-1"))
	o.kubectlPatch("f-1", patch)
	return seen
}

func always(knownFinding) error { return nil }

// decides returns a key's decision for a user status.
func decides(status v1alpha1.UserStatus) cluster.Decision {
	return cluster.Decision{Decision: findingstate.Decision{UserStatus: &status}, By: "apikey/ci"}
}

// Whether a decision changes anything is decided by the finding's current state, including writes
// since it was last seen.
func TestADecisionOnAnOldStateIsMadeAgainOnTheNewOne(t *testing.T) {
	old := newOrganization(t).changedSince(`{"spec":{"triage":{"userStatus":"muted","comments":"theirs"}}}`)
	written, err := facadeClient(t).Findings.Triage(t.Context(), old, always, decides(v1alpha1.UserStatusOpen))
	harness.Must(t, err)
	want := v1alpha1.FindingTriage{UserStatus: "open", Comments: "theirs", By: "apikey/ci"}
	harness.Same(t, "spec.triage", want, written.Spec.Triage)
}

// Whether a decision is possible is decided by the finding's current state too: another replica may have stored what it
// builds on.
func TestADecisionThatAnOldStateRefusesIsJudgedByTheNewOne(t *testing.T) {
	old := newOrganization(t).changedSince(`{"spec":{"triage":{"userStatus":"muted"}}}`)
	onlyMuted := func(f knownFinding) error {
		if f.Standing.UserStatus != v1alpha1.UserStatusMuted {
			return problem.InvalidBody("reason belongs to a decision")
		}
		return nil
	}
	reason := v1alpha1.DecisionFalsePositive
	decision := cluster.Decision{Decision: findingstate.Decision{Reason: &reason}, By: "apikey/ci"}
	written, err := facadeClient(t).Findings.Triage(t.Context(), old, onlyMuted, decision)
	if err != nil || written.Spec.Triage.Reason != reason {
		t.Fatalf("got %v", err)
	}
}

// Decisions about the issue of a review work in the same way, without a basis.
func TestADecisionAboutAnIssueOnAnOldStateIsMadeAgainOnTheNewOne(t *testing.T) {
	o := newOrganization(t)
	issue := builder.ReviewIssue("i-1").In(o.namespace).Build()
	o.create(issue)
	old := issue.DeepCopy()
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted","comments":"theirs"}}}`)
	known := cluster.Known[*v1alpha1.ReviewIssue]{Object: old, Standing: reviewstate.StandingOf(old)}
	whatever := func(cluster.Known[*v1alpha1.ReviewIssue]) error { return nil }
	for _, status := range []v1alpha1.UserStatus{v1alpha1.UserStatusOpen, v1alpha1.UserStatusActive} { // seen as open
		written, err := facadeClient(t).ReviewIssues.Triage(t.Context(), known, whatever, decides(status))
		harness.Must(t, err)
		want := v1alpha1.ReviewIssueTriage{UserStatus: status, Comments: "theirs", By: "apikey/ci"}
		harness.Same(t, fmt.Sprintf("%s: spec.triage", status), want, written.Spec.Triage)
	}
}

func TestAFindingThatWasMadeAgainElsewhereIsNotTheOneThatWasMeant(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Finding("f-1").In(o.namespace).Build())
	old := o.stored("f-1")
	harness.Must(t, env.Client.Delete(t.Context(), old.DeepCopy()))
	o.create(builder.Finding("f-1").In(o.namespace).Project("repo", "other").Build())
	inProj := func(f knownFinding) error {
		if f.Object.Spec.ProjectRef.Name != "proj" {
			return problem.NotFound("finding")
		}
		return nil
	}
	_, err := facadeClient(t).Findings.Triage(t.Context(), asSeen(old), inProj, decides(v1alpha1.UserStatusMuted))
	if p := problem.Of(err); err == nil || p.Status != 404 {
		t.Errorf("got %v, want a 404", err)
	}
	harness.Same(t, "the other finding's user status", v1alpha1.UserStatusOpen, o.stored("f-1").Spec.Triage.UserStatus)
}

func TestAWriteThatRunsOutOfTimeAmongOthersMayBeTriedAgain(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Finding("f-1").In(o.namespace).Build())
	ctx, timeOver := context.WithCancel(t.Context())
	defer timeOver()
	tries := 0
	// Another writer changes the finding between every read and every patch.
	meddle := func(knownFinding) error {
		if tries++; tries == 3 {
			timeOver()
		}
		patch := fmt.Sprintf(`{"spec":{"triage":{"comments":"%d"}}}`, tries)
		o.kubectlPatch("f-1", patch)
		return nil
	}
	_, err := facadeClient(t).Findings.Triage(ctx, asSeen(o.stored("f-1")), meddle, decides(v1alpha1.UserStatusMuted))
	p := problem.Of(err)
	if tries != 3 || p.Status != 500 || !strings.HasSuffix(p.Detail, "same time; try again") || p.RetryAfter == 0 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// No internals of the cluster reach a client.
func TestARefusalByTheClusterSaysNothingOfIt(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Finding("f-1").In(o.namespace).Build())
	anonymous, err := cluster.NewClient(rest.AnonymousClientConfig(env.Config))
	harness.Must(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	by := func(author string) cluster.Decision {
		decision := decides(v1alpha1.UserStatusMuted)
		decision.By = author
		return decision
	}
	for reason, test := range map[string]struct {
		ctx      context.Context
		client   *cluster.Client
		decision cluster.Decision
	}{
		"an author that admission refuses": {t.Context(), facadeClient(t), by("somebody")},
		"no rights":                        {t.Context(), anonymous, by("apikey/ci")},
		"no answer":                        {gone, facadeClient(t), by("apikey/ci")},
	} {
		_, err := test.client.Findings.Triage(test.ctx, asSeen(o.stored("f-1")), always, test.decision)
		p, is := errors.AsType[*problem.Problem](err)
		if !is || p.Status != 500 || p.Unwrap() == nil {
			t.Errorf("%s: got %v", reason, err)
			continue
		}
		harness.Lacks(t, reason+": the detail", strings.ToLower(p.Detail),
			"kube", "admission", "appsec.dev", "findings.", "serviceaccount", "context", "system:")
	}
}
