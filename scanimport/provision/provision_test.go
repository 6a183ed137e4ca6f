package provision

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// hostile generates any text, mostly similar to valid input.
func hostile() *rapid.Generator[string] {
	part := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9._-]{1,8}`), rapid.SampledFrom([]string{
		"", ".", "..", "..git", "org-globex", "аcme", "acme\u200b", "a b", "%2e%2e", "\x00", "é", "~", "*", "$(id)", "acme.git",
	}), rapid.String())
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(part, 1, 5).Draw(t, "parts"), rapid.SampledFrom([]string{"/", "//", `\`, ":"}).Draw(t, "between"))
	})
}

func fullName() *rapid.Generator[string] {
	return rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,60}(/[A-Za-z0-9][A-Za-z0-9._-]{0,60}){1,3}`)
}

func address() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		scheme := rapid.SampledFrom([]string{"https://", "http://", "ssh://git@", "git@", "file:///", "javascript:", "https://user:secret@"}).Draw(t, "scheme")
		host := rapid.SampledFrom([]string{"github.com", "git.example.com:8443", "gitlab.example.org", "", "evil host", "[::1]"}).Draw(t, "host")
		path := rapid.OneOf(fullName(), hostile()).Draw(t, "path")
		end := rapid.SampledFrom([]string{"", ".git", "/", "?token=secret", "#secret"}).Draw(t, "end")
		return scheme + host + rapid.SampledFrom([]string{"/", ":"}).Draw(t, "separator") + path + end
	})
}

func TestNamesAreLabelsOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		provider, name := hostile().Draw(t, "provider"), hostile().Draw(t, "name")
		repository := RepositoryName(provider, name)
		for _, made := range []string{repository, ProjectName(repository, ""), ProjectName(repository, name),
			NextProjectName(repository, "", repository), NextProjectName(repository, name, repository)} {
			if wrong := validation.IsDNS1123Label(made); len(wrong) > 0 {
				t.Fatalf("%q: %v", made, wrong)
			}
		}
		if other := RepositoryName(strings.ToUpper(provider), flip(name)); Fold(flip(name)) == Fold(name) && Fold(strings.ToUpper(provider)) == Fold(provider) && other != repository {
			t.Fatalf("%s and %s: another case of letters is another name", repository, other)
		}
		if another := hostile().Draw(t, "another"); Fold(another) != Fold(name) && RepositoryName(provider, another) == repository {
			t.Fatalf("%q and %q have one name", another, name)
		}
	})
}

// flip swaps the case of ASCII letters.
func flip(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

func TestNamesCanBeRead(t *testing.T) {
	for fullName, begins := range map[string]string{
		"acme/payments": "acme-payments-", "Acme/Pay.Ments": "acme-pay-ments-", "a/" + strings.Repeat("long", 30): "a-longlong",
		"___/~~~": "repository-",
	} {
		if name := RepositoryName("github", fullName); !strings.HasPrefix(name, begins) {
			t.Errorf("%s becomes %s, want %s...", fullName, name, begins)
		}
	}
	if a, b := RepositoryName("github", "acme/pay-ments"), RepositoryName("github", "acme-pay/ments"); a == b {
		t.Errorf("both are %s", a)
	}
}

// Facts are bounded, plain, and belong to the requested repository, whatever the input.
func TestFactsAreOfWhatWasAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claims := Claims{
			FullName: rapid.OneOf(rapid.Just(""), fullName(), hostile()).Draw(t, "full name"),
			URLs:     rapid.SliceOfN(address(), 0, 3).Draw(t, "urls"),
			Branch:   rapid.OneOf(rapid.SampledFrom([]string{"refs/heads/main", "main", "refs/pull/3/merge", "refs/tags/v1"}), rapid.String()).Draw(t, "branch"),
			Commit:   rapid.OneOf(rapid.StringMatching(`[0-9a-f]{40}`), rapid.String()).Draw(t, "commit"),
		}
		facts := claims.Facts()
		if claims.FullName != "" && !SameName(facts.FullName, strings.TrimSuffix(claims.FullName, ".git")) {
			t.Fatalf("%q became %q", claims.FullName, facts.FullName)
		}
		for _, address := range []string{facts.URL, facts.CloneURL} {
			page, err := url.Parse(address)
			if err != nil || page.User != nil || page.RawQuery+page.Fragment != "" ||
				strings.Contains(address, "secret") && !strings.Contains(Fold(facts.FullName), "secret") {
				t.Fatalf("%q holds what is nobody's business: %v", address, err)
			}
			if address != "" && !SameName(strings.TrimSuffix(page.Path, ".git"), "/"+facts.FullName) {
				t.Fatalf("%q is not the page of %q", address, facts.FullName)
			}
		}
		if strings.HasPrefix(facts.Branch, "refs/") || !isPlain(facts.Branch+facts.Commit) {
			t.Fatalf("branch %q, commit %q", facts.Branch, facts.Commit)
		}
		if CheckFullName(facts.FullName) != nil { // nothing is created
			return
		}
		if len(facts.FullName) > 512 || len(facts.CloneURL) > 2048 || len(facts.Provider) > 63 || len(facts.Branch) > 255 || len(facts.Commit) > 128 {
			t.Fatalf("too long: %+v", facts)
		}
	})
}

