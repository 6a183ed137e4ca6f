package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/triage"
	"github.com/appsec-dev/findings-operator/test/builder"
)

func TestARESTPatchShowsInTheCluster(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci-bot")
	f := o.finding(c, builder.Finding("f-1"))
	answer := decoded[shown](c.patch("/v2/findings/f-1", `{"user_status":"muted","comments":"not reachable"}`).wants(200, "a decision"))
	stored := o.stored("f-1")
	want := v1alpha1.FindingTriage{UserStatus: "muted", Comments: "not reachable", By: "apikey/ci-bot"}
	if diff := cmp.Diff(want, stored.Spec.Triage); diff != "" {
		t.Errorf("spec.triage (-want +got):\n%s", diff)
	}
	f.Spec.Triage = stored.Spec.Triage
	if diff := cmp.Diff(f.Spec, stored.Spec); diff != "" {
		t.Errorf("the patch changed more than the triage:\n%s", diff)
	}
	if answer.Comments != "not reachable" || answer.UserStatus != "muted" {
		t.Errorf("the answer shows %+v", answer)
	}
	managers := map[string]bool{}
	for _, entry := range stored.ManagedFields {
		managers[entry.Manager] = true
	}
	if !managers[v1alpha1.APIFieldManager] {
		t.Errorf("the field manager is missing: %v", managers)
	}
}

// Each patch that was acknowledged is in the finding's history, however many are sent at once.
func TestConcurrentPatchesLoseNothing(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	const patchers, each = 10, 5
	var wait sync.WaitGroup
	for p := range patchers {
		wait.Go(func() {
			for i := range each {
				comments := fmt.Sprintf("patcher %d, patch %d", p, i)
				a, err := c.try(http.MethodPatch, "/v2/findings/f-1", fmt.Sprintf(`{"comments":%q}`, comments), header("Content-Type", "application/json"))
				if err != nil {
					t.Error(err)
					return
				}
				if a.status != 200 || decoded[shown](a).Comments != comments {
					t.Errorf("%s: got %d %.200s", comments, a.status, a.body)
				}
			}
		})
	}
	wait.Wait()
	if got := o.stored("f-1").Generation; got != 1+patchers*each {
		t.Errorf("%d patches were acknowledged and %d were written", patchers*each, got-1)
	}
}

// Two people who decide about different things at the same time both get what they want.
func TestConcurrentPatchesOfStatusAndCommentsBothHold(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	for i := range 10 {
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

func TestAPatchOfAFindingThatIsGoneIs404(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	f := o.finding(c, builder.Finding("f-1"))
	if err := env.Client.Delete(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	// At once: the facade may or may not have heard of it.
	c.patch("/v1/findings/f-1", `{"user_status":"muted"}`).wantsError(404, "Resource not found", "deleted meanwhile")
}

// writer is one with the facade's rights.
func writer(t testing.TB) *triage.Writer {
	t.Helper()
	config, err := env.Facade(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := triage.NewWriter(config)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func always(*v1alpha1.Finding) error { return nil }

// What others wrote since the finding was last seen decides whether a decision changes anything.
func TestADecisionOnAnOldStateIsMadeAgainOnTheNewOne(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Finding("f-1").In(o.namespace).Build())
	old := o.stored("f-1")
	if err := o.kubectlPatch(t.Context(), "f-1", `{"spec":{"triage":{"userStatus":"muted","comments":"theirs"}}}`); err != nil {
		t.Fatal(err)
	}
	open := v1alpha1.UserStatusOpen
	written, err := writer(t).Write(t.Context(), old, always, triage.Decision{UserStatus: &open, By: "apikey/ci"})
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.FindingTriage{UserStatus: "open", Comments: "theirs", By: "apikey/ci"}
	if diff := cmp.Diff(want, written.Spec.Triage); diff != "" {
		t.Errorf("spec.triage (-want +got):\n%s", diff)
	}
}

func TestAFindingThatWasMadeAgainElsewhereIsNotTheOneThatWasMeant(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Finding("f-1").In(o.namespace).Build())
	old := o.stored("f-1")
	if err := env.Client.Delete(t.Context(), old.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	o.create(builder.Finding("f-1").In(o.namespace).Project("repo", "other").Build())
	inProj := func(f *v1alpha1.Finding) error {
		if f.Spec.ProjectRef.Name != "proj" {
			return problem.NotFound("finding")
		}
		return nil
	}
	muted := v1alpha1.UserStatusMuted
	_, err := writer(t).Write(t.Context(), old, inProj, triage.Decision{UserStatus: &muted, By: "apikey/ci"})
	if p := problem.Of(err); err == nil || p.Status != 404 {
		t.Errorf("got %v, want a 404", err)
	}
	if got := o.stored("f-1").Spec.Triage.UserStatus; got != "open" {
		t.Errorf("the other finding is now %s", got)
	}
}

func TestWhenTheTimeIsOverTheClientMayTryAgain(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Finding("f-1").In(o.namespace).Build())
	tries := 0
	// Somebody else writes between every look and every patch.
	meddle := func(*v1alpha1.Finding) error {
		tries++
		if err := o.kubectlPatch(t.Context(), "f-1", fmt.Sprintf(`{"spec":{"triage":{"comments":"%d"}}}`, tries)); err != nil {
			t.Error(err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := writer(t).Write(ctx, o.stored("f-1"), meddle, triage.Decision{UserStatus: ptr.To(v1alpha1.UserStatusMuted), By: "apikey/ci"})
	p := problem.Of(err)
	if err == nil || p.Status != 500 || !strings.HasSuffix(p.Detail, "same time; try again") || p.RetryAfter == 0 || tries < 6 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// No word of the store behind the service reaches a client.
func TestARefusalByTheClusterSaysNothingOfIt(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Finding("f-1").In(o.namespace).Build())
	muted := v1alpha1.UserStatusMuted
	anonymous, err := triage.NewWriter(rest.AnonymousClientConfig(env.Config))
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for reason, write := range map[string]func() error{
		"an author that admission refuses": func() error {
			_, err := writer(t).Write(t.Context(), o.stored("f-1"), always, triage.Decision{UserStatus: &muted, By: "somebody"})
			return err
		},
		"no rights": func() error {
			_, err := anonymous.Write(t.Context(), o.stored("f-1"), always, triage.Decision{UserStatus: &muted, By: "apikey/ci"})
			return err
		},
		"no answer": func() error {
			_, err := writer(t).Write(gone, o.stored("f-1"), always, triage.Decision{UserStatus: &muted, By: "apikey/ci"})
			return err
		},
	} {
		err := write()
		var p *problem.Problem
		if !errors.As(err, &p) || p.Status != 500 || p.Unwrap() == nil {
			t.Errorf("%s: got %v", reason, err)
			continue
		}
		for _, word := range []string{"kube", "admission", "appsec.dev", "findings.", "serviceaccount", "context", "system:"} {
			if strings.Contains(strings.ToLower(p.Detail), word) {
				t.Errorf("%s: the detail %q speaks of %q", reason, p.Detail, word)
			}
		}
	}
}
