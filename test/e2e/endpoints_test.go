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
		var shown item
		rest.get(t, "/v2/issues/"+issues.Items[i].Name, &shown)
		states[shown.text("status")] = true
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
	var verdict item
	rest.decode(t, http.MethodPost, "/v2/webhook-deliveries/"+delivery.Name+"/verify",
		map[string]string{"payload": got.text("payload"), "signature": got.text("webhook-signature")}, &verdict)
	harness.Same(t, "the verdict on what was received", "verified", verdict.text("status"))
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
