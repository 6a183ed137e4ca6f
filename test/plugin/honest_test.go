package plugin_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// An organization that does not exist has no findings, and to say only that would be taken for an answer.
func TestAMisspeltOrganizationIsAnError(t *testing.T) {
	o := newOrganization(t, "spelling")
	for _, arguments := range []string{
		"list", "list -o json", "list --no-headers --sort-by severity", "triage --severity high --mute --yes", "key list", "history f-1",
		"triage f-1 --mute", "redeliver --failed --yes",
	} {
		o.administrator().findings(append(strings.Fields(arguments), "--organization", "spellign")...).
			fails(`there is no namespace "org-spellign"`, "Did you mean --organization spelling?")
		o.administrator().findings(append(strings.Fields(arguments), "-n", "org-nothing-like-it")...).
			fails(`there is no namespace "org-nothing-like-it"`, "--organization, --namespace")
	}
	// Who sees all organizations, and no other resource of the cluster, is told as well.
	token := o.token(testenv.Viewer)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer-of-all"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "findings-viewer"},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: testenv.ServiceAccountUsername(o.namespace, "some-viewer"),
		}},
	}
	o.must(env.Client.Create(t.Context(), binding))
	t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), binding) })
	harness.Eventually(t, func(g Gomega) {
		a := o.as(token).findings("list", "--organization", "spellign")
		g.Expect(a.code).To(Equal(1))
		g.Expect(a.stderr).To(ContainSubstring(`there is no namespace "org-spellign"`))
	})
	// An organization without findings is no error.
	o.administrator().findings("list").wants("no findings match in namespace " + o.namespace)
}

func TestAFlagGivenTwiceIsAnError(t *testing.T) {
	o := newOrganization(t, "twice")
	o.has(builder.Finding("f-1"))
	p := o.member(testenv.Triager)
	for arguments, want := range map[string]string{
		"list --tool gosec --tool trivy":                           `"gosec" before`,
		"list -n org-a -n org-b":                                   `"org-a" before`,
		"list --organization a --organization twice":               `"a" before`,
		"list --limit 1 --limit 2":                                 `"1" before`,
		"triage f-1 --mute --comment a --comment b":                `"a" before`,
		"triage f-1 --mute --mute":                                 "given twice",
		"import x.sarif --repository a --repository b --project c": `"a" before`,
	} {
		p.findings(strings.Fields(arguments)...).fails(want, "give it once")
	}
	p.findings("list", "--severity", "high", "--severity", "low", "--state", "open", "--state", "closed").wants("f-1")
	if status := o.finding("f-1").Spec.Triage.UserStatus; status != v1alpha1.UserStatusOpen {
		t.Errorf("a command that was refused has decided: %s", status)
	}
}

// The controllers follow an import after a while. What they have yet to see is decided about as well, by
// what the scan says of it.
func TestATriageReachesWhatTheControllersHaveYetToSee(t *testing.T) {
	const n = 379
	o := newOrganization(t, "just-imported")
	o.has(many(n)...)
	o.has(builder.Finding("f-gone").Closed(time.Now(), "s-1"), builder.Finding("f-reopened"))
	// f-reopened was closed when the controllers last saw it; f-gone was open.
	o.observed("f-reopened", func(s *v1alpha1.FindingStatus) { s.State, s.ObservedGeneration = v1alpha1.FindingStateClosed, 0 })
	o.observed("f-gone", func(s *v1alpha1.FindingStatus) { s.State, s.ObservedGeneration = v1alpha1.FindingStateOpen, 0 })
	triager := o.member(testenv.Triager)

	a := triager.findings("list", "--state", "closed", "--no-headers").wants("f-gone", "closed")
	if lines := strings.Count(a.stdout, "\n"); lines != 1 {
		t.Errorf("%d findings are listed as closed, want 1:\n%s", lines, a.stdout)
	}
	triager.findings("list", "--state", "open", "--limit", "20").wants("there are more: these are 20")
	triager.findings("triage", "--state", "open", "--mute", "--yes", "-q").
		wants(fmt.Sprintf("findings: %d muted, 0 unchanged, 0 failed", n+1))
	if muted := o.withVerdict(v1alpha1.UserStatusMuted); muted != n+1 {
		t.Errorf("%d findings are muted, want %d", muted, n+1)
	}
	if status := o.finding("f-gone").Spec.Triage.UserStatus; status != v1alpha1.UserStatusOpen {
		t.Errorf("a finding that the scan closed was decided about: %s", status)
	}
	triager.findings("list", "--state", "open").wants("no findings match")
}

