package readmodel

import (
	"fmt"
	"time"
	"unique"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var epoch = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

const (
	acme          = "acme"
	acmeNamespace = v1alpha1.NamespacePrefix + acme
)

// byHand is the source of models that tests feed by hand.
func byHand(kube.Kind) kube.Source { return nil }

// newTestModel returns a model that is fed by hand, and its clock.
func newTestModel(t harness.T) (*Model, *testingclock.FakeClock) {
	t.Helper()
	clock := testingclock.NewFakeClock(epoch)
	m, err := New(Options{Source: byHand, Log: logr.Discard(), Clock: clock})
	harness.Must(t, err)
	return m, clock
}

// newAcme is newTestModel with the organization acme.
func newAcme(t harness.T) (*Model, *testingclock.FakeClock) {
	t.Helper()
	m, clock := newTestModel(t)
	feed(t, m, organizations, organization(acme, acmeNamespace, 1))
	return m, clock
}

// first asks for the first n rows of a list, in its default order.
func first(n int) index.Request { return index.Request{Limit: index.Limit{Size: n}} }

func feed(t harness.T, m *Model, k kind, objects ...metav1.Object) {
	t.Helper()
	for _, object := range objects {
		harness.Must(t, m.add(change{kind: k, object: object}))
	}
}

func feedDeletion(t harness.T, m *Model, k kind, object metav1.Object) {
	t.Helper()
	harness.Must(t, m.add(change{kind: k, object: object, deleted: true}))
}

// show feeds the objects to the model and settles it: readers see all that it was fed.
func show(t harness.T, m *Model, k kind, objects ...metav1.Object) {
	t.Helper()
	feed(t, m, k, objects...)
	settle(m)
}

// settle does the work of the joiner and the publisher until nothing is left.
func settle(m *Model) {
	for m.joinNext(testContext) {
	}
	publish(m)
}

// publish does the work of the publisher once.
func publish(m *Model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publishAll()
}

func meta(namespace, name string, rv int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name),
		ResourceVersion: fmt.Sprint(rv), Generation: 1, CreationTimestamp: metav1.NewTime(epoch),
	}
}

func organization(name, namespace string, rv int) *v1alpha1.Organization {
	return &v1alpha1.Organization{
		ObjectMeta: meta("", name, rv),
		Status:     v1alpha1.OrganizationStatus{Namespace: namespace},
	}
}

func repository(name string, rv int) *v1alpha1.Repository {
	return &v1alpha1.Repository{
		ObjectMeta: meta(acmeNamespace, name, rv),
		Spec:       v1alpha1.RepositorySpec{FullName: "acme/" + name, Provider: "github", URL: "https://code.example/" + name},
	}
}

func project(name string, rv int) *v1alpha1.Project {
	return &v1alpha1.Project{
		ObjectMeta: meta(acmeNamespace, name, rv),
		Spec: v1alpha1.ProjectSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, DisplayName: "The " + name, Owner: "team-a",
		},
	}
}

func finding(name string, rv int, change ...func(*v1alpha1.Finding)) *v1alpha1.Finding {
	f := &v1alpha1.Finding{
		ObjectMeta: meta(acmeNamespace, name, rv),
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"},
			ProjectRef:    v1alpha1.ProjectReference{Name: "api"},
			Class:         "CWE-89",
			Details:       v1alpha1.FindingDetails{Title: "SQL injection", Severity: v1alpha1.LevelHigh},
			Triage:        v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen},
		},
	}
	for _, c := range change {
		c(f)
	}
	return f
}

// review returns a review of an open pull request of shop with one reviewed commit.
func review(name string, rv int) *v1alpha1.Review {
	return &v1alpha1.Review{
		ObjectMeta: meta(acmeNamespace, name, rv),
		Spec: v1alpha1.ReviewSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, PRNumber: 7, PRTitle: "Add a cart", PRStatus: "open",
			ReviewedCommits: []v1alpha1.ReviewedCommit{{SHA: "c1", ReviewedAt: v1alpha1.NewTime(epoch)}},
		},
	}
}

// issue returns an issue of review "r-1" that its first commit shows.
func issue(name string, rv int) *v1alpha1.ReviewIssue {
	return &v1alpha1.ReviewIssue{
		ObjectMeta: meta(acmeNamespace, name, rv),
		Spec: v1alpha1.ReviewIssueSpec{
			ReviewRef: v1alpha1.ReviewReference{Name: "r-1"}, Title: "SQL injection", Severity: v1alpha1.LevelHigh,
			CommitSHA: "c1", SeenInCommits: []v1alpha1.CommitSHA{"c1"},
		},
	}
}

func freshUID(n int) types.UID { return types.UID(fmt.Sprintf("uid-%d", n)) }

func muted(f *v1alpha1.Finding) { f.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted }

func generation(n int64) func(*v1alpha1.Finding) {
	return func(f *v1alpha1.Finding) { f.Generation = n }
}

func namespaced(namespace string) func(*v1alpha1.Finding) {
	return func(f *v1alpha1.Finding) {
		f.Namespace, f.UID = namespace, types.UID("uid-"+namespace+"-"+f.Name)
	}
}

func ids(items []*Item) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = item.ID
	}
	return out
}

func jsonOf(part content.Part) []byte { return part.AppendTo(nil) }

func testItem(id, createdAt, updatedAt, status string) *Item {
	return &Item{
		stored: &stored{
			ID: id, graded: gradeOf("", noScore) + createdAt, Status: status, traits: traitsOf(&v1alpha1.FindingSpec{}),
			policy: unique.Make(""), comments: unique.Make(""),
		},
		Shown: render.Shown{UpdatedAt: updatedAt},
	}
}
