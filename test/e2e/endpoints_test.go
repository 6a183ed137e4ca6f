package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// checkEveryEndpoint calls each endpoint once on the sample. The findings' lists and PATCHes have
// separate tests.
func checkEveryEndpoint(t *testing.T, r *run, rest *restClient) {
	t.Run("repositories and their projects", func(t *testing.T) { checkRepositories(t, rest) })
	t.Run("a finding by its path", func(t *testing.T) { checkFindingByPath(t, rest) })
	t.Run("reviews in every state", func(t *testing.T) { checkReviews(t, rest) })
	t.Run("review issues, open and resolved", func(t *testing.T) { checkReviewIssues(t, r, rest) })
	t.Run("a delivered webhook is verified", func(t *testing.T) { checkWebhook(t, r, rest) })
}

func checkRepositories(t *testing.T, rest *restClient) {
	repositories := rest.list(t, "/v2/repos", 1000)
	if len(repositories) != 1 {
		t.Fatalf("GET /v2/repos lists %d repositories; the sample has one", len(repositories))
	}
	projects, _ := repositories[0]["projects"].([]any)
	counts := map[string]float64{}
	for _, project := range projects {
		within, _ := project.(map[string]any)
		id := item(within).text("id")
		var alone item
		rest.get(t, "/v2/repos/"+repositories[0].text("id")+"/projects/"+id, &alone)
		if alone.text("id") != id || alone.text("last_scan_status") != "completed" {
			t.Errorf("project %s by its path is %q with its last scan %q", id, alone.text("id"), alone.text("last_scan_status"))
		}
		counts[id], _ = alone["findings_count"].(float64)
	}
	listed := map[string]float64{}
	for _, finding := range rest.list(t, "/v1/findings", 1000) {
		listed[finding.text("project_id")]++
	}
	if len(listed) != 2 {
		t.Errorf("findings are in the projects %v; the sample has two", listed)
	}
	harness.Same(t, "counts of the projects, compared with the list", listed, counts)
}

func checkFindingByPath(t *testing.T, rest *restClient) {
	listed := rest.list(t, "/v2/findings", 1000)[0]
	repository, _ := listed["repo"].(map[string]any)
	project, _ := listed["project"].(map[string]any)
	var alone item
	rest.get(t, "/v2/repos/"+item(repository).text("id")+"/projects/"+item(project).text("id")+"/findings/"+listed.text("id"), &alone)
	harness.Same(t, "a finding by its path, compared with the list", listed, alone)
}

func checkReviews(t *testing.T, rest *restClient) {
	states := map[string]bool{}
	for _, review := range rest.list(t, "/v1/reviews", 1000) {
		states[review.text("pr_status")] = true
	}
	for _, state := range []string{"open", "closed", "merged"} {
		if !states[state] {
			t.Errorf("no pull request is %s", state)
		}
	}
	for _, filter := range []string{"open_with_issues", "merged_with_issues", "not_reviewed", "reviewed"} {
		var page struct{ Total int }
		rest.get(t, "/v1/reviews?custom="+filter, &page)
		if page.Total == 0 {
			t.Errorf("no review is %s", filter)
		}
	}
}

func checkReviewIssues(t *testing.T, r *run, rest *restClient) {
	var issues v1alpha1.ReviewIssueList
	r.read(t, &issues, "reviewissues")
	states := map[string]bool{}
	for i := range issues.Items {
		issue := &issues.Items[i]
		var shown item
		rest.get(t, "/v2/issues/"+issue.Name, &shown)
		states[shown.text("status")] = true
		if shown.text("status") != string(issue.Status.State) || shown.text("resolved_by") != issue.Status.ResolvedBy {
			t.Errorf("%s is %q, resolved by %q, over REST, and %q, resolved by %q, by kubectl", issue.Name,
				shown.text("status"), shown.text("resolved_by"), issue.Status.State, issue.Status.ResolvedBy)
		}
	}
	if !states["open"] || !states["resolved"] {
		t.Errorf("the sample's issues are %v; want open and resolved ones", states)
	}
}

// checkWebhook verifies that the delivery that the run's receiver got, and verified with a library, is
// what was sent.
func checkWebhook(t *testing.T, r *run, rest *restClient) {
	var deliveries v1alpha1.WebhookDeliveryList
	r.read(t, &deliveries, "webhookdeliveries")
	at := slices.IndexFunc(deliveries.Items, func(d v1alpha1.WebhookDelivery) bool {
		return d.Status.Phase == v1alpha1.WebhookDeliveryDelivered
	})
	if at < 0 {
		t.Fatalf("none of the %d deliveries is delivered", len(deliveries.Items))
	}
	delivery := deliveries.Items[at]
	got := received(t, r, delivery.Name)
	for _, c := range []struct {
		reason, payload, signature, status string
	}{
		{"what was sent", got.text("payload"), got.text("webhook-signature"), "verified"},
		{"another payload", got.text("payload") + " ", got.text("webhook-signature"), "payload_mismatch"},
		{"another signature", got.text("payload"), "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "signature_mismatch"},
	} {
		var verdict item
		rest.decode(t, http.MethodPost, "/v2/webhook-deliveries/"+delivery.Name+"/verify",
			map[string]string{"payload": c.payload, "signature": c.signature}, &verdict)
		if verdict.text("status") != c.status || verdict["valid"] != (c.status == "verified") {
			t.Errorf("%s: the verdict is %v", c.reason, verdict)
		}
	}
}

// completedScans returns the deliveries of scan.completed by name.
func completedScans(t *testing.T, r *run) map[string]v1alpha1.WebhookDelivery {
	t.Helper()
	var deliveries v1alpha1.WebhookDeliveryList
	r.read(t, &deliveries, "webhookdeliveries")
	found := map[string]v1alpha1.WebhookDelivery{}
	for _, d := range deliveries.Items {
		if d.Spec.Event.Type == "scan.completed" {
			found[d.Name] = d
		}
	}
	return found
}

// received returns the line that the receiver logged about a delivery that it has verified.
func received(t *testing.T, r *run, id string) item {
	t.Helper()
	content := harness.File(t, r.path("logs", "receiver.log"))
	for line := range strings.Lines(content) {
		var got item
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("the receiver logged %q: %v", line, err)
		}
		if got.text("webhook-id") == id && got.text("msg") == "received a webhook" {
			return got
		}
	}
	t.Fatalf("the receiver has not verified %s:\n%s", id, content)
	return nil
}

// read reads a list of the sample's resources with kubectl.
func (r *run) read(t *testing.T, into any, resource string) {
	t.Helper()
	out := r.kubectl(t, "get", resource, "--namespace", r.env["FINDINGS_NAMESPACE"], "--output=json")
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("kubectl printed no list of %s: %v", resource, err)
	}
}
