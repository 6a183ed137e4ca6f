package readmodel

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/changes"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// reported returns the next changes of a reader, each as its kind, what happened, the id and the version.
func reported(r *changes.Reader) (got []string) {
	b := r.Next(100)
	if b.Reset {
		got = append(got, "reset")
	}
	for i := range b.Changes {
		c := &b.Changes[i]
		got = append(got, fmt.Sprintln(c.Kind, c.What, c.ID, c.Version, c.UserStatus))
	}
	return got
}

// listening returns a model with an organization, and a reader of all its changes.
func listening(t *testing.T) (*Model, *changes.Reader) {
	t.Helper()
	m, _ := newAcme(t)
	feed(t, m, findings, finding("f-1", 10))
	show(t, m, reviews, review("r-1", 10))
	reader, err := m.Changes(acme, changes.Set(1<<changes.Kinds-1), nil)
	harness.Must(t, err)
	return m, reader
}

func TestChangesAreReportedInTheOrderOfTheWatchOnceReadersSeeThem(t *testing.T) {
	m, reader := listening(t)
	wants := func(reason string, want ...string) {
		t.Helper()
		settle(m)
		harness.Same(t, reason, want, reported(reader))
	}
	// The result of a patch, which the watch delivers after another object's write.
	_, err := m.Apply(finding("f-1", 22, muted, generation(2)))
	harness.Must(t, err)
	wants("not before the watch reports it")
	feed(t, m, findings, finding("f-2", 21))
	feed(t, m, findings, finding("f-1", 22, muted, generation(2)))
	harness.Same(t, "the changes before readers see them", []string(nil), reported(reader))
	wants("a patch's result", "finding created f-2 21 open\n", "finding updated f-1 22 muted\n")
	// A write that changes nothing visible.
	feed(t, m, findings, finding("f-1", 23, muted, generation(2), func(f *v1alpha1.Finding) { f.Labels = map[string]string{"a": "b"} }))
	wants("a write that shows nothing")
	feed(t, m, findings, finding("f-3", 24, namespaced("org-other")))
	wants("another organization's")
	feedDeletion(t, m, findings, finding("f-2", 25))
	wants("a deletion", "finding removed f-2 25 \n")

	feed(t, m, reviews, review("r-1", 30))
	publish(m)
	harness.Same(t, "the changes before the review is rendered", []string(nil), reported(reader))
	wants("a review", "review updated r-1 30 \n")

	delivery := &v1alpha1.WebhookDelivery{ObjectMeta: meta(acmeNamespace, "d-1", 31)}
	feed(t, m, webhookDeliveries, delivery)
	wants("a delivery", "delivery created d-1 31 \n")
	sent := delivery.DeepCopy()
	sent.ResourceVersion, sent.Status.Phase = "32", v1alpha1.WebhookDeliveryDelivered
	harness.Must(t, m.ApplyDelivery(sent))
	wants("not before the watch reports it")
	feed(t, m, webhookDeliveries, sent)
	wants("what a write of a delivery returned", "delivery updated d-1 32 \n")

	operation := &v1alpha1.TriageOperation{ObjectMeta: meta(acmeNamespace, "op-1", 40)}
	feed(t, m, triageOperations, operation)
	again := operation.DeepCopy()
	again.ResourceVersion, again.Labels = "41", map[string]string{"a": "b"}
	feed(t, m, triageOperations, again)
	changed := again.DeepCopy()
	changed.ResourceVersion, changed.Status.Changed = "42", 7
	feed(t, m, triageOperations, changed)
	wants("an operation's progress", "operation created op-1 40 \n", "operation updated op-1 42 \n")
}

