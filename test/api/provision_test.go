package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// newcomer returns an organization that lets imports create repositories, and a key that may
// import.
func newcomer(t *testing.T, folders ...v1alpha1.ProjectPattern) (*organization, *caller) {
	t.Helper()
	o, c := uploader(t)
	testenv.Change(t, env, builder.Organization(o.name).Build(), func(o *v1alpha1.Organization) {
		o.Spec.Imports = &v1alpha1.OrganizationImports{Create: true, Projects: folders}
	})
	// The facade has observed the setting once it passes an upload to the importer, which refuses it
	// for another reason.
	harness.Eventually(t, func(g Gomega) {
		a := c.do(http.MethodPost, "/v2/repos/repo/projects/Probe/scans", sarif("one"), asSARIF)
		g.Expect(a.status).To(Equal(http.StatusNotFound))
		dry := c.do(http.MethodPost, "/v2/repos/probe/projects/probe/scans?dry_run=true&source_root=https://github.com/acme/probe",
			sarif("one"), asSARIF)
		g.Expect(dry.status).To(Equal(http.StatusOK), "%s", dry.body)
	})
	return o, c
}

// created returns the repositories except the fixture's.
func (o *organization) created() []v1alpha1.Repository {
	o.t.Helper()
	list := testenv.List(o.t, NewWithT(o.t), env, &v1alpha1.RepositoryList{}, client.InNamespace(o.namespace))
	return slices.DeleteFunc(list.Items, func(r v1alpha1.Repository) bool { return r.Name == "repo" })
}

func TestAnUploadCreatesAnUnknownRepository(t *testing.T) {
	o, c := newcomer(t)
	body := forGitHub(sarif("one", "two"), `"checkout_uri":"https://x:secret@github.com/acme/shop.git"`)
	c.wantsComplete(c.submitTo("acme/shop", body))
	created := o.created()
	if len(created) != 1 {
		t.Fatalf("%d repositories were created", len(created))
	}
	want := v1alpha1.RepositorySpec{Provider: "github", FullName: "acme/shop", URL: "https://github.com/acme/shop",
		CloneURL: "https://github.com/acme/shop.git", ScanBranch: "main", ScanEnabled: true}
	harness.Same(t, "the repository", want, created[0].Spec)
	harness.Same(t, "open findings", map[string]int{created[0].Name: 2}, o.open())

	before := o.everything()
	c.wantsComplete(c.submitTo("Acme/Shop", body))
	if diff := cmp.Diff(before, o.everything()); diff != "" || len(o.created()) != 1 {
		t.Errorf("the same again changed something, or made another: %d repositories\n%s", len(o.created()), diff)
	}
	// Another branch, or a pull request of an unknown repository, creates nothing.
	c.wantsFailed(c.submitTo("acme/shop", strings.Replace(body, "refs/heads/main", "refs/heads/trunk", 1)), "trunk")
	a := c.postAsGitHub("acme/other", strings.NewReplacer("refs/heads/main", "refs/pull/3/merge", `"abc"`, `"8f3e1c2d"`).Replace(body))
	if a.wants(http.StatusConflict, "a pull request of nothing"); !strings.Contains(string(a.body), "does not exist yet") || len(o.created()) != 1 {
		t.Errorf("%d repositories, and the answer is %s", len(o.created()), a.body)
	}
}

func TestALongBranchCreatesARepository(t *testing.T) {
	o, c := newcomer(t)
	branch := strings.Repeat("b", 255)
	c.wantsComplete(c.submitTo("acme/shop", strings.Replace(forGitHub(sarif("one")), "refs/heads/main", "refs/heads/"+branch, 1)))
	query := url.Values{"ref": {"refs/heads/" + branch}, "source_root": {"https://github.com/acme/store"}}
	c.do(http.MethodPost, "/v2/repos/store/projects/store/scans?"+query.Encode(), sarif("one"), asSARIF).wants(http.StatusOK, "to v2")
	for _, created := range o.created() {
		harness.Same(t, created.Spec.FullName, branch, created.Spec.ScanBranch)
	}
	harness.Same(t, "the repositories that were created", 2, len(o.created()))
}

// A Repository without a branch would refuse every later upload of its branch. Whoever uploads may not change it.
func TestARefThatNamesNoBranchCreatesNothing(t *testing.T) {
	o, c := newcomer(t)
	for ref, status := range map[string]int{
		"": http.StatusBadRequest, "refs/heads/": http.StatusConflict, "refs/heads/größe": http.StatusConflict, "refs/tags/v1": http.StatusConflict,
	} {
		body := strings.Replace(forGitHub(sarif("one")), "refs/heads/main", ref, 1)
		c.postAsGitHub("acme/new", body).wants(status, "to GitHub: "+ref).says(`"field":"ref"`)
		query := url.Values{"ref": {ref}, "source_root": {"https://github.com/acme/newer"}}
		c.do(http.MethodPost, "/v2/repos/new/projects/new/scans?"+query.Encode(), sarif("one"), asSARIF).
			wants(status, "to v2: "+ref).says(`"field":"ref"`)
	}
	harness.Same(t, "the repositories that were created", 0, len(o.created()))
}

