package readmodel

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// newReviewModel returns a model with a repository, a review and two issues that its one reviewed commit shows.
func newReviewModel(t *testing.T) *Model {
	t.Helper()
	m, _ := newAcme(t)
	feed(t, m, repositories, repository("shop", 2))
	feed(t, m, reviews, review("r-1", 3))
	show(t, m, reviewIssues, issue("i-1", 4), issue("i-2", 5))
	return m
}

func shownIssue(t *testing.T, m *Model, id string) shownRow {
	t.Helper()
	issue, ok := m.ReviewIssue(acme, id)
	if !ok {
		t.Fatalf("issue %s is missing", id)
	}
	return decode(t, issue.JSON())
}

func shownReview(t *testing.T, m *Model) shownRow {
	t.Helper()
	page, err := m.ListReviews(acme, ReviewQuery{Request: first(10)})
	if err != nil || len(page.Items) != 1 || page.Total != 1 {
		t.Fatalf("one review: got %d of %d, %v", len(page.Items), page.Total, err)
	}
	return decode(t, jsonOf(page.Items[0]))
}

func expectMembers(t *testing.T, reason string, row shownRow, want map[string]any) {
	t.Helper()
	got := map[string]any{}
	for member := range want {
		got[member] = row[member]
	}
	harness.Same(t, reason, want, got)
}

// decidedIssue returns i-1 as the API server returns it for a patch of its triage.
func decidedIssue(rv int, status v1alpha1.UserStatus) *v1alpha1.ReviewIssue {
	decided := issue("i-1", rv)
	decided.Generation, decided.Spec.Triage.UserStatus = 2, status
	return decided
}

// A client that has received the response to a patch reads the result from then on, in the issue and in its
// review, whatever was being rendered.
func TestAPatchedIssueIsShownAtOnce(t *testing.T) {
	m := newReviewModel(t)
	m.mu.Lock()
	m.enqueue(rejoin{namespace: acmeNamespace, rows: reviewIssues, by: byName, name: "i-1"})
	m.enqueue(rejoin{namespace: acmeNamespace, rows: reviews, by: byName, name: "r-1"})
	m.mu.Unlock()
	rows, _, _ := m.dequeue()
	old := m.prepare(rows)
	for i := range old {
		harness.Must(t, old[i].render())
	}
	answer, err := m.ApplyIssue(decidedIssue(6, v1alpha1.UserStatusMuted))
	harness.Must(t, err)
	expect := func(reason string) {
		t.Helper()
		expectMembers(t, reason, shownIssue(t, m, "i-1"), map[string]any{"user_status": "muted", "status": "open"})
		review, _ := m.Review(acme, "r-1")
		expectMembers(t, reason, decode(t, review.JSON()), map[string]any{"open_muted_count": 1.0, "open_issue_count": 2.0})
	}
	expect("at once")
	m.finish(old)
	m.publishAll()
	expect("once what was being rendered is done")
	settle(m)
	expect("in the end")
	held, _ := m.ReviewIssue(acme, "i-1")
	harness.Same(t, "the answer's tag", held.Tag(), answer.Tag())
}

// The result of a patch may arrive after later writes by others: the response shows the result, and the held
// state stays.
func TestALateResultOfAPatchOfAnIssue(t *testing.T) {
	m := newReviewModel(t)
	feed(t, m, reviewIssues, decidedIssue(7, v1alpha1.UserStatusActive)) // without a time in managedFields
	settle(m)
	patched := decidedIssue(6, v1alpha1.UserStatusMuted)
	patched.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "findings-api", Time: new(metav1.NewTime(epoch.Add(time.Second)))}}
	answer, err := m.ApplyIssue(patched)
	harness.Must(t, err)
	const at = "2026-03-01T12:00:01Z"
	expectMembers(t, "the answer", decode(t, answer.JSON()), map[string]any{"user_status": "muted", "updated_at": at})
	expectMembers(t, "what is held", shownIssue(t, m, "i-1"), map[string]any{"user_status": "active", "updated_at": at})
	stranger := decidedIssue(8, v1alpha1.UserStatusMuted)
	stranger.Namespace = "org-nobodys"
	if _, err := m.ApplyIssue(stranger); !errors.Is(err, ErrNoOrganization) {
		t.Errorf("an issue of nobody's: %v", err)
	}
}