func TestAReviewIsReportedAlthoughARepositoryOfAnotherOrganizationKeepsChanging(t *testing.T) {
	m, reader := listening(t)
	feed(t, m, organizations, organization("other", "org-other", 20))
	feed(t, m, findings, finding("f-9", 20, namespaced("org-other")))
	settle(m)
	changed := review("r-1", 30)
	changed.Generation, changed.Spec.PRTitle = 2, "Add a basket"
	changes := 0
	for ; changes < 50; changes++ {
		moved := movedRepository("shop", 31+changes)
		moved.Namespace, moved.UID = "org-other", "uid-other-shop"
		feed(t, m, repositories, moved)
		if changes == 0 {
			feed(t, m, reviews, changed)
		}
		// A change before each step: the queue never runs out of single rows.
		for _, version := range []int{100 + 2*changes, 101 + 2*changes} {
			counted := countedProject("api", version)
			counted.Namespace, counted.UID = "org-other", "uid-other-api"
			feed(t, m, projects, counted)
			m.joinNext(testContext)
		}
		m.publishAll()
		if got := reported(reader); got != nil {
			harness.Same(t, "the changes", []string{"review updated r-1 30 \n"}, got)
			review, _ := m.Review(acme, "r-1")
			harness.Same(t, "what is shown then", "Add a basket", review.prTitle)
			return
		}
	}
	t.Errorf("nothing was reported after %d changes of the repository", changes)
}

func TestAReviewIsReportedWhileAGroupOfAnotherOrganizationIsBeingJoined(t *testing.T) {
	m, reader := listening(t)
	for i, c := range []struct {
		group rejoin
		want  []string
	}{
		{rejoin{namespace: "org-other", rows: findings, by: byAll}, []string{"review updated r-1 30 \n"}},
		{rejoin{namespace: "org-other", rows: reviews, by: byAll}, []string{"review updated r-1 31 \n"}},
		{rejoin{namespace: acmeNamespace, rows: reviewIssues, by: byAll}, nil},
	} {
		m.enqueue(c.group)
		m.dequeue()
		feed(t, m, reviews, review("r-1", 30+i))
		m.join(m.dequeueRows())
		publish(m)
		harness.Same(t, fmt.Sprint("what is reported while this group is joined: ", c.group), c.want, reported(reader))
		m.queue.joined = m.queue.popped
	}
}

func TestAReviewIsReportedOnceTheCountsOfItsIssuesAreShown(t *testing.T) {
	m, reader := listening(t)
	feed(t, m, reviewIssues, issue("i-1", 40))
	feed(t, m, reviews, review("r-1", 41))
	for m.joinNext(testContext) {
		m.publishAll()
		if got := reported(reader); got != nil {
			harness.Same(t, "the changes", []string{"review updated r-1 41 \n"}, got)
			review, _ := m.Review(acme, "r-1")
			harness.Same(t, "its open issues then", int32(1), review.openIssueCount)
			return
		}
	}
	t.Error("nothing was reported")
}

// A client compares the two, because a replica may be behind the one that has reported the change.
func TestAReviewIsReportedWithTheTimeThatItShows(t *testing.T) {
	m, reader := listening(t)
	show(t, m, reviews, review("r-1", 41))
	shown, _ := m.Review(acme, "r-1")
	b := reader.Next(10)
	if len(b.Changes) != 1 || b.Changes[0].UpdatedAt != shown.updatedAt {
		t.Errorf("what shows %s is reported as %+v", shown.updatedAt, b.Changes)
	}
}

// Its issues change the counts of a review that has been reported before, while their watch was away.
func TestAListOfReviewIssuesTakenAnewIsOneResetOfReviews(t *testing.T) {
	m, reader := listening(t)
	ofFindings, err := m.Changes(acme, changes.Set(0).With(changes.Findings), nil)
	harness.Must(t, err)
	harness.Must(t, m.replace(reviewIssues, []metav1.Object{issue("i-1", 20)}, "20"))
	show(t, m, reviews, review("r-1", 41))
	harness.Same(t, "the changes after the first list", []string{"review updated r-1 41 \n"}, reported(reader))
	harness.Must(t, m.replace(reviewIssues, []metav1.Object{issue("i-1", 20), issue("i-2", 40)}, "50"))
	publish(m)
	harness.Same(t, "the changes before the counts are shown", []string(nil), reported(reader))
	settle(m)
	counted, _ := m.Review(acme, "r-1")
	harness.Same(t, "the open issues then", int32(2), counted.openIssueCount)
	harness.Same(t, "the changes then", []string{"reset"}, reported(reader))
	harness.Same(t, "the changes of findings then", []string(nil), reported(ofFindings))
	show(t, m, reviews, review("r-1", 42)) // the versions of reviews are not those of issues
	harness.Same(t, "the next change", []string{"review updated r-1 42 \n"}, reported(reader))
}

