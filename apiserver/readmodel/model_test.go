package readmodel

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var testContext = context.Background()

// shown decodes a finding's v2 JSON.
func shown(t *testing.T, m *Model, organization, id string) openapi.FindingV2 {
	t.Helper()
	item, ok := m.Finding(organization, id)
	if !ok {
		t.Fatalf("finding %s of %s is not there", id, organization)
	}
	return harness.Decoded[openapi.FindingV2](t, jsonOf(item.V2()))
}

func TestOnlyNamespacesOfOrganizationsAreVisible(t *testing.T) {
	m, _ := newTestModel(t)
	show(t, m, findings, finding("f-1", 10))
	if _, err := m.ListFindings(acme, FindingQuery{Request: first(10)}); !errors.Is(err, ErrNoOrganization) {
		t.Fatalf("an organization that is not there: got %v", err)
	}

	show(t, m, organizations, organization(acme, "", 11))
	if _, err := m.ListFindings(acme, FindingQuery{Request: first(10)}); !errors.Is(err, ErrNoOrganization) {
		t.Fatalf("an organization without a namespace: got %v", err)
	}

	show(t, m, organizations, organization(acme, acmeNamespace, 12))
	page, err := m.ListFindings(acme, FindingQuery{Request: first(10)})
	if err != nil || page.Total != 1 {
		t.Fatalf("the namespace is in status: got %d findings, %v", page.Total, err)
	}
	harness.Same(t, "organization_id", acme, shown(t, m, acme, "f-1").OrganizationId)

	feedDeletion(t, m, organizations, organization(acme, acmeNamespace, 13))
	if _, err := m.ListFindings(acme, FindingQuery{Request: first(10)}); !errors.Is(err, ErrNoOrganization) {
		t.Errorf("a removed organization is visible before anything was published: got %v", err)
	}
	if _, ok := m.Finding(acme, "f-1"); ok {
		t.Error("a removed organization's finding is visible")
	}
}

// An organization that gets its namespace back must not show an empty list in the meantime, which would look complete.
func TestAnOrganizationIsShownOnceAllOfItsRowsAre(t *testing.T) {
	m, _ := newTestModel(t)
	feed(t, m, findings, finding("f-1", 10))
	feed(t, m, organizations, organization(acme, acmeNamespace, 11))
	for more := true; more; more = m.joinNext(t.Context()) {
		page, err := m.ListFindings(acme, FindingQuery{Request: first(10)})
		if !errors.Is(err, ErrNoOrganization) && page.Total != 1 {
			t.Fatalf("while rows are joined: %d findings, %v", page.Total, err)
		}
	}
	if page, err := m.ListFindings(acme, FindingQuery{Request: first(10)}); err != nil || page.Total != 1 {
		t.Errorf("in the end: %d findings, %v", page.Total, err)
	}
}

func TestANamespaceOfTwoOrganizationsIsShownToNeither(t *testing.T) {
	m, _ := newTestModel(t)
	var log harness.Buffer
	m.log = harness.ErrorLogger(&log)
	feed(t, m, findings, finding("f-1", 10))
	show(t, m, organizations, organization(acme, acmeNamespace, 11), organization("thief", acmeNamespace, 12))
	harness.Contains(t, "the log of errors", log.String(), "Two organizations", acme, "thief")
	for _, name := range []string{acme, "thief"} {
		if _, ok := m.Finding(name, "f-1"); ok {
			t.Errorf("%s sees the finding", name)
		}
	}
	feedDeletion(t, m, organizations, organization("thief", acmeNamespace, 13))
	settle(m)
	if _, ok := m.Finding(acme, "f-1"); !ok {
		t.Error("the one organization left does not see its finding")
	}
}

// A reader may load a view just before its namespace changes its owner.
func TestAReadersViewNeverShowsAnotherOrganizationsFindings(t *testing.T) {
	m, _ := newAcme(t)
	settle(m)
	before := (*m.visible.Load())[acme]
	feedDeletion(t, m, organizations, organization(acme, acmeNamespace, 11))
	feed(t, m, organizations, organization("next", acmeNamespace, 12))
	show(t, m, findings, finding("f-1", 13))
	harness.Same(t, "the organization of the finding", "next", shown(t, m, "next", "f-1").OrganizationId)
	harness.Same(t, "findings in the view of the organization before", 0, before.snapshot.Load().findings.Len())
}

