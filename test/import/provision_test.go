package import_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// tenant is a separate organization whose scanner imports.
type tenant struct {
	*testing.T
	name, namespace string
	config          *rest.Config
	scanner         *importer.Client
	batches         []*importer.Batch // with one result
}

func newTenant(t *testing.T, name string) *tenant {
	t.Helper()
	tn := &tenant{T: t, name: name, namespace: env.Organization(t, name)}
	var err error
	tn.config, err = env.Member(t.Context(), tn.namespace, "scanner", testenv.Scanner)
	harness.Must(t, err)
	tn.scanner = newClient(t, tn.config)
	tn.batches = collect(t, importer.Choices{}, document(numbered(1)...))
	return tn
}

// provisions finds or creates the place in the tenant's namespace, as an import of one result does.
func (tn *tenant) provisions(place importer.Place) (*importer.Found, error) {
	place.Namespace = tn.namespace
	return importer.Provision(tn.Context(), tn.scanner, place, tn.batches)
}

// letsImportsCreate allows imports to create repositories, and waits until the API server has
// observed that.
func (tn *tenant) letsImportsCreate() {
	tn.Helper()
	env.Patch(tn, builder.Organization(tn.name).Build(), `{"spec":{"imports":{"create":true}}}`)
	harness.Eventually(tn, func(g Gomega) {
		probe := provision.Repository(tn.namespace, "probe", provision.Facts{})
		g.Expect(tn.scanner.Create(tn.Context(), probe, client.DryRunAll)).To(Succeed())
	})
}

func (tn *tenant) repositories() []v1alpha1.Repository {
	tn.Helper()
	return testenv.List(tn, NewWithT(tn), env, &v1alpha1.RepositoryList{}, client.InNamespace(tn.namespace)).Items
}

func (tn *tenant) projects() []string {
	tn.Helper()
	list := testenv.List(tn, NewWithT(tn), env, &v1alpha1.ProjectList{}, client.InNamespace(tn.namespace))
	var folders []string
	for _, p := range list.Items {
		folders = append(folders, p.Spec.RelativePath)
	}
	slices.Sort(folders)
	return folders
}

// kubectl imports one file as the scanner.
func (tn *tenant) kubectl(file string, arguments ...string) *harness.Outcome {
	tn.Helper()
	return tn.plugin("import", file, arguments...)
}

// plugin gives one file to a command as the scanner.
func (tn *tenant) plugin(command, file string, arguments ...string) *harness.Outcome {
	tn.Helper()
	folder, err := pluginFolder()
	harness.Must(tn, err)
	all := append([]string{command, sarifFile(tn, file), "--kubeconfig", testenv.WriteKubeconfig(tn, tn.config, tn.namespace)}, arguments...)
	return harness.Run(tn, exec.CommandContext(tn.Context(), folder+"/kubectl-findings", all...)) //nolint:gosec // built above
}

// provenance adds to a file where its results come from.
func provenance(document, uri, branch string) string {
	return strings.Replace(document, `"results":`,
		`"versionControlProvenance":[{"repositoryUri":"`+uri+`","revisionId":"`+commitA+`","branch":"`+branch+`"}],"results":`, 1)
}