func TestAnIssueIsShownBeforeTheWatchReportsIt(t *testing.T) {
	m := newReviewModel(t)
	_, err := m.ApplyIssue(issue("i-3", 6))
	harness.Must(t, err)
	expectMembers(t, "at once", shownIssue(t, m, "i-3"), map[string]any{"status": "open", "review_id": "r-1", "pr_number": 7.0})
	expectMembers(t, "it counts", shownReview(t, m), map[string]any{"open_issue_count": 3.0})
}

// A counter that the controller records advances updated_at, although the generation stays.
func TestACountThatIsRecordedIsAChangeOfItsReview(t *testing.T) {
	m := newReviewModel(t)
	recorded := review("r-1", 6)
	at := v1alpha1.NewTime(epoch.Add(time.Hour))
	recorded.Status.ObservedGeneration, recorded.Status.UpdatedAt = 1, &at
	show(t, m, reviews, recorded)
	expectMembers(t, "the status says so", shownReview(t, m), map[string]any{"updated_at": "2026-03-01T13:00:00Z"})
}

// Else each status write of a review would cost the rendering of all its issues.
func TestAReviewsStatusRendersNoIssueAgain(t *testing.T) {
	m := newReviewModel(t)
	before, _ := m.ReviewIssue(acme, "i-1")
	recorded := review("r-1", 6)
	recorded.Status.ObservedGeneration, recorded.Status.OpenIssueCount = 1, 2
	show(t, m, reviews, recorded)
	if after, _ := m.ReviewIssue(acme, "i-1"); after != before {
		t.Error("the issue was rendered again")
	}
}

func delivery(name string, rv int) *v1alpha1.WebhookDelivery {
	return &v1alpha1.WebhookDelivery{
		ObjectMeta: meta(acmeNamespace, name, rv),
		Spec:       v1alpha1.WebhookDeliverySpec{Payload: `{"type":"finding.created"}`},
	}
}

func TestADeliveryIsHeldInItsNewestState(t *testing.T) {
	m, _ := newTestModel(t)
	feed(t, m, webhookDeliveries, delivery("d-1", 5))
	show(t, m, organizations, organization(acme, acmeNamespace, 6), organization("other", "org-other", 7))
	if _, ok := m.SentWith(acme, "d-1"); !ok {
		t.Fatal("it was held before the organization was, and is not shown")
	}
	attempted := delivery("d-1", 8)
	secret, _ := signatures.NewSecret()
	signed, err := signatures.Sign("d-1", epoch, attempted.Spec.Payload, []signatures.Expiring{{Secret: secret}})
	harness.Must(t, err)
	attempted.Status.Attempts = []v1alpha1.WebhookAttempt{
		{Signatures: []v1alpha1.WebhookSignature{{Digest: signed[0].Digest()}}},
	}
	feed(t, m, webhookDeliveries, attempted)
	show(t, m, webhookDeliveries, delivery("d-1", 5))
	sent, _ := m.SentWith(acme, "d-1")
	got := sent.Verify(attempted.Spec.Payload, signatures.Header(signed), epoch)
	harness.Same(t, "the attempt", webhooks.Verified, got)
	if _, ok := m.SentWith("other", "d-1"); ok {
		t.Error("another organization sees it")
	}
	feedDeletion(t, m, webhookDeliveries, delivery("d-1", 9))
	settle(m)
	if _, ok := m.SentWith(acme, "d-1"); ok {
		t.Error("it is gone, and shown")
	}
}

// Another organization's objects look as if they did not exist.
func TestNothingOfAnotherOrganizationIsShown(t *testing.T) {
	m := newReviewModel(t)
	feed(t, m, organizations, organization("other", "org-other", 6))
	feed(t, m, projects, project("api", 7))
	show(t, m, findings, finding("f-1", 8), finding("f-2", 9, namespaced("org-other")))
	if _, ok := m.Finding(acme, "f-2"); ok {
		t.Error("a finding is shown")
	}
	page, err := m.ListFindings("other", FindingQuery{Request: first(10)})
	harness.Must(t, err)
	harness.Same(t, "the findings of the other", []string{"f-2"}, ids(page.Items))
	if _, ok := m.Project("other", "shop", "api"); ok {
		t.Error("a project is shown")
	}
	if _, ok := m.ReviewIssue("other", "i-1"); ok {
		t.Error("a review issue is shown")
	}
	repos, err := m.ListRepositories("other", first(10))
	if err != nil || repos.Total != 0 || len(repos.Items) != 0 {
		t.Errorf("repositories are shown: %v, %v", repos, err)
	}
	list, err := m.ListReviews("other", ReviewQuery{Request: first(10)})
	if err != nil || list.Total != 0 || len(list.Items) != 0 {
		t.Errorf("reviews are shown: %v, %v", list, err)
	}
}