func TestAPatchedFindingIsShownAtOnce(t *testing.T) {
	m, _ := newAcme(t)
	show(t, m, findings, finding("f-1", 11))

	item, err := m.Apply(finding("f-1", 12, muted, generation(2)))
	if err != nil || item.UserStatus != "muted" || item.Status != "open_muted" {
		t.Fatalf("the patch's own answer: got %+v, %v", item, err)
	}
	harness.Same(t, "nothing was published, and a read shows", openapi.UserStatusMuted, shown(t, m, acme, "f-1").UserStatus)

	show(t, m, findings, finding("f-1", 11))
	harness.Same(t, "user status after a watch event of before the patch", openapi.UserStatusMuted, shown(t, m, acme, "f-1").UserStatus)
}

func TestALateResultOfAPatchOfAFinding(t *testing.T) {
	m, _ := newAcme(t)
	show(t, m, findings, finding("f-1", 20))
	item, err := m.Apply(finding("f-1", 15, muted))
	if err != nil || item.UserStatus != "muted" {
		t.Fatalf("the answer is that of the object given: got %+v, %v", item, err)
	}
	harness.Same(t, "user status in the model", openapi.UserStatusOpen, shown(t, m, acme, "f-1").UserStatus)
	feedDeletion(t, m, findings, finding("f-1", 30))
	_, err = m.Apply(finding("f-1", 25, muted))
	harness.Must(t, err)
	settle(m)
	if _, ok := m.Finding(acme, "f-1"); ok {
		t.Error("a late answer raised a ghost")
	}
}

func TestAResultOutsideOfOrganizationsIsRefused(t *testing.T) {
	m, _ := newTestModel(t)
	if _, err := m.Apply(finding("f-1", 15)); !errors.Is(err, ErrNoOrganization) {
		t.Errorf("got %v", err)
	}
}

func TestAFindingThatIsCreatedAgainReplacesTheDeletedOne(t *testing.T) {
	m, _ := newAcme(t)
	feed(t, m, findings, finding("f-1", 11))
	feed(t, m, findings, finding("f-1", 13, muted, func(f *v1alpha1.Finding) { f.UID = "second" }))
	feedDeletion(t, m, findings, finding("f-1", 12))
	settle(m)
	harness.Same(t, "the second's user status, after the late deletion of the first", openapi.UserStatusMuted, shown(t, m, acme, "f-1").UserStatus)
}

func TestAnotherListKeepsWhatIsNewer(t *testing.T) {
	m, _ := newAcme(t)
	feed(t, m, findings, finding("gone", 11), finding("changed", 12), finding("late", 30))
	_, err := m.Apply(finding("changed", 31, muted))
	harness.Must(t, err)
	harness.Must(t, m.replace(findings, []metav1.Object{finding("changed", 12), finding("new", 19)}, "20"))
	settle(m)
	page, err := m.ListFindings(acme, FindingQuery{Request: index.Request{Limit: index.Limit{Size: 10}, Order: index.OrderAsc}})
	if diff := cmp.Diff([]string{"changed", "late", "new"}, ids(page.Items)); diff != "" || err != nil {
		t.Errorf("after the list: %s, %v", diff, err)
	}
	harness.Same(t, "user status after the list", openapi.UserStatusMuted, shown(t, m, acme, "changed").UserStatus)
}

// After a restore, say: a decision that was lost must not be shown.
func TestAnotherListTakesBackWhatWasLost(t *testing.T) {
	m, _ := newAcme(t)
	feed(t, m, findings, finding("f-1", 11), finding("f-1", 30, muted))
	harness.Must(t, m.replace(findings, []metav1.Object{finding("f-1", 11)}, "40"))
	settle(m)
	harness.Same(t, "what the API server has", openapi.UserStatusOpen, shown(t, m, acme, "f-1").UserStatus)
}

func TestAFindingShowsTheNamesOfItsRepositoryAndProject(t *testing.T) {
	m, _ := newAcme(t)
	show(t, m, findings, finding("f-1", 11))
	got := shown(t, m, acme, "f-1")
	if got.Repo.Id != "shop" || got.Repo.Name != "" || got.Project.Id != "api" || got.Project.Name != "" {
		t.Errorf("without repository and project: got %+v, %+v", got.Repo, got.Project)
	}

	feed(t, m, repositories, repository("shop", 5))
	show(t, m, projects, project("api", 6))
	got = shown(t, m, acme, "f-1")
	if got.Repo.Name != "shop" || got.Project.Name != "The api" {
		t.Errorf("with both: got %+v, %+v", got.Repo, got.Project)
	}

	renamed := project("api", 7)
	renamed.Spec.DisplayName = "New"
	show(t, m, projects, renamed)
	harness.Same(t, "the project's name, renamed", "New", shown(t, m, acme, "f-1").Project.Name)
	cart := repository("shop", 8)
	cart.Spec.FullName = "acme/stores/cart"
	show(t, m, repositories, cart)
	harness.Same(t, "the repository's name, renamed", "cart", shown(t, m, acme, "f-1").Repo.Name)

	feedDeletion(t, m, projects, project("api", 9))
	settle(m)
	harness.Same(t, "the project's name, deleted", "", shown(t, m, acme, "f-1").Project.Name)
}

