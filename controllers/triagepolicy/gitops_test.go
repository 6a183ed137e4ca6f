package triagepolicy

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// repo is a folder of manifests, and the tool that syncs it into a namespace.
type repo struct {
	room
	folder, kubeconfig, username string
}

// newRepo returns a repo whose tool has the rights named in docs/kinds/triagepolicy.md, and those for its record of
// what it applied.
func newRepo(r room) *repo {
	r.t.Helper()
	const tool = "git"
	config, err := env.Member(r.t.Context(), r.namespace, tool, testenv.Triager)
	harness.Must(r.t, err)
	meta := metav1.ObjectMeta{Namespace: r.namespace, Name: "applysets"}
	env.Create(r.t,
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create", "patch"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.namespace, Name: tool}},
		})
	git := &repo{
		r, r.t.TempDir(), testenv.WriteKubeconfig(r.t, config, r.namespace), testenv.ServiceAccountUsername(r.namespace, tool),
	}
	harness.Eventually(r.t, func(g Gomega) {
		out, err := testenv.TryKubectl(git.t, git.kubeconfig, "auth", "can-i", "create", "configmaps")
		g.Expect(err).NotTo(HaveOccurred(), out)
	})
	return git
}

// commit puts a policy that mutes matching findings into the folder.
func (g *repo) commit(name, match string) *v1alpha1.TriagePolicy {
	g.t.Helper()
	policy := builder.TriagePolicy(name, match).In(g.namespace).Build()
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "TriagePolicy", "metadata": map[string]any{"name": name},
		"spec": policy.Spec,
	})
	harness.Must(g.t, err)
	harness.Must(g.t, os.WriteFile(filepath.Join(g.folder, name+".yaml"), manifest, 0o600))
	return policy
}

// sync applies the folder with the command of docs/triage.md: with force, and deleting objects that were removed from the
// folder.
func (g *repo) sync() {
	g.t.Helper()
	out, err := testenv.TryKubectl(g.t, g.kubeconfig, "apply", "--server-side", "--prune", "--applyset=configmap/decisions",
		"--force-conflicts", "-n", g.namespace, "-f", g.folder)
	if err != nil {
		g.t.Fatalf("sync: %v\n%s", err, out)
	}
}

// The statements of docs/triage.md about policies in Git, with kubectl; Flux and Argo CD force conflicts too.
func TestDecisionsInGitArePolicies(t *testing.T) {
	g, r := NewWithT(t), running(t)
	anns, rests, undecided, named := r.finds("f-ann", "G1"), r.finds("f-rest", "G1"), r.finds("f-undecided", "G1"), r.finds("f-named", "G9")
	uids := map[client.Object]any{anns: anns.UID, rests: rests.UID, undecided: undecided.UID, named: named.UID}
	byHand := r.declares("by-hand", "false", nil)
	git := newRepo(r)
	byRule, byName := git.commit("by-rule", "finding.ruleID == 'G1'"), git.commit("by-name", "finding.name == 'f-named'")

	git.sync()
	for _, f := range []*v1alpha1.Finding{anns, rests, undecided} {
		r.is(f, v1alpha1.FindingStateOpenMuted, "by-rule")
	}
	r.is(named, v1alpha1.FindingStateOpenMuted, "by-name")
	r.counts(byRule, 3, 3, 0, 0, 0, 0)
	r.counts(byName, 1, 1, 0, 0, 0, 0)
	r.says(byRule, v1alpha1.ReasonInForce, ok)
	r.says(byName, v1alpha1.ReasonInForce, ok)
	g.Expect(byRule.Spec.By).To(Equal(git.username), "the tool signs what it applies")

	objects := []client.Object{byRule, byName, anns, rests, undecided, named}
	before := env.Versions(t, objects...)
	git.sync()
	// With the field manager that applied the set, diff would remove the set's own label, since it
	// does not know sets.
	out, err := testenv.TryKubectl(git.t, git.kubeconfig, "diff", "--server-side", "--field-manager=diff", "-n", r.namespace,
		"-f", git.folder)
	if err != nil || out != "" {
		t.Errorf("a second sync would change something: %v\n%s", err, out)
	}
	harness.Same(t, "what is stored", before, env.Versions(t, objects...))
	g.Expect([]int64{byRule.Generation, byName.Generation}).To(Equal([]int64{1, 1}))

	annDecides(t, r, anns)
	restWrites(t, rests, `{"spec":{"triage":{"userStatus":"muted","by":"apikey/ci"}}}`)
	r.is(anns, v1alpha1.FindingStateOpen, "")
	r.is(rests, v1alpha1.FindingStateOpenMuted, "")
	r.counts(byRule, 3, 1, 0, 0, 1, 0)
	triage := []v1alpha1.FindingTriage{anns.Spec.Triage, rests.Spec.Triage}
	before = env.Versions(t, objects...)
	git.sync()
	harness.Same(t, "what is stored", before, env.Versions(t, objects...))

	restWrites(t, byName, `{"spec":{"mode":"Preview","by":"apikey/ci"}}`)
	r.is(named, v1alpha1.FindingStateOpen, "")
	g.Expect(os.Remove(filepath.Join(git.folder, "by-rule.yaml"))).To(Succeed())
	git.sync()
	g.Expect(env.Gone(t, byRule)).To(BeTrue(), "the policy was not pruned")
	r.is(undecided, v1alpha1.FindingStateOpen, "")
	r.is(anns, v1alpha1.FindingStateOpen, "")
	r.is(rests, v1alpha1.FindingStateOpenMuted, "")
	r.is(named, v1alpha1.FindingStateOpenMuted, "by-name")
	g.Expect([]v1alpha1.FindingTriage{anns.Spec.Triage, rests.Spec.Triage}).To(Equal(triage), "a person's decision was touched")
	for f, uid := range uids {
		g.Expect(testenv.Get(t, g, env, f).GetUID()).To(BeEquivalentTo(uid), "another finding of the same name")
	}
	testenv.Get(t, g, env, byHand)
}

// annDecides makes ann decide against the policy, with kubectl.
func annDecides(t *testing.T, r room, f *v1alpha1.Finding) {
	t.Helper()
	config, err := env.Member(t.Context(), r.namespace, "ann", testenv.Triager)
	harness.Must(t, err)
	out, err := testenv.TryKubectl(t, testenv.WriteKubeconfig(t, config, r.namespace), "patch", "finding", f.Name, "--type=merge",
		"-p", `{"spec":{"triage":{"userStatus":"active","comments":"it does run"}}}`)
	if err != nil {
		t.Fatalf("ann decides: %v\n%s", err, out)
	}
}

// restWrites changes an object like the REST API.
func restWrites(t *testing.T, object client.Object, body string) {
	t.Helper()
	config, err := env.Facade(t.Context())
	harness.Must(t, err)
	facade, err := env.NewClient(config)
	harness.Must(t, err)
	harness.Must(t, facade.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(body)),
		client.FieldOwner(v1alpha1.APIFieldManager)))
}