func TestARepositoryComesByItself(t *testing.T) {
	tn := newTenant(t, "fresh")
	file := provenance(document(numbered(3)...), "https://github.com/acme/payments.git", "main")
	place := []string{"--repository", "acme/payments", "--project", "payments"}

	tn.kubectl(file, place...).Fails(`there is no repository with spec.fullName "acme/payments" and spec.url "https://`,
		"spec.imports.create of the Organization is not true")
	tn.letsImportsCreate()

	tn.kubectl(file, append(place, "--dry-run")...).Wants("would create repository acme-payments-", "would create project payments", "3 created")
	// A review of a pull request is judged, too: its base was never scanned.
	judged := tn.plugin("review", file, "--repository", "acme/payments", "--pr", "4", "--commit", commitA, "--dry-run",
		"--fail-on", "new", "-o", "json")
	judged.Says("would create repository", `"created": 3`, `"passed": false`, `"unscanned"`, "\n  it has no branch: until you set spec.scanBranch")
	harness.Same(t, "exit code of a dry run of a review", 3, judged.Code)
	// A review creates no project, and without its project no repository.
	tn.plugin("review", file, "--repository", "acme/payments", "--pr", "4", "--commit", commitA, "--project", "payments").
		Fails(`there is no project "payments"`).Omits("imports.create")
	if there := tn.repositories(); len(there) > 0 {
		t.Errorf("dry runs and a refused review created %v", there)
	}
	// Nor do results that are not those of a branch.
	tn.kubectl(file, append(place, "--branch", "refs/pull/4/merge")...).Fails("import results of its branch first, and name it with --branch")
	harness.Same(t, "repositories", 0, len(tn.repositories()))
	tn.kubectl(file, append(place, "--branch", "refs/heads/main", "--dry-run")...).Wants("would create repository", "its branch is main")
	tn.kubectl(file, place...).Wants("\n  if the repository was renamed or moved, its decisions are still with the earlier Repository", "\ncreated project payments", "3 created")
	there := tn.repositories()
	if len(there) != 1 {
		t.Fatalf("there are %d repositories", len(there))
	}
	spec := there[0].Spec
	if spec.FullName != "acme/payments" || spec.URL != "https://github.com/acme/payments" || spec.Provider != "github" ||
		spec.CloneURL != "https://github.com/acme/payments.git" || spec.ScanBranch != "main" || spec.LastCommit == nil || spec.LastCommit.Hash != commitA {
		t.Errorf("its facts are %+v", spec)
	}

	// If a person corrects a fact, the next import keeps the correction; a name in other letter case is not
	// another repository.
	env.Patch(t, &there[0], `{"spec":{"scanBranch":"trunk"}}`)
	tn.kubectl(file, "--repository", "Acme/Payments", "--project", "payments").Wants("3 unchanged").Omits("created repository")
	if there = tn.repositories(); len(there) != 1 || there[0].Spec.ScanBranch != "trunk" {
		t.Errorf("there are %d repositories, the scan branch is %s", len(there), there[0].Spec.ScanBranch)
	}
	// The branch that is named is compared with the corrected one; results of another would close its findings.
	tn.kubectl(file, append(place, "--branch", "refs/heads/trunk")...).Wants("3 unchanged")
	tn.kubectl(document(), append(place, "--branch", "main")...).Fails("--branch is main, but", "branch trunk", "set spec.scanBranch")
	tn.kubectl(document(), append(place, "--branch", "HEAD")...).Fails("--branch is HEAD, which is not a branch")
	env.Patch(t, &there[0], `{"spec":{"scanBranch":"HEAD"}}`)
	tn.kubectl(document(), append(place, "--branch", "main")...).Fails("is HEAD, which is not a branch: set spec.scanBranch")
}

// payments returns a tenant in which an import has created the repository acme/payments and its project payments.
func payments(t *testing.T, name string) (tn *tenant, repository string) {
	t.Helper()
	tn = newTenant(t, name)
	tn.letsImportsCreate()
	found, err := tn.provisions(importer.Place{Repository: "acme/payments", Project: "payments"})
	harness.Must(t, err)
	return tn, found.Repository.Name
}