func TestNothingIsRenderedAnewForWhatFindingsDoNotShow(t *testing.T) {
	m, _ := newAcme(t)
	feed(t, m, projects, project("api", 6))
	show(t, m, findings, finding("f-1", 11))
	before, _ := m.Finding(acme, "f-1")
	feed(t, m, projects, countedProject("api", 7))
	harness.Same(t, "groups to be rendered anew after a project's count", 0, len(m.queue.groups))
	settle(m)
	if after, _ := m.Finding(acme, "f-1"); after != before {
		t.Error("the item is another")
	}
}

func TestAWriteDuringAJoinWins(t *testing.T) {
	m, _ := newAcme(t)
	show(t, m, findings, finding("f-1", 11))
	feed(t, m, projects, project("api", 6))
	m.join(m.dequeueRows())
	rows, _, _ := m.dequeue()
	batch := m.prepare(rows)
	if len(batch) != 1 || batch[0].render() != nil {
		t.Fatalf("nothing is rendered for the project: %v", rows)
	}
	feed(t, m, findings, finding("f-1", 12, muted))
	m.finish(batch)
	settle(m)
	got := shown(t, m, acme, "f-1")
	if got.UserStatus != openapi.UserStatusMuted || got.Project.Name != "The api" {
		t.Errorf("got %s, %+v", got.UserStatus, got.Project)
	}
}

func TestTheLastChangeOfAFindingIsWhatItsStatusAndFieldsTell(t *testing.T) {
	m, clock := newTestModel(t)
	observed := func(generation int64, second int) func(*v1alpha1.Finding) {
		return func(f *v1alpha1.Finding) {
			at := v1alpha1.NewTime(epoch.Add(time.Duration(second) * time.Second))
			f.Status.ObservedGeneration, f.Status.UpdatedAt = generation, &at
		}
	}
	feed(t, m, organizations, organization(acme, acmeNamespace, 10))
	expect := func(reason, want string) {
		t.Helper()
		settle(m)
		item, _ := m.Finding(acme, "f-1")
		if item.UpdatedAt != want || item.CreatedAt() != "2026-03-01T12:00:00Z" {
			t.Errorf("%s: got %s, want %s", reason, item.UpdatedAt, want)
		}
	}
	feed(t, m, findings, finding("f-1", 11, observed(1, 5)))
	expect("the controller has seen this generation", "2026-03-01T12:00:05Z")

	clock.SetTime(epoch.Add(20 * time.Second))
	feed(t, m, findings, finding("f-1", 12, generation(2), observed(1, 5)))
	expect("it has not seen this one, and no field tells when it was written: it stays", "2026-03-01T12:00:05Z")

	written := func(second int) func(*v1alpha1.Finding) {
		return func(f *v1alpha1.Finding) {
			at := metav1.NewTime(epoch.Add(time.Duration(second) * time.Second))
			f.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: &at}}
		}
	}
	feed(t, m, findings, finding("f-1", 13, generation(3), observed(1, 5), written(18)))
	expect("a field tells", "2026-03-01T12:00:18Z")

	feed(t, m, findings, finding("f-1", 14, generation(4), observed(1, 5)))
	expect("what was shown does not go back", "2026-03-01T12:00:18Z")

	feed(t, m, findings, finding("f-1", 15, generation(4), observed(4, 17)))
	expect("what is recorded is shown by all", "2026-03-01T12:00:17Z")

	feed(t, m, findings, finding("f-1", 16, observed(1, 3), func(f *v1alpha1.Finding) { f.UID = types.UID("second") }))
	expect("another object of the same name has its own times", "2026-03-01T12:00:03Z")
}

func TestHeldObjectsAreTrimmed(t *testing.T) {
	m, _ := newAcme(t)
	full := finding("f-1", 11, muted)
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "scanner/x"}}
	full.Annotations = map[string]string{"a": "b"}
	full.Status.FactsDigest = "x"
	show(t, m, findings, full)
	item, _ := m.Finding(acme, "f-1")
	if o := item.Object(); o.Name != "f-1" || o.Namespace != acmeNamespace || o.Spec.RepositoryRef.Name != "shop" || o.Spec.ProjectRef.Name != "api" {
		t.Errorf("it is not known what it is: %+v", o)
	}
	if o := item.Object(); o.UID != full.UID || o.ResourceVersion != "11" || o.Spec.Triage.UserStatus != v1alpha1.UserStatusMuted {
		t.Errorf("a patch lacks something: %+v", o)
	}
	if full.ManagedFields == nil {
		t.Error("the caller's object was changed")
	}
}