// An object that was just changed does not wait for a group that is being rendered.
func TestSingleRowsComeBeforeGroups(t *testing.T) {
	m := newReviewModel(t)
	m.mu.Lock()
	m.enqueue(rejoin{namespace: acmeNamespace, rows: reviewIssues, by: byAll})
	m.enqueue(rejoin{namespace: acmeNamespace, rows: reviews, by: byName, name: "r-1"})
	m.mu.Unlock()
	if rows, _, _ := m.dequeue(); len(rows) != 1 || rows[0].rows != reviews {
		t.Errorf("first comes %v", rows)
	}
	if rows, _, _ := m.dequeue(); len(rows) != 2 || rows[0].rows != reviewIssues {
		t.Errorf("then comes %v", rows)
	}
}

func TestMemoryOfWhatIsGoneIsGivenBack(t *testing.T) {
	m := newReviewModel(t)
	feed(t, m, projects, project("api", 6))
	feed(t, m, findings, finding("f-1", 7))
	show(t, m, webhookDeliveries, delivery("d-1", 7))
	feedDeletion(t, m, findings, finding("f-1", 8))
	feedDeletion(t, m, repositories, repository("shop", 10))
	feedDeletion(t, m, reviews, review("r-1", 11))
	feedDeletion(t, m, reviewIssues, issue("i-1", 12))
	feedDeletion(t, m, reviewIssues, issue("i-2", 13))
	feedDeletion(t, m, projects, project("api", 14))
	feedDeletion(t, m, webhookDeliveries, delivery("d-1", 15))
	settle(m)
	p := m.partitions[acmeNamespace]
	for name, n := range map[string]int{
		"repositories": p.indexes.repositories.Len(), "projects": p.indexes.projects.Len(),
		"reviews": p.indexes.reviews.Len(), "issues": p.indexes.issues.Len(),
		"deliveries": p.indexes.deliveries.Len(), "findings": p.indexes.findings.Len(),
		"counts": len(p.counts), "children": len(p.projectsOf) + len(p.reviewsOf) + len(p.issuesOf),
	} {
		harness.Same(t, name+" that are left", 0, n)
	}
	feedDeletion(t, m, organizations, organization(acme, acmeNamespace, 16))
	harness.Same(t, "partitions that are left", 0, len(m.partitions))
}

// Rows rendered for one organization are not shown to the next owner of its namespace.
func TestRowsOfAJoinAreNotShownToTheNextOwnerOfTheirNamespace(t *testing.T) {
	m := newReviewModel(t)
	show(t, m, findings, finding("f-1", 6))
	feed(t, m, projects, project("api", 7))
	m.join(m.dequeueRows())
	rows, _, _ := m.dequeue()
	batch := m.prepare(rows)
	if len(batch) != 1 || batch[0].render() != nil {
		t.Fatalf("the finding is not rendered for its project: %v", rows)
	}
	feedDeletion(t, m, organizations, organization(acme, acmeNamespace, 8))
	feed(t, m, organizations, organization("next", acmeNamespace, 9))
	m.finish(batch)
	settle(m)
	harness.Same(t, "the organization of what the next is shown", "next", shown(t, m, "next", "f-1").OrganizationId)
}

// A repository may have thousands of projects, and each scan changes one several times.
func TestAChangedProjectIsRenderedAlone(t *testing.T) {
	allocations := func(siblings int) float64 {
		m, _ := newAcme(t)
		feed(t, m, repositories, repository("shop", 2))
		for i := range siblings {
			feed(t, m, projects, metav1.Object(project(fmt.Sprint("p-", i), 3)))
		}
		settle(m)
		version := 3
		return testing.AllocsPerRun(10, func() {
			version++
			show(t, m, projects, project("p-0", version))
		})
	}
	if few, many := allocations(10), allocations(1000); many > 3*few {
		t.Errorf("a change costs %.0f allocations beside 10 projects, and %.0f beside 1,000", few, many)
	}
}