func TestFindingsAreChosenByWhatTheScannerNamed(t *testing.T) {
	o := newOrganization(t, "named")
	o.has(
		builder.Finding("f-lodash").Severity(v1alpha1.LevelHigh).Mutate(func(f *v1alpha1.Finding) {
			f.Spec.RuleID, f.Spec.Details.Score = "GHSA-29mw-wpgm-hmr9", "7.5"
			f.Spec.Vulnerability = &v1alpha1.FindingVulnerability{ID: "CVE-2020-28500", Aliases: []string{"GHSA-29mw-wpgm-hmr9"}}
			f.Spec.Package = &v1alpha1.FindingPackage{PURL: "pkg:npm/lodash@4.17.15", Name: "lodash", Version: "4.17.15"}
			f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: "web/yarn.lock"}
		}),
		builder.Finding("f-es").Severity(v1alpha1.LevelHigh).Mutate(func(f *v1alpha1.Finding) {
			f.Spec.Details.Score = "10.0"
			f.Spec.Package = &v1alpha1.FindingPackage{PURL: "pkg:npm/lodash-es@4.17.15", Name: "lodash-es"}
			f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: "web-old/yarn.lock"}
		}),
		builder.Finding("f-none").Severity(v1alpha1.LevelHigh),
	)
	viewer := o.member(testenv.Viewer)
	for arguments, want := range map[string]string{
		"--vulnerability cve-2020-28500":        "f-lodash",
		"--vulnerability GHSA-29mw-wpgm-hmr9":   "f-lodash",
		"--vulnerability CVE-2020-2850":         "",
		"--package lodash":                      "f-lodash",
		"--package pkg:npm/lodash":              "f-lodash",
		"--package pkg:npm/lodash@4.17.15":      "f-lodash",
		"--rule GHSA-29mw-wpgm-hmr9":            "f-lodash",
		"--file web/yarn.lock":                  "f-lodash",
		"--file web/":                           "f-lodash",
		"--file web":                            "",
		"--severity high --sort-by severity":    "f-es f-lodash f-none",
		"--package lodash-es --severity medium": "",
	} {
		a := viewer.findings(append([]string{"list", "-o", "name"}, strings.Fields(arguments)...)...).wants()
		got := strings.ReplaceAll(strings.Join(strings.Fields(a.stdout), " "), "finding.appsec.dev/", "")
		if got != want {
			t.Errorf("list %s shows %q, want %q", arguments, got, want)
		}
	}
	o.member(testenv.Triager).findings("triage", "--package", "lodash", "--mute", "--yes").wants("1 muted")
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
	ours := age(viewer.findings("list").wants().stdout)
	kubectl := exec.CommandContext(t.Context(), testenv.Binary(t, "kubectl"), "get", "findings")
	theirs := age(viewer.ended(viewer.equip(kubectl)).wants().stdout)
	for _, shown := range []string{ours, theirs} {
		if d, err := time.ParseDuration(shown); err != nil || d > time.Hour {
			t.Errorf("kubectl findings list shows the age %s, kubectl get %s; want that of the resource, made just now (%v)", ours, theirs, err)
		}
	}
}

func TestOnlyFormatsThatWorkArePromised(t *testing.T) {
	o := newOrganization(t, "formats")
	o.has(builder.Finding("f-1"))
	viewer := o.member(testenv.Viewer)
	viewer.findings("list", "-o", "custom-columns=NAME:.metadata.name").fails("must be table, wide, json, yaml, name, jsonpath=...")
	for _, format := range []string{
		"table", "wide", "json", "yaml", "name", "jsonpath={.items[*].metadata.name}", "jsonpath-as-json={.items[*].metadata.name}",
		"go-template={{range .items}}{{.metadata.name}}{{end}}", "template={{range .items}}{{.metadata.name}}{{end}}",
	} {
		viewer.findings("list", "-o", format).wants("f-1")
	}
}

func TestAnImportNamesTheRoleThatHelps(t *testing.T) {
	o := newOrganization(t, "import-role")
	env.Create(t, builder.Repository("shop").In(o.namespace).Build(), builder.Project("web").In(o.namespace).Repository("shop").Build())
	file := filepath.Join(t.TempDir(), "x.sarif")
	o.must(os.WriteFile(file, []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[{"ruleId":"R","message":{"text":"x"}}]}]}`), 0o600))
	arguments := []string{"import", file, "--repository", "shop", "--project", "web"}
	o.member(testenv.Viewer).findings(arguments...).fails("forbidden", "findings-scanner", "kubectl create rolebinding")
	o.administrator().findings(append(arguments, "--organization", "import-rol")...).fails(`no namespace "org-import-rol"`, "--organization import-role?")
}