// An organization's user can change a repository once per second, or let a script do it.
func TestAModelGetsReadyAlthoughARepositoryKeepsChanging(t *testing.T) {
	m, _ := newTestModel(t)
	lists := map[kind][]metav1.Object{
		organizations: {organization(acme, acmeNamespace, 1)}, repositories: {repository("shop", 9)},
		projects: {project("api", 9)}, findings: {finding("f-1", 10)},
	}
	for k := range kinds {
		harness.Must(t, m.replace(k, lists[k], "20"))
	}
	for version := 21; version < 71 && !m.Ready(); version++ {
		feed(t, m, repositories, movedRepository("shop", version))
		// A change before each step: the queue never runs out of single rows.
		feed(t, m, projects, countedProject("api", 2*version))
		m.joinNext(testContext)
		feed(t, m, projects, countedProject("api", 2*version+1))
		m.joinNext(testContext)
	}
	if !m.Ready() {
		t.Fatal("not ready after 50 changes of a repository")
	}
	harness.Same(t, "the name of the project, once it is ready", "The api", shown(t, m, acme, "f-1").Project.Name)
}

// countedProject returns the project with a number of findings that no other version has.
func countedProject(name string, version int) *v1alpha1.Project {
	p := project(name, version)
	p.Status.FindingsCount = int32(version)
	return p
}

// movedRepository returns the repository with a URL that no other version has.
func movedRepository(name string, version int) *v1alpha1.Repository {
	r := repository(name, version)
	r.Spec.URL = fmt.Sprint("https://code.example/", version)
	return r
}

func TestAModelIsReadyOnceAllIsListedAndJoined(t *testing.T) {
	m, _ := newTestModel(t)
	lists := map[kind][]metav1.Object{
		organizations: {organization(acme, acmeNamespace, 10)}, projects: {project("api", 9)}, findings: {finding("f-1", 11)},
	}
	for n := range kinds {
		// Backwards after the organizations: a finding that comes after its project is joined at once.
		k := (kinds - n) % kinds
		if m.Ready() {
			t.Fatalf("ready before %s were listed", k)
		}
		harness.Must(t, m.replace(k, lists[k], "20"))
	}
	if m.Ready() {
		t.Fatal("ready before the finding was joined with its project")
	}
	for m.joinNext(testContext) {
	}
	if !m.Ready() {
		t.Fatal("not ready although all is listed and joined")
	}
	harness.Same(t, "the name of the project, once it is ready", "The api", shown(t, m, acme, "f-1").Project.Name)
}

// If a path names no project, there are no findings below it.
func TestAFindingIsReadBelowItsProjectAlone(t *testing.T) {
	of := func(repository, project string) func(*v1alpha1.Finding) {
		return func(f *v1alpha1.Finding) {
			f.Spec.RepositoryRef.Name, f.Spec.ProjectRef.Name = v1alpha1.ResourceName(repository), v1alpha1.ResourceName(project)
		}
	}
	m, _ := newAcme(t)
	feed(t, m, repositories, repository("shop", 2), repository("other", 3))
	feed(t, m, projects, project("api", 4)) // of the repository shop
	show(t, m, findings, finding("f-right", 5, of("shop", "api")), finding("f-astray", 6, of("other", "api")), finding("f-early", 7, of("shop", "later")))
	cases := []struct {
		reason                       string
		repository, project, finding string
		want                         bool
	}{
		{"all agree", "shop", "api", "f-right", true},
		{"the finding names another repository", "other", "api", "f-right", false},
		{"the project is not in the repository that the finding names", "other", "api", "f-astray", false},
		{"the finding does not name the project's repository", "shop", "api", "f-astray", false},
		{"the project does not exist", "shop", "later", "f-early", false},
	}
	for _, c := range cases {
		_, got := m.FindingIn(acme, c.repository, c.project, c.finding)
		harness.Same(t, c.reason, c.want, got)
		if _, project := m.Project(acme, c.repository, c.project); c.want && !project {
			t.Errorf("%s: the finding is below a project that is not there", c.reason)
		}
	}
	show(t, m, projects, project("later", 8))
	if _, got := m.FindingIn(acme, "shop", "later", "f-early"); !got {
		t.Error("the finding does not show once its project has come")
	}
}