func TestFacts(t *testing.T) {
	const page = "https://github.com/acme/payments"
	whole := Facts{FullName: "acme/payments", Provider: "github", URL: page, CloneURL: page + ".git", Branch: "main", Commit: "8f3e1c2d"}
	bare := Facts{FullName: "acme/payments", Branch: "main", Commit: "8f3e1c2d"}
	for _, tc := range []struct {
		reason, fullName string
		urls             []string
		want             Facts
	}{
		{"a page", "", []string{page}, whole},
		{"what git clones", "", []string{"git@github.com:acme/payments.git"}, whole},
		{"ssh, with its port", "", []string{"ssh://git@github.com:22/acme/payments"}, whole},
		{"ssh over the port of HTTPS", "", []string{"ssh://git@SSH.github.com:443/acme/payments.git"}, whole},
		{"credentials are dropped", "", []string{"https://x-access-token:ghs_secret@github.com/acme/payments.git?a=b#c"}, whole},
		{"a token too", "", []string{"https://ghp_secret@github.com/acme/payments.git"}, whole},
		{"the first that is one", "", []string{"file:///home/runner/work/payments", page}, whole},
		{"the page of another is not written down", "acme/payments", []string{"https://github.com/evil/payments"}, bare},
		{"the page of the same in another case is", "acme/payments", []string{"https://github.com/acme/payments"}, whole},
		{"nothing but the name", "acme/payments", nil, bare},
		{"nothing at all", "", nil, Facts{Branch: "main", Commit: "8f3e1c2d"}},
	} {
		got := Claims{FullName: tc.fullName, URLs: tc.urls, Branch: "refs/heads/main", Commit: "8f3e1c2d"}.Facts()
		harness.Same(t, tc.reason, tc.want, got)
	}
}

func TestFullNames(t *testing.T) {
	for _, name := range []string{"acme/payments", "acme/.github", "acme/.dotfiles/web"} {
		harness.NoError(t, name, CheckFullName(name))
	}
	for _, name := range []string{"payments", "acme/", "/payments", "acme//payments", "acme/..", "./payments", "аcme/payments", "acme/pay ments",
		"acme/..github", "acme/.", "acme/" + strings.Repeat("x", 101), strings.Repeat("a/", 20) + "a", "acme/pay%2fments", "acme/\u202epayments"} {
		if CheckFullName(name) == nil {
			t.Errorf("%q was taken for a full name", name)
		}
	}
}