// Two hosts may each have a repository with the same name: the file's repository is the one that
// receives it.
func TestTheSameNameOnAnotherHostIsAnotherRepository(t *testing.T) {
	o, c := newcomer(t)
	body := func(host string) string {
		return forGitHub(sarif("one"), `"checkout_uri":"https://`+host+`/acme/twin"`)
	}
	for range 2 {
		for _, host := range []string{"github.com", "ghe.example.com"} {
			c.wantsComplete(c.submitTo("acme/twin", body(host)))
		}
	}
	if created := o.created(); len(created) != 2 || len(o.open()) != 2 {
		t.Fatalf("%d repositories were created, the open findings are %v", len(created), o.open())
	}
	harness.Eventually(t, func(g Gomega) { // the facade has observed both
		a := c.postAsGitHub("acme/twin", forGitHub(sarif("one")))
		g.Expect(a.status).To(Equal(http.StatusConflict), "%s", a.body)
		g.Expect(string(a.body)).To(ContainSubstring("several repositories have the full name"))
	})
}

// One upload creates the project of the repository and that of a folder, and each result goes to its own. A job of the
// same tool for another folder that finds nothing closes none of them.
func TestAScanOfAnotherFolderClosesNothing(t *testing.T) {
	o, c := newcomer(t, "services/*")
	api := builder.Result{Rule: "R1", Message: "one", Path: "services/api/main.go", Line: 7}
	c.wantsComplete(c.submitTo("acme/jobs", forGitHub(builder.SARIF("lint", api))))
	pull := strings.NewReplacer("refs/heads/main", "refs/pull/7/merge", `"abc"`, `"8f3e1c2d"`).Replace(forGitHub(builder.SARIF("lint")))
	a := c.postAsGitHub("acme/jobs", pull).wants(http.StatusAccepted, "a pull request")
	c.wantsComplete(c.follow(a))
	upload := c.uploaded(decoded[openapi.SarifReceipt](a).Id)
	harness.Same(t, "fixed by a pull request", int32(0), reviewed(t, upload).Fixed)
	both := builder.SARIF("lint", api, builder.Result{Rule: "R2", Message: "top", Path: "README.md", Line: 1})
	c.wantsComplete(c.submitTo("acme/jobs", forGitHub(both)))
	before := o.open()
	folders := map[string]int{}
	for name, n := range before {
		project := testenv.Get(t, NewWithT(t), env, builder.Project(name).In(o.namespace).Build())
		folders[project.Spec.RelativePath] = n
	}
	harness.Same(t, "open findings by folder", map[string]int{"": 1, "services/api": 1}, folders)
	c.wantsFailed(c.submitTo("acme/jobs", forGitHub(sarif())), "which of the projects")
	looked := strings.Replace(sarif(), `"results"`, `"artifacts":[{"location":{"uri":"services/web/a.js"},"roles":["analysisTarget"]}],"results"`, 1)
	c.wantsComplete(c.submitTo("acme/jobs", forGitHub(looked)))
	harness.Same(t, "open findings by project", before, o.open())
}

// A folder that was renamed gets a new project, and the decisions stay behind. The warning says where the way out is
// described, and it works: before the next upload, and after it.
func TestAProjectWhoseFolderIsRenamedKeepsItsDecisions(t *testing.T) {
	o, c := newcomer(t, "services/*")
	uploads := func(folder string) (status openapi.SarifStatus, warnings string) {
		t.Helper()
		body := forGitHub(builder.SARIF("lint", builder.Result{Rule: "R1", Message: "one", Path: folder + "/a.go", Line: 7},
			builder.Result{Rule: "R2", Message: "two", Path: folder + "/b.go", Line: 9}))
		a := c.postAsGitHub("acme/fold", body).wants(http.StatusAccepted, "an upload")
		return c.follow(a), strings.Join(c.uploaded(decoded[openapi.SarifReceipt](a).Id).Warnings, "\n")
	}
	completes := func(folder string) (warnings string) {
		t.Helper()
		status, warnings := uploads(folder)
		c.wantsComplete(status)
		return warnings
	}
	named := func(folder string) *v1alpha1.Project {
		t.Helper()
		list := testenv.List(t, NewWithT(t), env, &v1alpha1.ProjectList{}, client.InNamespace(o.namespace)).Items
		return &list[slices.IndexFunc(list, func(p v1alpha1.Project) bool { return p.Spec.RelativePath == folder })]
	}
	hint := "; if its results were in another project before, for example because a folder was renamed, their decisions are still there: see docs/kinds/project.md"
	harness.Same(t, "a hint for a new repository", false, strings.Contains(completes("services/pay"), hint))
	project := named("services/pay")
	before := o.everything()
	for i := range before {
		env.Patch(t, &before[i], `{"spec":{"triage":{"userStatus":"muted"}}}`)
	}
	kept := func(when string) {
		t.Helper()
		for _, finding := range before {
			now := o.stored(finding.Name).Spec
			harness.Same(t, when+": its project", project.Name, string(now.ProjectRef.Name))
			harness.Same(t, when+": its decision", v1alpha1.UserStatusMuted, now.Triage.UserStatus)
		}
		harness.Same(t, when+": open findings", 2, o.open()[project.Name])
	}
	env.Patch(t, project, `{"spec":{"relativePath":"services/payments"}}`)
	completes("services/payments")
	harness.Same(t, "findings after a patch before the upload", len(before), len(o.everything()))
	kept("a patch before the upload")

	harness.Contains(t, "the warnings", completes("services/billing"), "(services/billing) did not exist, and was created"+hint)
	second := named("services/billing")
	env.Patch(t, project, `{"spec":{"relativePath":"services/billing"}}`)
	refused, _ := uploads("services/billing")
	c.wantsFailed(refused, "have the same spec.relativePath")
	env.Patch(t, second, `{"spec":{"relativePath":"services/billing.former"}}`)
	completes("services/billing")
	kept("a patch after the upload")
	harness.Same(t, "findings of the second, with what was decided in it", 2, o.open()[second.Name])
}