// Another name than that of what exists is a mistake, unless the folder of a further project is given.
func TestAMisspeltRepositoryOrProjectCreatesNothing(t *testing.T) {
	tn, repository := payments(t, "misspelt")
	tn.kubectl(document(), "--repository", "acme/payments", "--project", "payments-web", "--project-path", "web", "--tool", "other").
		Wants("created project payments-web (web)", "if its results were in another project before")
	leaving := builder.Project("leaving").In(tn.namespace).Repository(repository).Mutate(func(p *v1alpha1.Project) {
		p.Spec.RelativePath, p.Finalizers = "old", []string{"test.example/kept"}
	}).Build()
	env.Create(t, leaving)
	harness.Must(t, env.Client.Delete(t.Context(), leaving))
	projects := tn.projects()
	from := provenance(document(numbered(1)...), "https://github.com/acme/payments.git", "main")
	for _, tc := range []struct {
		repository, project, folder string
		want                        []string
	}{
		{"acme/late", "late", strings.Repeat("x", 2000), []string{"spec.relativePath"}},
		{"acme/paymnts", "payments", "", []string{"project payments belongs to repository " + repository + ", not to acme/paymnts: give"}},
		{"acme/pay mnts", "payments", "", []string{
			`there is no repository with spec.fullName "acme/pay mnts" in namespace "` + tn.namespace + `"`, "create the Repository"}},
		{"acme/shop", "Shop", "", []string{`there is no project "Shop" in namespace "` + tn.namespace + `", and none can have that name`}},
		{"acme/shop", "shop..web", "", []string{"and each part between dots must begin and end with a letter or a digit"}},
		{"acme/payments", "paymants", "", []string{`there is no project "paymants"`,
			"has others, for example payments: to add one, give its folder with --project-path (kubectl findings only), create"}},
		{"acme/payments", "paymants", ".", []string{"has others, for example payments"}},
		{"acme/payments", "payments-wep", "/web/", []string{"the folder web is that of the project payments-web: name that one"}},
		{"acme/payments", "successor", "old", []string{"has the project leaving, which is being deleted: wait until it is gone"}},
		{"paymants", "paymants", "", []string{`there is no repository "paymants"`, "name it OWNER/NAME with --repository"}},
	} {
		arguments := []string{"--repository", tc.repository, "--project", tc.project}
		if tc.folder != "" {
			arguments = append(arguments, "--project-path", tc.folder)
		}
		file := from
		if tc.repository == "paymants" { // the file names no other repository
			file = document(numbered(1)...)
		}
		tn.kubectl(file, arguments...).Fails(tc.want...)
	}
	// The file names the repository that was meant.
	tn.kubectl(from, "--repository", "paymants", "--project", "payments").Fails(`there is no repository "paymants"`, repository)
	tn.plugin("review", from, "--repository", "acme/paymnts", "--project", "payments", "--pr", "4", "--commit", commitA).
		Fails("belongs to repository " + repository + ", not to acme/paymnts: give")
	// The old name of a repository that was renamed is not taken for that of a new one.
	renamed := tn.repositories()[0]
	env.Patch(t, &renamed, `{"spec":{"fullName":"acme/billing"}}`)
	want := `would give to one with spec.fullName "acme/payments", but its spec.fullName is "acme/billing", its spec.url "", ` +
		`its spec.cloneURL "" and its spec.provider "": if it is the same repository, correct these fields or name it ` + renamed.Name +
		" (over REST upload to /v2/repos/" + renamed.Name + "/projects/"
	for command, arguments := range map[string][]string{
		"import": {"--project", "new"},
		"review": {"--pr", "4", "--commit", commitA, "--dry-run"},
	} {
		tn.plugin(command, document(numbered(1)...), append(arguments, "--repository", "acme/payments")...).
			Fails("the Repository "+renamed.Name+" has the name", want)
	}
	harness.Same(t, "repositories", 1, len(tn.repositories()))
	harness.Same(t, "folders of the projects", projects, tn.projects())
}