// What has been imported is not closed by the results of another branch.
func TestOnlyResultsOfItsBranchAreTaken(t *testing.T) {
	none, main := &v1alpha1.Repository{}, &v1alpha1.Repository{}
	main.Spec.ScanBranch, main.Spec.DefaultBranch = "main", "trunk"
	trunk := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{DefaultBranch: "trunk"}}
	full := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{ScanBranch: "refs/heads/main", DefaultBranch: "main"}}
	for _, tc := range []struct {
		reason     string
		repository *v1alpha1.Repository
		ref        string
		want       bool
	}{
		{"its branch", main, "main", true},
		{"its branch in full", main, "refs/heads/main", true},
		{"a branch that its Repository names in full", full, "main", true},
		{"both in full", full, "refs/heads/main", true},
		{"another than the one named in full", full, "feature", false},
		{"another branch", main, "feature", false},
		{"another one in full", main, "refs/heads/feature", false},
		{"a pull request", main, "refs/pull/4/merge", false},
		{"the default branch, where another is scanned", main, "trunk", false},
		{"the default branch", trunk, "trunk", true},
		{"another than the default branch", trunk, "feature", false},
		{"a repository without a branch", none, "feature", true},
		{"a pull request of one without a branch", none, "refs/pull/4/merge", false},
		{"what git answers for the branch of a detached checkout", none, "HEAD", false},
		{"a repository that is yet to be created, from a detached checkout", nil, "HEAD", false},
		{"a ref within the branches", none, "refs/heads/refs/pull/4/merge", false},
		{"nothing is said", none, "", true},
		{"a repository that is yet to be created", nil, "refs/heads/feature", true},
		{"a pull request of such a one", nil, "refs/pull/4/merge", false},
		{"a branch without a name", nil, "refs/heads/", false},
		{"a branch that an import does not record", nil, "refs/heads/größe", false},
		{"a branch that is too long to be recorded", nil, strings.Repeat("b", 256), false},
	} {
		harness.Same(t, tc.reason, tc.want, TakesRef(tc.repository, tc.ref))
	}
}

func TestARepositoryIsFoundByNameAndHost(t *testing.T) {
	repositories := []v1alpha1.Repository{*repository("a", "github", "acme/payments"), *repository("b", "", "acme/web"),
		*repository("c", "gitlab", "acme/twin"), *repository("d", "github", "acme/twin"), *repository("e", "", "")}
	for _, tc := range []struct {
		reason, provider, fullName, want string
		ambiguous                        bool
	}{
		{"by its name", "github", "acme/payments", "a", false},
		{"in another case", "GitHub", "ACME/Payments", "a", false},
		{"nobody says who hosts it", "", "acme/payments", "a", false},
		{"nobody wrote down who hosts it", "gitlab", "acme/web", "b", false},
		{"hosted elsewhere", "gitlab", "acme/payments", "", false},
		{"one of two", "gitlab", "acme/twin", "c", false},
		{"either of two", "", "acme/twin", "", true},
		{"no name is no name", "", "", "", false},
	} {
		found, err := Find(repositories, Facts{Provider: tc.provider, FullName: tc.fullName})
		name := ""
		if found != nil {
			name = found.Name
		}
		if (err != nil) != tc.ambiguous || name != tc.want {
			t.Errorf("%s: got %q, %v, want %q", tc.reason, name, err, tc.want)
		}
	}
}

// A provider has several installations, which must not be confused.
func TestFindTellsSitesApart(t *testing.T) {
	at := func(address string) Facts {
		return Claims{URLs: []string{address}}.Facts()
	}
	blank := func(site string) Facts { // people create such a Repository, because an import does not
		return Claims{FullName: "acme/pay ments", URLs: []string{site + "/acme/pay%20ments"}}.Facts()
	}
	public, own, other := at("https://gitlab.com/acme/web"), at("git@gitlab.corp.example:acme/web.git"), at("https://git.corp.example/acme/web")
	all := []Facts{public, own, other, blank("https://git.one.example"), blank("https://git.two.example")}
	for i, a := range all {
		there := []v1alpha1.Repository{*Repository("org-acme", "there", a)}
		for j, b := range all {
			if found, err := Find(there, b); err != nil || (found != nil) != (i == j) {
				t.Errorf("%s is taken for %s: %v, %v", b.URL, a.URL, found, err)
			}
			if (RepositoryName(a.Site(), a.FullName) == RepositoryName(b.Site(), b.FullName)) != (i == j) {
				t.Errorf("%s and %s get one name", a.URL, b.URL)
			}
		}
	}
	harness.Same(t, "the name, as the provider's name stands for its own site",
		RepositoryName("gitlab", "acme/web"), RepositoryName(public.Site(), "acme/web"))
}

