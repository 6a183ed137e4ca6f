package admission_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// The claims of docs/kinds/finding.md about decisions in Git, tested with kubectl. Flux and Argo CD do as it does with
// --force-conflicts.

// repo is a folder of manifests that is applied to the namespace.
type repo struct {
	t      *testing.T
	folder string
	// kubeconfig is that of an administrator, which GitOps tools usually are.
	kubeconfig string
}

func newRepo(t *testing.T, c *cast) *repo {
	t.Helper()
	return &repo{t: t, folder: t.TempDir(), kubeconfig: testenv.WriteKubeconfig(t, c.members[admin].config, c.namespace)}
}

// commit writes a manifest of a finding into the folder; spec is one line of YAML, or empty.
func (r *repo) commit(name, spec string) {
	r.t.Helper()
	manifest := fmt.Sprintf("apiVersion: %s\nkind: Finding\nmetadata: {name: %s}\n%s\n", v1alpha1.GroupVersion, name, spec)
	harness.Must(r.t, os.WriteFile(filepath.Join(r.folder, name+".yaml"), []byte(manifest), 0o600))
}

// sync applies the folder, without force.
func (r *repo) sync(more ...string) (string, error) {
	r.t.Helper()
	return testenv.TryKubectl(r.t, r.kubeconfig, append([]string{"apply", "--server-side", "-f", r.folder}, more...)...)
}

func (r *repo) mustSync(more ...string) {
	r.t.Helper()
	if out, err := r.sync(more...); err != nil {
		r.t.Fatalf("sync: %v\n%s", err, out)
	}
}

// scanned returns a finding that a scanner has reported, without a decision.
func scanned(t *testing.T, c *cast, name string) client.Object {
	t.Helper()
	finding := builder.Finding(name).In(c.namespace).Build()
	harness.Must(t, scan(t, c.as(scanner), finding))
	return finding
}

const mutedInGit = `spec: {triage: {userStatus: muted, comments: accepted}}`

// A decision in Git belongs to Git: rescans keep it, and a forced sync overrides REST.
func TestGitOwnsTheDecisionThatItDeclares(t *testing.T) {
	c := newCast(t, "git-owns")
	finding, git := toUnstructured(t, scanned(t, c, "f")), newRepo(t, c)
	git.commit("f", mutedInGit)
	git.mustSync() // without force: nobody owns the default
	signed := map[string]any{"userStatus": "muted", "comments": "accepted", "by": c.members[admin].username}
	live := env.Stored(t, finding)
	wantTriage(t, live, signed)
	git.mustSync()
	harness.Same(t, "resourceVersion after a sync without a difference", live.GetResourceVersion(), env.Stored(t, finding).GetResourceVersion())

	rescan := builder.Finding("f").In(c.namespace).Severity(v1alpha1.LevelHigh).Build()
	harness.NoError(t, "a rescan goes on", scan(t, c.as(scanner), rescan))
	wantTriage(t, env.Stored(t, finding), signed)

	rest := triage(map[string]any{"userStatus": "active", "by": "apikey/ci"})
	err := c.as(facade).Patch(t.Context(), finding.DeepCopy(), client.RawPatch("application/merge-patch+json", harness.JSON(t, rest)),
		client.FieldOwner(v1alpha1.APIFieldManager))
	harness.Must(t, err)
	byREST := map[string]any{"userStatus": "active", "comments": "accepted", "by": "apikey/ci"}
	out, err := git.sync()
	if err == nil || !strings.Contains(out, `conflict with "`+v1alpha1.APIFieldManager+`"`) || !strings.Contains(out, ".spec.triage.userStatus") {
		t.Errorf("a sync without force: got %v, want the conflict that the docs show\n%s", err, out)
	}
	wantTriage(t, env.Stored(t, finding), byREST)

	git.mustSync("--force-conflicts")
	wantTriage(t, env.Stored(t, finding), signed)
}

func TestADecisionThatLeavesItsManifestIsTakenBack(t *testing.T) {
	c := newCast(t, "git-leaves")
	finding, git := toUnstructured(t, scanned(t, c, "f")), newRepo(t, c)
	git.commit("f", mutedInGit)
	git.mustSync()
	git.commit("f", "")
	git.mustSync()
	open := env.Stored(t, finding)
	if status, _, err := unstructured.NestedString(open.Object, "spec", "triage", "userStatus"); err != nil || status != "open" {
		t.Errorf("the finding is %s (%v), want open: nobody has decided", status, err)
	}
}

func TestPruningADecisionsManifestDeletesTheFinding(t *testing.T) {
	c := newCast(t, "git-prune")
	finding, other, git := toUnstructured(t, scanned(t, c, "f")), scanned(t, c, "f-other"), newRepo(t, c)
	prune := []string{"--prune", "--applyset=configmap/decisions", "--namespace", c.namespace}
	git.commit("f", mutedInGit)
	git.commit("f-other", mutedInGit)
	git.mustSync(prune...)
	harness.Must(t, os.Remove(filepath.Join(git.folder, "f.yaml")))
	git.mustSync(prune...)
	harness.Same(t, "the finding whose manifest was removed is gone with all its facts", true, env.Gone(t, finding))
	env.Stored(t, toUnstructured(t, other))
}

// Git cannot hold a decision about a finding that no scan has reported yet, or that retention has
// removed.
func TestASyncOfADecisionAboutNoFindingFails(t *testing.T) {
	git := newRepo(t, newCast(t, "git-none"))
	git.commit("f", mutedInGit)
	if out, err := git.sync(); err == nil || !strings.Contains(out, "spec.details: Required value") {
		t.Errorf("got %v, want a refusal: a decision alone is no finding\n%s", err, out)
	}
}

// Argo CD compares the manifest with what is stored. A default that the API server adds would be a difference for ever.
func TestAGitOpsToolSeesNoDifferenceInThePolicies(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(harness.Root(), "config", "admission", "*.yaml"))
	harness.Must(t, err)
	if len(files) == 0 {
		t.Fatal("there is nothing to compare")
	}
	for _, file := range files {
		manifests, err := testenv.Objects(strings.NewReader(harness.File(t, file)))
		harness.Must(t, err)
		for _, manifest := range manifests {
			if manifest.GetKind() != "Kustomization" {
				where := fmt.Sprintf("%s: spec of the %s", filepath.Base(file), manifest.GetKind())
				harness.Same(t, where, manifest.Object["spec"], env.Stored(t, manifest).Object["spec"])
			}
		}
	}
}