// What cannot be read may be the repository that was scanned, or the project whose name is misspelt: nothing is created
// beside it.
func TestNothingIsCreatedBesideWhatCannotBeRead(t *testing.T) {
	tn := newTenant(t, "unreadable")
	tn.letsImportsCreate()
	stores := func(kind, spec string) {
		t.Helper()
		harness.Must(t, env.PutIntoEtcd(t.Context(), kube.Resource(kind), tn.namespace, "odd", []byte(`{"apiVersion":"appsec.dev/v1alpha1",`+
			`"kind":"`+kind+`","metadata":{"name":"odd","namespace":"`+tn.namespace+`","uid":"odd"},"spec":`+spec+`}`)))
	}
	stores("Repository", `{"fullName":"acme/odd","url":7}`)
	tn.kubectl(document(numbered(1)...), "--repository", "acme/odd", "--project", "odd").Fails("repository odd cannot be read")
	harness.Must(t, env.Client.Delete(t.Context(), builder.Repository("odd").In(tn.namespace).Build()))

	stores("Project", `{"repositoryRef":{"name":"bare"},"relativePath":7}`)
	env.Create(t, builder.Repository("bare").In(tn.namespace).Build())
	for _, place := range []importer.Place{{Project: "old"}, {Project: "old", Folder: "src"}, {Patterns: provision.Patterns{"src"}}} {
		place.Repository = "bare"
		found, err := tn.provisions(place)
		harness.ErrorContains(t, "beside a project that cannot be read", err, "project odd cannot be read")
		harness.Same(t, "what is created there", 0, len(found.Provisioned))
	}
}

func TestWhatWasCreatedBeforeAFailureIsToldOnce(t *testing.T) {
	tn := newTenant(t, "used-up")
	tn.letsImportsCreate()
	env.UseUp(t, "count/scans.appsec.dev", builder.Scan("probe", time.Now()).In(tn.namespace).Build())
	for project, format := range map[string]string{"quiet": "--quiet", "text": "--quiet=false", "json": "-o=json"} {
		out := tn.kubectl(document(), "--repository", "acme/"+project, "--project", project, format).Fails()
		harness.Same(t, format+": it says so", 1, strings.Count(out.Stdout+out.Stderr, "acme-"+project+"-"))
	}
}

func TestImportsAtTheSameTimeMakeOneRepository(t *testing.T) {
	t.Parallel() // it mostly waits
	tn := newTenant(t, "hasty")
	tn.letsImportsCreate()
	names := []string{"acme/web", "Acme/Web", "acme/WEB", "acme/web.git"}
	var wg sync.WaitGroup
	errs := make([]error, len(names))
	for i, name := range names {
		wg.Go(func() {
			place := importer.Place{Repository: name, Patterns: provision.Patterns{"src"}}
			if i%2 == 0 { // every other import states it
				place.Claims.URLs = []string{"https://github.com/acme/web"}
			}
			_, errs[i] = tn.provisions(place)
		})
	}
	wg.Wait()
	for _, err := range errs {
		harness.Must(t, err)
	}
	harness.Same(t, "repositories", 1, len(tn.repositories()))
	harness.Same(t, "folders of the projects", []string{"src"}, tn.projects())
}

// Each import names another project of a repository without one, which may not exist either, or names none: one of them
// creates the first project. The others get an error that names it, or use it.
func TestImportsThatNameTwoFirstProjectsMakeOne(t *testing.T) {
	t.Parallel() // it mostly waits
	tn := newTenant(t, "rivals")
	tn.letsImportsCreate()
	env.Create(t, builder.Repository("web").In(tn.namespace).Build())
	for n, repository := range []string{"web", "acme/new"} {
		errs := make([]error, 4)
		unnamed := func(i int) bool { return repository == "web" && i%2 == 1 }
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				place := importer.Place{Repository: repository}
				if !unnamed(i) {
					place.Project = fmt.Sprintf("p-%d-%d", n, i)
				}
				_, errs[i] = tn.provisions(place)
			})
		}
		wg.Wait()
		made := 0
		for i, err := range errs {
			switch {
			case !unnamed(i) && err == nil:
				made++
			case !unnamed(i) && strings.Contains(err.Error(), "has others, for example "):
			default:
				harness.Must(t, err)
			}
		}
		// The first project of web may be that of an import that names none.
		if got := tn.projects(); made > 1 || made == 0 && repository != "web" || len(got) != n+1 {
			t.Errorf("%s: %d imports found their project, and there are %d in all", repository, made, len(got))
		}
	}
}