// An installation may have a host of its own for SSH.
func TestARepositoryIsFoundByTheHostThatGitClonesFrom(t *testing.T) {
	facts := Claims{URLs: []string{"ssh://git@ssh.corp.example:2222/acme/web.git"}}.Facts()
	at := func(name, page, cloned string) v1alpha1.Repository {
		r := *repository(name, "gitlab", "acme/web")
		r.Spec.URL, r.Spec.CloneURL = page, cloned
		return r
	}
	one := at("one", "https://git.corp.example/acme/web", "ssh://git@ssh.corp.example:2222/acme/web.git")
	other := at("other", "https://git.other.example/acme/web", "")
	own := at("own", "https://ssh.corp.example/acme/web", "")
	bare := at("bare", "", "https://ssh.corp.example/acme/web.git")
	unknown := at("unknown", "", "")
	public := at("public", "", "https://github.com/acme/web.git")
	public.Spec.Provider = ""
	for _, tc := range []struct {
		reason, want string
		repositories []v1alpha1.Repository
	}{
		{"the one that is cloned from that host", "one", []v1alpha1.Repository{one, other}},
		{"the one whose page is on that host comes first", "own", []v1alpha1.Repository{one, own}},
		{"none is on that host", "", []v1alpha1.Repository{other}},
		{"the one of two without a page", "bare", []v1alpha1.Repository{bare, public}},
		{"not one without a page that is cloned from another host", "one", []v1alpha1.Repository{one, public}},
		{"not one without an address", "one", []v1alpha1.Repository{one, unknown}},
	} {
		found, err := Find(tc.repositories, facts)
		harness.NoError(t, tc.reason, err)
		harness.Same(t, tc.reason, tc.want, ptr.Deref(found, v1alpha1.Repository{}).Name)
	}
}

// An SSH host does not tell where the page is, unless it is a public provider's.
func TestARepositoryWithoutAPageIsFoundUnlessItsCloneURLNamesAnotherHost(t *testing.T) {
	for _, tc := range []struct {
		cloned, page string
		found        bool
	}{
		{"ssh://git@ssh.corp.example:2222/acme/web.git", "https://git.corp.example/acme/web", true},
		{"git@ssh.dev.azure.com:v3/acme/shop/web", "https://dev.azure.com/acme/shop/_git/web", true},
		{"git@github-work:acme/web.git", "https://github.com/acme/web", true},
		{"git@github.com:acme/web.git", "https://gitlab.com/acme/web", false},
		{"git@gitlab.corp.example:acme/web.git", "https://github.com/acme/web", false},
		{"http://gitea-http.gitea.svc:3000/acme/web.git", "https://gitea.example.com/acme/web", false},
	} {
		facts := Claims{URLs: []string{tc.page}}.Facts()
		r := *repository("web", "", facts.FullName)
		r.Spec.CloneURL = tc.cloned
		found, err := Find([]v1alpha1.Repository{r}, facts)
		harness.NoError(t, tc.cloned, err)
		harness.Same(t, tc.cloned+" is found for "+tc.page, tc.found, found != nil)
	}
}

func repository(name, provider, fullName string) *v1alpha1.Repository {
	return Repository("org-acme", name, Facts{Provider: provider, FullName: fullName})
}

func TestAFileBelongsToTheDeepestFolderThatMatches(t *testing.T) {
	patterns := Patterns{"services/*", "services/*/plugins/*", "web", "lib-*"}
	for file, want := range map[string]string{
		"services/api/main.go":         "services/api",
		"services/api/plugins/a/x.go":  "services/api/plugins/a",
		"services/api/plugins/README":  "services/api",
		"services/README.md":           "",
		"web/index.js":                 "web",
		"webshop/index.js":             "",
		"lib-go/a.go":                  "lib-go",
		"":                             "",
		"/services/./x/../api/main.go": "services/api",
		`services\api\main.go`:         "services/api",
		"../../services/api/main.go":   "services/api",
		"services/" + strings.Repeat("x", 1100) + "/a": "",
		"services/\x01/a":    "",
		"services/.. /a.go":  "",
		"services/api /a.go": "",
	} {
		harness.Same(t, file, want, patterns.Folder(file))
	}
}

// beside returns projects of these folders that were created while the patterns were in force.
func beside(patterns Patterns, folders []string) (out []Existing) {
	for _, folder := range folders {
		out = append(out, Existing{folder, patterns})
	}
	return out
}

