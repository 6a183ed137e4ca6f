package plugin_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// An organization that does not exist has no findings, but reporting only that would be misleading.
func TestAMisspeltOrganizationIsAnError(t *testing.T) {
	o := newOrganization(t, "kestrel")
	for _, arguments := range []string{
		"list", "list -o json", "list --no-headers --sort-by severity", "triage --severity high --mute --yes", "key list", "key create x", "history f-1",
		"triage f-1 --mute", "redeliver --failed --yes",
	} {
		o.administrator().findings(append(strings.Fields(arguments), "--organization", "kestrle")...).
			Fails(`there is no namespace "org-kestrle"`, "Did you mean --organization kestrel?")
	}
	o.administrator().findings("list", "-n", "org-nothing-like-it").
		Fails(`there is no namespace "org-nothing-like-it"`, "--organization, --namespace")
	// Users who can list all organizations, but no other cluster-scoped resource, also get the
	// error.
	token := o.token(testenv.Viewer)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer-of-all"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "findings-viewer"},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: testenv.ServiceAccountUsername(o.namespace, "some-viewer"),
		}},
	}
	env.Create(o, binding)
	t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), binding) })
	harness.Eventually(t, func(g Gomega) {
		a := o.as(token).findings("list", "--organization", "kestrle")
		g.Expect(a.Code).To(Equal(1))
		g.Expect(a.Stderr).To(ContainSubstring(`there is no namespace "org-kestrle"`))
	})
	// An organization without findings is not an error.
	o.administrator().findings("list").Wants("no findings match in namespace " + o.namespace)
	o.administrator().findings("list", "-n", "default").Fails("namespace default belongs to no organization: choose one with --organization")
	o.member(testenv.Triager).findings("key", "create", "ci", "-n", "default").Fails("forbidden", "namespace default belongs to no organization")
	const nobodys = "error: namespace default belongs to no organization"
	o.administrator().findings("review", "--repository", "acme/web", "--pr", "1", "--status", "open", "-n", "default").Fails(nobodys)
	o.member(testenv.Triager).findings("triage", "--tool", "gosec", "--mute", "--yes", "-n", "default").Fails(nobodys)
}

// A name that does not exist must not look like an empty result. Who may not read the object is not told.
func TestAFilterNamesWhatExists(t *testing.T) {
	o := newOrganization(t, "names")
	env.Create(o, builder.Project("web").In(o.namespace).Repository("shop").Build())
	viewer := o.member(testenv.Viewer)
	viewer.findings("list", "--project", "wbe").Fails(`projects.appsec.dev "wbe" not found`, "Did you mean web?")
	viewer.findings("list", "--repository", "nowhere").Fails(`repositories.appsec.dev "nowhere" not found`, "--organization")
	viewer.findings("list", "--policy", "nowhere").Fails(`triagepolicies.appsec.dev "nowhere" not found`)
	for flag, kind := range map[string]string{
		"--repository": "Repository", "--project": "Project", "--policy": "TriagePolicy",
	} {
		viewer.findings("list", flag, "acme/payments").Fails("give the name of the " + kind + ", without a slash (kubectl get ")
	}
	viewer.findings("list", "--project", "web").Wants("no findings match")
	g := &gateway{before: func(w http.ResponseWriter, r *http.Request) bool {
		forbidden := strings.Contains(r.URL.Path, "/projects/")
		if forbidden {
			w.WriteHeader(http.StatusForbidden)
		}
		return forbidden
	}}
	g.through(o, o.token(testenv.Viewer)).findings("list", "--project", "wbe").Wants("no findings match")
}

// The controllers lag behind an import. Findings that they have not observed yet are also decided about,
// judging by what the scan reports. They are more than a page holds, and muted by one patch.
func TestATriageReachesWhatTheControllersHaveYetToSee(t *testing.T) {
	const n = 509
	o := newOrganization(t, "just-imported").withMany(n)
	o.has(builder.Finding("f-gone").Closed(time.Now(), "s-1"), builder.Finding("f-reopened"))
	// When the controllers last observed them, f-reopened was closed and f-gone was open.
	o.observed("f-reopened", func(s *v1alpha1.FindingStatus) { s.State, s.ObservedGeneration = v1alpha1.FindingStateClosed, 0 })
	o.observed("f-gone", func(s *v1alpha1.FindingStatus) { s.State, s.ObservedGeneration = v1alpha1.FindingStateOpen, 0 })
	g := &gateway{}
	triager := g.through(o, o.token(testenv.Triager))

	a := triager.findings("list", "--state", "closed", "--no-headers").Wants("f-gone", "closed")
	harness.Same(t, "findings that are listed as closed", 1, strings.Count(a.Stdout, "\n"))
	triager.findings("list", "--state", "open", "--limit", "20").Wants("more findings match than the 20 shown")
	before := len(g.sent(http.MethodGet, "/findings"))
	triager.findings("triage", "--state", "open", "--mute", "--yes").
		Wants("... and 490 more", fmt.Sprintf("findings: %d muted, 0 unchanged, 0 failed", n+1))
	harness.Same(t, "lists", 2, len(g.sent(http.MethodGet, "/findings"))-before)
	harness.Same(t, "patches", 1, len(g.sent(http.MethodPatch, "")))
	isList := func(r *request) bool { return !strings.Contains(r.path, "/findings/") }
	harness.Same(t, "reads of a single finding", 0, len(slices.DeleteFunc(g.sent(http.MethodGet, ""), isList)))
	harness.Same(t, "the muted findings", n+1, o.withVerdict(v1alpha1.UserStatusMuted))
	harness.Same(t, "a finding that the scan closed was decided about", v1alpha1.UserStatusOpen, o.finding("f-gone").Spec.Triage.UserStatus)
	triager.findings("list", "--state", "open").Wants("no findings match")
}