// A decision may read a finding that the watch has yet to deliver: it is reported as created nevertheless.
func TestAFindingShownBeforeItsWatchDeliversItIsReportedAsCreated(t *testing.T) {
	m, reader := listening(t)
	created, decided := finding("f-2", 21), finding("f-2", 22, muted, generation(2))
	for _, state := range []*v1alpha1.Finding{created, decided} {
		_, err := m.Apply(state)
		harness.Must(t, err)
	}
	for _, state := range []*v1alpha1.Finding{created, decided} {
		feed(t, m, findings, state)
	}
	settle(m)
	harness.Same(t, "the changes", []string{"finding created f-2 21 muted\n", "finding updated f-2 22 muted\n"}, reported(reader))
}

func TestAListTakenAnewIsOneReset(t *testing.T) {
	m, reader := listening(t)
	show(t, m, findings, finding("f-2", 21))
	reported(reader)
	harness.Must(t, m.replace(findings, []metav1.Object{finding("f-2", 33, muted)}, "40"))
	show(t, m, findings, finding("f-3", 41))
	harness.Same(t, "the changes", []string{"reset", "finding created f-3 41 open\n"}, reported(reader))
	harness.Same(t, "the changes then", []string(nil), reported(reader))
}

func TestADecisionShownDuringAListIsReportedAfterIt(t *testing.T) {
	m, _ := listening(t)
	show(t, m, findings, finding("f-2", 21))
	_, err := m.Apply(finding("f-2", 45, muted, generation(2)))
	harness.Must(t, err)
	harness.Must(t, m.replace(findings, []metav1.Object{finding("f-2", 21)}, "40"))
	settle(m)
	resumed, err := m.Changes(acme, changes.Set(0).With(changes.Findings), &changes.Position{changes.Findings: 42})
	harness.Must(t, err)
	feed(t, m, findings, finding("f-2", 45, muted, generation(2)))
	settle(m)
	harness.Same(t, "the changes", []string{"finding updated f-2 45 muted\n"}, reported(resumed))
}

func TestTheReadersOfAnOrganizationEndWhenItsNamespaceChangesHands(t *testing.T) {
	m, reader := listening(t)
	show(t, m, organizations, organization("other", acmeNamespace, 50))
	feed(t, m, findings, finding("f-2", 60))
	settle(m)
	if b := reader.Next(10); !b.Ended || len(b.Changes) > 0 {
		t.Errorf("the reader goes on: %+v", b)
	}
}

// A change of a namespace that belongs to nobody yet is not reported.
func TestChangesNoticedBeforeAnOrganizationOwnsItsNamespaceAreAReset(t *testing.T) {
	m, _ := newTestModel(t)
	feed(t, m, findings, finding("f-1", 10))
	feed(t, m, organizations, organization(acme, acmeNamespace, 11))
	kinds := changes.Set(1<<changes.Kinds - 1)
	fresh, err := m.Changes(acme, kinds, nil)
	harness.Must(t, err)
	settle(m)
	resumed, err := m.Changes(acme, kinds, &changes.Position{changes.Findings: 9})
	harness.Must(t, err)
	harness.Same(t, "after the place before it", []string{"reset"}, reported(resumed))
	show(t, m, findings, finding("f-2", 21))
	for of, reader := range map[string]*changes.Reader{"a new reader": fresh, "a reader that was reset": resumed} {
		harness.Same(t, of, []string{"finding created f-2 21 open\n"}, reported(reader))
	}
}