func TestMissing(t *testing.T) {
	monorepo := Patterns{"services/*"}
	for _, tc := range []struct {
		reason          string
		patterns        Patterns
		existing, files []string
		want            []string
		beside          Patterns // of all existing projects
	}{
		{"a repository is one project", nil, nil, []string{"a/b.go", "c.go"}, []string{""}, nil},
		{"nothing was found in a new one", monorepo, nil, nil, []string{""}, nil},
		{"the only project has everything", nil, []string{"app"}, []string{"lib/x.go"}, nil, nil},
		{"each folder one", monorepo, nil, []string{"services/a/x", "services/b/x"}, []string{"services/a", "services/b"}, nil},
		{"and the rest of it one", monorepo, nil, []string{"services/a/x", "README"}, []string{"", "services/a"}, nil},
		{"what is there stays", monorepo, []string{"services/a", ""}, []string{"services/a/x", "README"}, nil, nil},
		{"a wider one from before the patterns has the folder's findings", monorepo, []string{""}, []string{"services/a/x"}, nil, nil},
		{"a wider one that came with the patterns has none", monorepo, []string{""}, []string{"services/a/x"}, []string{"services/a"}, monorepo},
		{"a wider one that came with other patterns may have some", monorepo, []string{""}, []string{"services/a/x"}, nil, Patterns{"libs/*"}},
		{"a wider one that came with wider patterns has none", Patterns{"services/*/cmd"}, []string{""}, []string{"services/a/cmd/x"}, []string{"services/a/cmd"}, monorepo},
		{"a narrower one has it", monorepo, []string{"services/a/cmd"}, []string{"services/a/cmd/x"}, nil, nil},
		{"the only one does not have what a pattern sorts", monorepo, []string{"services/a"}, []string{"README"}, []string{""}, nil},
		{"several, and none that holds it", nil, []string{"a", "b"}, []string{"c/x"}, []string{""}, nil},
		{"several, and one that does", nil, []string{"a", "b"}, []string{"a/x"}, nil, nil},
	} {
		got, err := tc.patterns.Missing(beside(tc.beside, tc.existing), slices.Values(tc.files))
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, %v, want %q", tc.reason, got, err, tc.want)
		}
	}
	var files []string
	for i := range MaxProjects + 1 {
		files = append(files, fmt.Sprintf("services/%d/x", i))
	}
	if _, err := monorepo.Missing(nil, slices.Values(files)); err == nil {
		t.Error("one import creates any number of projects")
	}
	many := Project(repository("shop", "github", "acme/shop"), "shop", "", slices.Repeat(monorepo, 1000))
	harness.Same(t, "patterns that an annotation of any length holds", maxPatterns, len(ExistingOf(many).Beside))
	many.Annotations[v1alpha1.BesideAnnotation] = strings.Repeat("\n", maxPatterns) + "services/*\n\nweb\n"
	harness.Same(t, "patterns between empty lines", Patterns{"services/*", "web"}, ExistingOf(many).Beside)

	manifest := harness.RepositoryFile(t, "config", "crd", "bases", "appsec.dev_organizations.yaml")
	crd := &apiextensionsv1.CustomResourceDefinition{}
	harness.Must(t, yaml.Unmarshal([]byte(manifest), crd))
	imports := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["imports"]
	harness.Same(t, "the schema's bound", int64(maxPatterns), *imports.Properties["projects"].MaxItems)
}

// Once the missing projects exist, none are missing, whatever the order of the files.
func TestNothingIsMissingTwice(t *testing.T) {
	file := rapid.StringMatching(`([ab]/){0,3}[xy]`)
	rapid.Check(t, func(t *rapid.T) {
		patterns := Patterns(rapid.SliceOfNDistinct(rapid.StringMatching(`[ab*](/[ab*]){0,2}`), 0, 3, rapid.ID).Draw(t, "patterns"))
		existing := rapid.SliceOfNDistinct(rapid.StringMatching(`|[ab](/[ab]){0,2}`), 0, 3, rapid.ID).Draw(t, "existing")
		files := rapid.SliceOf(file).Draw(t, "files")
		before := beside(nil, existing)
		missing, err := patterns.Missing(before, slices.Values(files))
		harness.Must(t, err)
		all := slices.Concat(before, beside(patterns, missing))
		if more, err := patterns.Missing(all, slices.Values(files)); err != nil || len(more) > 0 {
			t.Fatalf("with %q there is still %q missing, %v", all, more, err)
		}
		slices.Reverse(files)
		if again, err := patterns.Missing(before, slices.Values(files)); err != nil || !slices.Equal(again, missing) {
			t.Fatalf("another order misses %q, not %q, %v", again, missing, err)
		}
		for _, folder := range missing {
			if slices.Contains(existing, folder) {
				t.Fatalf("%q is there", folder)
			}
		}
	})
}