// A project that was moved to another folder, or that a person named, may have the name of the one to create. Its folder
// or its repository is another, so results go to a project of another name.
func TestAProjectWhoseNameIsTakenGetsAnother(t *testing.T) {
	t.Parallel() // it mostly waits
	tn := newTenant(t, "namesakes")
	tn.letsImportsCreate()
	env.Create(t, builder.Repository("till").In(tn.namespace).Build())
	env.Create(t, builder.Project("desk").In(tn.namespace).Repository("till").Build())
	env.Create(t, builder.Repository("desk").In(tn.namespace).Build())
	place := importer.Place{Repository: "desk", Patterns: provision.Patterns{"services/*"}}
	tn.batches = collect(t, importer.Choices{}, document(builder.Result{Rule: "R1", Path: "services/pay/a.go", Line: 1},
		builder.Result{Rule: "R1", Path: "README.md", Line: 1}))
	foldersOf := func(found *importer.Found) (folders []string) {
		t.Helper()
		for _, project := range found.Projects {
			harness.Same(t, "the repository of "+project.Name, "desk", string(project.Spec.RepositoryRef.Name))
			folders = append(folders, project.Spec.RelativePath)
		}
		return folders
	}
	taken := []v1alpha1.Project{}
	for _, dryRun := range []bool{true, false} {
		place.DryRun = dryRun
		found, err := tn.provisions(place)
		harness.Must(t, err)
		harness.Same(t, "folders of the new projects", []string{"", "services/pay"}, foldersOf(found))
		harness.Same(t, "a project of another repository keeps its name", false, found.Projects[0].Name == "desk")
		taken = found.Projects[1:]
	}

	env.Patch(t, &taken[0], `{"spec":{"relativePath":"services/payments"}}`)
	var wg sync.WaitGroup
	all, errs := make([]*importer.Found, 3), make([]error, 3)
	for i := range all {
		wg.Go(func() { all[i], errs[i] = tn.provisions(place) })
	}
	wg.Wait()
	made := 0
	for i, found := range all {
		harness.Must(t, errs[i])
		made += len(found.Provisioned)
		harness.Same(t, "projects of the folder", 1, len(slices.DeleteFunc(foldersOf(found), func(f string) bool { return f != "services/pay" })))
	}
	harness.Same(t, "projects that imports at the same time create", 1, made)

	moves := 1
	for ; moves < 20; moves++ {
		found, err := tn.provisions(place)
		if err != nil {
			harness.ErrorContains(t, "after many moves", err, `of the folder "services/pay" of repository desk are those of other projects (`+taken[0].Name)
			break
		}
		at := slices.IndexFunc(found.Projects, func(p v1alpha1.Project) bool { return p.Spec.RelativePath == "services/pay" })
		env.Patch(t, &found.Projects[at], fmt.Sprintf(`{"spec":{"relativePath":"services/moved%d"}}`, moves))
	}
	harness.Same(t, "moves until no name is left", 5, moves)
}

// afterListing returns the tenant with a scanner that calls do once it has listed projects for the first time.
func (tn *tenant) afterListing(do func()) *tenant {
	tn.Helper()
	listed, late := sync.OnceFunc(do), *tn
	late.scanner = through(tn.T, tn.config, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if r.Method == http.MethodGet && path.Base(r.URL.Path) == "projects" {
			listed()
		}
		return response, err
	})
	return &late
}

// A project that somebody else created a moment ago is used as it is, also if it has another name, and is created in a
// repository with other projects after these were listed.
func TestAProjectThatIsCreatedMeanwhileIsFound(t *testing.T) {
	tn := newTenant(t, "meanwhile")
	tn.letsImportsCreate()
	create := func(project, folder string) {
		_, err := tn.provisions(importer.Place{Repository: "acme/web", Project: project, Folder: folder})
		harness.Must(t, err)
	}
	create("lib", "lib")
	late := tn.afterListing(func() { create("mine", "src") })
	found, err := late.provisions(importer.Place{Repository: "acme/web", Patterns: provision.Patterns{"src"}})
	harness.Must(t, err)
	if len(found.Provisioned) > 0 || len(found.Projects) != 2 {
		t.Errorf("created %v, and found %+v", found.Provisioned, found.Projects)
	}
	harness.Same(t, "folders of the projects", []string{"lib", "src"}, tn.projects())
}