func TestAnUploadToAnUnknownIDCreatesTheRepository(t *testing.T) {
	o, c := newcomer(t)
	document := strings.Replace(sarif("one"), `"results":`, `"versionControlProvenance":[{"repositoryUri":"https://github.com/acme/web"}],"results":`, 1)
	post := func(path, query string) answer { return c.do(http.MethodPost, path+"/scans"+query, document, asSARIF) }
	c.do(http.MethodPost, "/v2/repos/web/projects/app/scans", sarif("one"), asSARIF).wants(http.StatusConflict, "a repository that the file does not name").
		says("versionControlProvenance")
	upload := decoded[openapi.Upload](post("/v2/repos/web/projects/app", "?dry_run=true&ref=refs/heads/main").wants(http.StatusOK, "a dry run"))
	if said := strings.Join(upload.Warnings, "\n"); !strings.Contains(said, "repository web") || !strings.Contains(said, "project app") || len(o.created()) != 0 {
		t.Errorf("a dry run says %q, and there are %d repositories", said, len(o.created()))
	}
	upload = decoded[openapi.Upload](post("/v2/repos/web/projects/app", "?ref=refs/heads/main").wants(http.StatusOK, "an upload"))
	if said := strings.Join(upload.Warnings, "\n"); !strings.Contains(said, "repository web") || !strings.Contains(said, "its branch main") || upload.Scans[0].Counts.Created != 1 {
		t.Errorf("an upload says %q", said)
	}
	harness.Same(t, "its warnings, read later", upload.Warnings, c.uploaded(upload.Id).Warnings)
	harness.Eventually(t, func(g Gomega) { g.Expect(c.get("/v2/repos/web/projects/app").status).To(Equal(http.StatusOK)) })
	post("/v2/repos/web/projects/proj", "").wants(http.StatusConflict, "a project of another repository")
	post("/v2/repos/web/projects/apq", "").wants(http.StatusConflict, "a project that is rather misspelt")
	for _, path := range []string{"/v2/repos/Web/projects/app", "/v2/repos/web/projects/a%2fb", "/v2/repos/a_b/projects/c"} {
		post(path, "").wants(http.StatusNotFound, path)
	}
	env.UseUp(t, "count/scans.appsec.dev", builder.Scan("probe", time.Now()).In(o.namespace).Build())
	c.do(http.MethodPost, "/v2/repos/late/projects/app2/scans", strings.Replace(document, "acme/web", "acme/late", 1), asSARIF).
		wants(http.StatusConflict, "no more scans").
		says("repository late (acme/late) did not exist, and was created. It has no branch",
			"are refused; if the repository was renamed or moved, its decisions are still with the earlier Repository", "project app2 did not exist")
}

// Nothing is created if the organization has not allowed it, or under names that belong to another
// organization.
func TestNothingIsCreatedUnlessAllowed(t *testing.T) {
	theirs, _ := uploader(t)
	theirs.create(builder.Repository("theirs").In(theirs.namespace).Mutate(func(r *v1alpha1.Repository) { r.Spec.FullName = "globex/theirs" }).Build())
	o, c := uploader(t)
	c.postAsGitHub("acme/shop", forGitHub(sarif("one"))).wants(http.StatusNotFound, "not wanted")
	harness.Same(t, "the repositories that were created", 0, len(o.created()))
	o, c = newcomer(t)
	c.wantsComplete(c.submitTo("globex/theirs", forGitHub(sarif("one"))))
	if created := o.created(); len(created) != 1 || created[0].Namespace != o.namespace || len(theirs.everything()) != 0 {
		t.Errorf("another organization's name led to %v", created)
	}
	for _, hostile := range []string{"..%2ftheirs/x", "acme/..", "%D0%B0cme/shop", "acme/sh%20op", "acme/x%00y", "a%2f%2fb/c"} {
		if a := c.postAsGitHub(hostile, forGitHub(sarif("one"))); a.status/100 != 4 {
			t.Errorf("%s: %d %s", hostile, a.status, a.body)
		}
	}
	harness.Same(t, "the repositories that were created", 1, len(o.created()))
}
