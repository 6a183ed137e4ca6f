package api_test

import (
	"bytes"
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

func TestEveryUserStatusMayFollowEveryOther(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	f := o.finding(c, builder.Finding("f-1"))
	statuses := map[string]string{"open": "open", "active": "open", "muted": "open_muted"}
	for from := range statuses {
		for to, status := range statuses {
			for _, version := range []string{"v1", "v2"} {
				path := "/" + version + "/findings/f-1"
				c.patch(path, fmt.Sprintf(`{"user_status":%q}`, from)).wants(200, "to "+from)
				got := decoded[shown](c.patch(path, fmt.Sprintf(`{"user_status":%q}`, to)).wants(200, from+" to "+to))
				if got.UserStatus != to || got.Status != status || got.ID != "f-1" {
					t.Errorf("%s: %s to %s: the answer shows %+v", version, from, to, got)
				}
				if read := decoded[shown](c.get(pathOf(f))); read.UserStatus != to || read.Status != status {
					t.Errorf("%s: %s to %s: the next read shows %+v", version, from, to, read)
				}
			}
		}
	}
}

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

func TestAClosedFindingStaysClosedWhateverPeopleDecide(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1").Closed(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), "scan-1"))
	got := decoded[shown](c.patch("/v1/findings/f-1", `{"user_status":"muted"}`).wants(200, "a decision about a closed finding"))
	if got.Status != "closed" || got.UserStatus != "muted" {
		t.Errorf("got %+v", got)
	}
}

func TestCommentsReplaceAndLeaveTheStatusAlone(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	for _, step := range []struct{ body, status, comments string }{
		{`{"user_status":"active","comments":"first"}`, "active", "first"},
		{`{"comments":"second <b>&\u2028\u0000"}`, "active", "second <b>&\u2028\u0000"},
		{`{"user_status":"muted"}`, "muted", "second <b>&\u2028\u0000"},
		{`{"comments":""}`, "muted", ""},
	} {
		got := decoded[shown](c.patch("/v2/findings/f-1", step.body).wants(200, step.body))
		stored := o.stored("f-1").Spec.Triage
		if got.UserStatus != step.status || got.Comments != step.comments ||
			string(stored.UserStatus) != step.status || stored.Comments != step.comments {
			t.Errorf("%s: the answer shows %+v, the cluster has %+v", step.body, got, stored)
		}
	}
}

func TestWhatChangesNothingIsNotWritten(t *testing.T) {
	o := newOrganization(t)
	c, second := o.key("first"), o.key("second")
	o.finding(c, builder.Finding("f-1"))
	c.patch("/v2/findings/f-1", `{"user_status":"open"}`).wants(200, "as it is from the start")
	c.patch("/v2/findings/f-1", `{"comments":""}`).wants(200, "no comments from the start")
	if got := o.stored("f-1"); got.Generation != 1 || got.Spec.Triage.By != "" {
		t.Errorf("generation %d by %q; nothing was changed", got.Generation, got.Spec.Triage.By)
	}
	c.patch("/v2/findings/f-1", `{"user_status":"muted","comments":"x"}`).wants(200, "a decision")
	before := o.stored("f-1")
	for _, body := range []string{`{"user_status":"muted"}`, `{"comments":"x"}`, `{"user_status":"muted","comments":"x"}`} {
		second.patch("/v2/findings/f-1", body).wants(200, "the same decision")
	}
	second.patch("/v1/findings/f-1", `{"user_status":"muted"}`).wants(200, "the same decision in v1")
	if after := o.stored("f-1"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("resourceVersion went from %s to %s", before.ResourceVersion, after.ResourceVersion)
	}
}

func TestABadBodyIsRefused(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	before := o.stored("f-1")
	both := []string{
		``, ` `, `null`, `[]`, `"open"`, `7`, `{}`, `{`, `{"user_status":"open"`, `{"user_status":"open"}{}`, `{"user_status":"open"}x`,
		`{"user_status":null}`, `{"user_status":1}`, `{"user_status":["open"]}`, `{"user_status":""}`, `{"user_status":"closed"}`,
		`{"user_status":"Open"}`, `{"User_Status":"open"}`, `{"user_status":"open","user_status":"muted"}`, `{"x":{"a":1,"a":2},"user_status":"open"}`,
		"{\"user_status\":\"open\",\"x\":\"\xff\"}", `{"user_status":"open","x":"\ud800"}`, `{"user_status":"muted","x":"` + strings.Repeat("a", 256<<10) + `"}`,
	}
	v2 := []string{
		`{"comments":null}`, `{"comments":1}`, `{"comments":"` + strings.Repeat("a", 10_001) + `"}`,
		`{"repo_id":"repo","project_id":"proj"}`, `{"comments":"a","repo_id":null}`, `{"comments":"a","project_id":7}`,
		`{"comments":"a","repo_id":"a\u0000"}`, `{"comments":"a","project_id":"` + strings.Repeat("a", 254) + `"}`,
	}
	for _, body := range both {
		c.patch("/v1/findings/f-1", body).wantsError(400, "Invalid request body", "v1 "+body[:min(len(body), 60)])
	}
	for _, body := range append(both, v2...) {
		c.patch("/v2/findings/f-1", body).wantsError(400, "Invalid request body", "v2 "+body[:min(len(body), 60)])
	}
	c.patch("/v1/findings/f-1", `{"comments":"x"}`).wantsError(400, "Invalid request body", "v1 has no comments")
	for _, contentType := range []string{"", "text/plain", "application/merge-patch+json", "application/json; charset=latin1"} {
		c.patch("/v1/findings/f-1", `{"user_status":"muted"}`, header("Content-Type", contentType)).
			wantsError(400, "Invalid request body", "Content-Type "+contentType)
	}
	c.patch("/v1/findings/f-1", `{"user_status":"muted"}`, header("Content-Encoding", "gzip")).wantsError(400, "Invalid request body", "a compressed body")
	c.patch("/v2/findings/f-1?repo_id=a&repo_id=b", `{"user_status":"muted"}`).wantsError(400, "Invalid query parameter", "a parameter given twice")
	if after := o.stored("f-1"); after.ResourceVersion != before.ResourceVersion {
		t.Error("a refused request wrote something")
	}
}

func TestWhatABodyMayHold(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	for reason, body := range map[string]string{
		"unknown members":              `{"user_status":"open","x":{"y":[null]},"Comments":7}`,
		"white space":                  " {\r\n\t\"user_status\" : \"open\" } \n",
		"10,000 characters":            `{"comments":"` + strings.Repeat("a", 10_000) + `"}`,
		"10,000 characters of 3 bytes": `{"comments":"` + strings.Repeat("文", 10_000) + `"}`,
		"10,000 escaped brackets":      `{"comments":"` + strings.Repeat(`\u003c`, 10_000) + `"}`,
	} {
		c.patch("/v2/findings/f-1", body).wants(200, reason)
	}
}

func TestTheIDsOfAV2PatchMustAgree(t *testing.T) {
	o, other := newOrganization(t), newOrganization(t)
	c, foreign := o.key("ci"), other.key("ci")
	o.finding(c, builder.Finding("f-1"))
	o.finding(c, builder.Finding("f-2").Project("repo-2", "proj-2"))
	other.finding(foreign, builder.Finding("f-theirs"))
	missing := c.patch("/v2/findings/none", `{"user_status":"open"}`).wantsError(404, "Resource not found", "no such finding")
	for _, test := range []struct {
		reason, path, ids string
		found             string // the finding's id; none where empty
	}{
		{"the path alone", "/v2/findings/f-1", ``, "f-1"},
		{"body ids that agree", "/v2/findings/f-1", `,"repo_id":"repo","project_id":"proj"`, "f-1"},
		{"query ids that agree", "/v2/findings/f-1?repo_id=repo&project_id=proj", ``, "f-1"},
		{"ids in both that agree", "/v2/findings/f-1?repo_id=repo&project_id=proj", `,"repo_id":"repo","project_id":"proj"`, "f-1"},
		{"the query names the finding, the path its repository", "/v2/findings/repo?finding_id=f-1", ``, "f-1"},
		{"all ids that there are", "/v2/findings/repo-2?finding_id=f-2&project_id=proj-2&repo_id=repo-2", `,"repo_id":"repo-2","project_id":"proj-2"`, "f-2"},
		{"another repository in the body", "/v2/findings/f-1", `,"repo_id":"repo-2"`, ""},
		{"another project in the body", "/v2/findings/f-1", `,"project_id":"proj-2"`, ""},
		{"another repository in the query", "/v2/findings/f-1?repo_id=repo-2", ``, ""},
		{"another project in the query", "/v2/findings/f-1?project_id=proj-2", ``, ""},
		{"query and body that differ", "/v2/findings/f-1?project_id=proj", `,"project_id":"proj-2"`, ""},
		{"a path that is not the repository", "/v2/findings/repo-2?finding_id=f-1", ``, ""},
		{"the finding in both places", "/v2/findings/f-1?finding_id=f-1", ``, ""},
		{"a finding in the query that is not there", "/v2/findings/repo?finding_id=none", ``, ""},
		{"the path names a finding, the query another", "/v2/findings/f-1?finding_id=f-2", ``, ""},
		{"an empty id is one that is not there", "/v2/findings/f-1?repo_id=", ``, ""},
		{"an empty id in the body as well", "/v2/findings/f-1", `,"project_id":""`, ""},
		{"another organization's finding", "/v2/findings/f-theirs", ``, ""},
		{"another organization's finding by all its ids", "/v2/findings/repo?finding_id=f-theirs&project_id=proj", `,"repo_id":"repo"`, ""},
	} {
		a := c.patch(test.path, `{"user_status":"active"`+test.ids+`}`)
		if test.found == "" {
			a.wants(404, test.reason)
			if !bytes.Equal(a.body, missing.body) {
				t.Errorf("%s: the body tells more than that there is none: %s", test.reason, a.body)
			}
			continue
		}
		if got := decoded[shown](a.wants(200, test.reason)); got.ID != test.found {
			t.Errorf("%s: changed %q, want %q", test.reason, got.ID, test.found)
		}
	}
	c.patch("/v1/findings/f-theirs", `{"user_status":"active"}`).wantsError(404, "Resource not found", "another organization's finding in v1")
	if got := other.stored("f-theirs").Spec.Triage.UserStatus; got != "open" {
		t.Errorf("another organization's finding is now %s", got)
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
				for {
					a, err := c.try(http.MethodPatch, "/v2/findings/f-1", fmt.Sprintf(`{"comments":%q}`, comments), header("Content-Type", "application/json"))
					if err != nil {
						t.Error(err)
						return
					}
					if a.status == 500 {
						continue // as its detail says: nothing was written, try again
					}
					if a.status != 200 || decoded[shown](a).Comments != comments {
						t.Errorf("%s: got %d %.200s", comments, a.status, a.body)
					}
					break
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

func TestAfterFiveConflictsInARowTheClientMayTryAgain(t *testing.T) {
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
	_, err := writer(t).Write(t.Context(), o.stored("f-1"), meddle, triage.Decision{UserStatus: ptr.To(v1alpha1.UserStatusMuted), By: "apikey/ci"})
	p := problem.Of(err)
	if err == nil || p.Status != 500 || !strings.Contains(p.Detail, "try again") || tries != 5 {
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