// A dry run lists the projects only once: then it meets the project when it tries to create it.
func TestADryRunFindsAProjectThatIsCreatedMeanwhile(t *testing.T) {
	tn := newTenant(t, "meanwhile-dry")
	tn.letsImportsCreate()
	env.Create(t, builder.Repository("web").In(tn.namespace).Build())
	place := importer.Place{Repository: "web", Patterns: provision.Patterns{"src"}}
	late := tn.afterListing(func() {
		_, err := tn.provisions(place)
		harness.Must(t, err)
	})
	rehearsed := place
	rehearsed.DryRun = true
	found, err := late.provisions(rehearsed)
	harness.Must(t, err)
	harness.Same(t, "projects that it would create", 0, len(found.Provisioned))
	harness.Same(t, "projects that it found", 1, len(found.Projects))
}

func TestFoldersBecomeProjects(t *testing.T) {
	tn := newTenant(t, "folders")
	tn.letsImportsCreate()
	at := func(path string) builder.Result {
		return builder.Result{Rule: "R1", Message: "of " + path, Path: path, Line: 1}
	}
	provisions := func(place importer.Place, results ...builder.Result) ([]importer.Provisioned, error) {
		place.Namespace, place.Repository, place.Patterns = tn.namespace, "acme/mono", provision.Patterns{"services/*"}
		found, err := importer.Provision(t.Context(), tn.scanner, place, collect(t, importer.Choices{}, document(results...)))
		if err != nil {
			return nil, err
		}
		return found.Provisioned, nil
	}
	made, err := provisions(importer.Place{DryRun: true}, at("services/api/main.go"), at("README.md"))
	harness.Must(t, err)
	if len(made) != 3 || len(tn.repositories()) > 0 {
		t.Errorf("a dry run says %v", made)
	}
	_, err = provisions(importer.Place{}, at("services/api/main.go"), at("README.md"))
	harness.Must(t, err)
	harness.Same(t, "folders of the projects", []string{"", "services/api"}, tn.projects())
	made, err = provisions(importer.Place{}, at("services/api/main.go"), at("services/web/main.go"))
	harness.Must(t, err)
	if len(made) != 1 || made[0].Of != "services/web" {
		t.Errorf("the second import created %v", made)
	}
	var many []builder.Result
	for i := range provision.MaxProjects + 1 {
		many = append(many, at("services/s"+strings.Repeat("x", i)+"/main.go"))
	}
	if _, err = provisions(importer.Place{}, many...); err == nil || len(tn.projects()) != 3 {
		t.Errorf("too many at a time: %v, and there are %d", err, len(tn.projects()))
	}
}

// Hostile names are refused, or result in separate names: they never reach another organization's
// repository.
func TestHostileNamesReachNobodyElses(t *testing.T) {
	tn := newTenant(t, "harmed")
	other := newTenant(t, "unharmed")
	env.Create(t, builder.Repository("theirs").In(other.namespace).Mutate(func(r *v1alpha1.Repository) {
		r.Spec.FullName = "unharmed/theirs"
	}).Build())
	tn.letsImportsCreate()
	for _, name := range []string{"../theirs", "org-unharmed/../theirs", "a/b\x00c", "a/" + strings.Repeat("b", 600), "аcme/pay", "a//b", "/", "a/", "/b",
		"UPPER", "a b", "a%2fb", strings.Repeat("x", 300)} {
		if _, err := tn.provisions(importer.Place{Repository: name}); err == nil {
			t.Errorf("%q was created", name)
		}
	}
	found, err := tn.provisions(importer.Place{Repository: "unharmed/theirs"})
	harness.Must(t, err)
	if found.Repository.Namespace != tn.namespace || len(other.repositories()) != 1 || len(tn.repositories()) != 1 {
		t.Errorf("the name of another organization's repository led to %s/%s", found.Repository.Namespace, found.Repository.Name)
	}
}