// The plugin has the same filters as the REST API, also those by which no API server selects.
func TestFindingsAreChosenByOwnerPackageScoreAndWords(t *testing.T) {
	o := newOrganization(t, "asked")
	march := time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)
	owned := func(name, owner string) *v1alpha1.Project {
		return builder.Project(name).In(o.namespace).Repository("shop").Mutate(func(p *v1alpha1.Project) { p.Spec.Owner = owner }).Build()
	}
	env.Create(t, builder.Repository("shop").In(o.namespace).Build(), owned("api", "team-a"), owned("web", "team-b"))
	finding := func(name, project, title, score string, day int) *builder.FindingBuilder {
		return builder.Finding(name).Project("shop", project).Title(title).Severity(v1alpha1.LevelHigh).DetectedAt(march.AddDate(0, 0, day)).
			Mutate(func(f *v1alpha1.Finding) { f.Spec.Details.Score = score })
	}
	o.has(
		finding("f-1", "api", "Path Traversal", "7.5", 0).Mutate(func(f *v1alpha1.Finding) {
			f.Spec.Package = &v1alpha1.FindingPackage{PURL: "pkg:npm/lodash@4.17.15", Name: "lodash", Version: "4.17.15"}
		}),
		finding("f-2", "web", "Weak hash", "10.0", 1), finding("f-3", "api", "Weak random", "", 2),
	)
	viewer := o.member(testenv.Viewer)
	for arguments, want := range map[string]string{
		"--package pkg:npm/lodash":           "f-1",
		"--package lodash --severity medium": "",
		"--min-score 7.6":                    "f-2",
		"--severity high --sort-by severity": "f-2 f-1 f-3",
		"--owner team-a --created-since 2026-03-02t00:00:00+01:00 --text weak": "f-3",
		"-A --owner team-b --text hash":                                        "f-2",
	} {
		who := viewer
		if strings.HasPrefix(arguments, "-A") {
			who = o.administrator()
		}
		harness.Same(t, "list "+arguments, want, who.lists(arguments))
	}
	o.member(testenv.Triager).findings("triage", "--owner", "team-a", "--text", "weak", "--mute", "--yes").Wants("1 muted")
}

func TestTheAgeIsThatOfKubectl(t *testing.T) {
	o := newOrganization(t, "ages")
	o.has(builder.Finding("f-old").DetectedAt(time.Now().Add(-90 * 24 * time.Hour)))
	viewer := o.member(testenv.Viewer)
	age := func(table string) string {
		lines := strings.Split(strings.TrimSpace(table), "\n")
		at := strings.LastIndex(lines[0], "AGE")
		if len(lines) != 2 || at < 0 {
			t.Fatalf("want a heading with AGE and one line:\n%s", table)
		}
		return strings.Fields(lines[1][at:])[0]
	}
	ours := age(viewer.findings("list").Wants().Stdout)
	kubectl := exec.CommandContext(t.Context(), testenv.Binary(t, "kubectl"), "get", "findings")
	theirs := age(harness.Run(t, viewer.equip(kubectl)).Wants().Stdout)
	for _, shown := range []string{ours, theirs} {
		if d, err := time.ParseDuration(shown); err != nil || d > time.Hour {
			t.Errorf("kubectl findings list shows the age %s, kubectl get %s; want that of the resource, made just now (%v)", ours, theirs, err)
		}
	}
}

func TestAnImportNamesTheRoleThatHelps(t *testing.T) {
	o := newOrganization(t, "import-role")
	env.Create(t, builder.Repository("shop").In(o.namespace).Build(), builder.Project("web").In(o.namespace).Repository("shop").Build())
	file := filepath.Join(t.TempDir(), "x.sarif")
	harness.Must(o, os.WriteFile(file, []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[{"ruleId":"R","message":{"text":"x"}}]}]}`), 0o600))
	arguments := []string{"import", file, "--repository", "shop", "--project", "web"}
	o.member(testenv.Viewer).findings(arguments...).Fails("forbidden", "findings-scanner", "kubectl create rolebinding")
	o.administrator().findings(append(arguments, "--organization", "import-rol")...).Fails(`no namespace "org-import-rol"`, "--organization import-role?")
}
