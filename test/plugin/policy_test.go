package plugin_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// ruled creates findings f-0 to f-3 of the rules R0 to R3, of which f-3 is confirmed.
func ruled(t *testing.T, name string) *organization {
	t.Helper()
	o := newOrganization(t, name)
	for _, n := range []string{"0", "1", "2", "3"} {
		f := builder.Finding("f-"+n).Project("payments", "api").Title("Title " + n).
			Mutate(func(f *v1alpha1.Finding) { f.Spec.RuleID = "R" + n })
		if n == "3" {
			f.Triage(v1alpha1.UserStatusActive, "")
		}
		o.has(f)
	}
	env.Create(o, builder.Repository("payments").In(o.namespace).Build())
	env.Create(o, builder.Project("api").In(o.namespace).Repository("payments").
		Mutate(func(p *v1alpha1.Project) { p.Spec.Owner = "team-payments" }).Build())
	return o
}

// inForce creates a policy in the cluster, in the state in which the controllers have put it into
// force.
func (o *organization) inForce(name, match string) *v1alpha1.TriagePolicy {
	o.Helper()
	policy := builder.TriagePolicy(name, match).In(o.namespace).Build()
	env.Create(o, policy)
	o.comesIntoForce(policy)
	return policy
}

// comesIntoForce writes the status that the controllers give a policy that applies.
func (o *organization) comesIntoForce(policy *v1alpha1.TriagePolicy) {
	o.Helper()
	testenv.ChangeStatus(o, env, policy, func(p *v1alpha1.TriagePolicy) {
		p.Status.ObservedGeneration = p.Generation
		p.Status.InForce = &v1alpha1.PolicyInForce{Generation: p.Generation, Spec: p.Spec}
	})
}

// policyFile returns a manifest of a policy that mutes matching findings.
func policyFile(name, match, more string) string {
	return "apiVersion: appsec.dev/v1alpha1\nkind: TriagePolicy\nmetadata: {name: " + name + "}\nspec:\n" +
		"  match: |-\n    " + strings.ReplaceAll(match, "\n", "\n    ") + "\n" +
		"  set: {userStatus: muted, reason: used-in-tests}\n  mode: Apply\n" + more
}

func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		harness.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	return folder
}

func TestPoliciesAreTestedAgainstTheCluster(t *testing.T) {
	o := ruled(t, "policy-test")
	o.inForce("mute", "finding.ruleID in ['R0', 'R1']")
	viewer, triager := o.member(testenv.Viewer), o.member(testenv.Triager)
	before := o.versions()
	folder := folderOf(t, map[string]string{
		"mute.yaml":   policyFile("mute", "finding.ruleID in ['R1', 'R2', 'R3'] &&\nproject.owner == 'team-payments'", ""),
		"other.yaml":  policyFile("other", "finding.score > 4.0", "  maxFindings: 2\n"),
		"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"newer.yaml":  "apiVersion: appsec.dev/v1alpha1\nkind: FindingExport\nmetadata: {name: of-a-newer-version}\n",
	})

	for _, p := range []*person{viewer, triager} {
		p.findings("policy", "test", "-f", folder).Wants(
			"mute in "+o.namespace, "generation 1 in force, 2 applied",
			"matched 3 of 4 findings = 2 applied + 0 shadowed + 1 overridden by people",
			"gained 1, lost 1, decided differently 0",
			"gained  f-2  low     Title 2  (open -> muted by mute)", "lost    f-0  low     Title 0  (muted by mute -> open)",
			"other in "+o.namespace, "no policy of this name", "0 decided alike by people; 4 failed",
			"for example f-0: no such key: score", "skipped because they are not TriagePolicies: 2",
		)
	}
	viewer.findings("policy", "test", "-f", folder).
		Wants("the API server was not asked whether it accepts this one: ", `cannot patch resource "triagepolicies"`)
	triager.findings("policy", "test", "-f", folder).Omits("was not asked") // it may write policies

	a := viewer.findings("policy", "test", "-f", filepath.Join(folder, "mute.yaml"), "-o", "json").Wants()
	var got struct {
		Policies []struct {
			Policy       string
			Gained, Lost []struct{ Finding, Title string }
			Cluster      struct{ InForce int64 }
		}
	}
	harness.Must(o, json.Unmarshal([]byte(a.Stdout), &got))
	if p := got.Policies; len(p) != 1 || p[0].Policy != "mute" || p[0].Cluster.InForce != 1 || p[0].Gained[0].Finding != "f-2" ||
		p[0].Lost[0].Title != "Title 0" {
		t.Errorf("the JSON says %+v", got)
	}
	harness.Same(t, "the findings' versions", before, o.versions())
	policy := testenv.List(t, NewWithT(t), env, &v1alpha1.TriagePolicyList{})
	for _, p := range policy.Items {
		if p.Namespace == o.namespace && (p.Name != "mute" || p.Generation != 1) {
			t.Errorf("policy %s of generation %d was written", p.Name, p.Generation)
		}
	}
}

// What a quota or a rule of the cluster forbids could not be applied either.
func TestAPolicyThatTheClusterForbidsIsRefused(t *testing.T) {
	o := ruled(t, "policy-forbidden")
	file := filepath.Join(folderOf(t, map[string]string{"p.yaml": policyFile("p", "true", "")}), "p.yaml")
	ruledOut := &gateway{before: func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, err := w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"not on Fridays"}`))
		harness.NoError(t, "answer", err)
		return true
	}}
	arguments := []string{"policy", "test", "-f", file}
	ruledOut.through(o, o.token(testenv.Triager)).findings(arguments...).Fails("the API server refuses policy p", "not on Fridays")
	env.UseUp(t, "count/triagepolicies.appsec.dev", builder.TriagePolicy("probe", "true").In(o.namespace).Build())
	o.member(testenv.Triager).findings(arguments...).Fails("the API server refuses policy p", "exceeded quota")
}

// The file alone counts, whatever the stored policy has beside it.
func TestAPolicyIsCheckedAsItsFileDeclaresIt(t *testing.T) {
	o := ruled(t, "policy-replaced")
	forbidden := metav1.StatusReasonForbidden
	env.Deny(t, "policies-have-tickets", admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: o.namespace}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{v1alpha1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"triagepolicies"}},
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{
			Expression: "'ticket' in object.metadata.?annotations.orValue({})", Message: "a policy needs a ticket", Reason: &forbidden,
		}},
	})
	policy := builder.TriagePolicy("p", "true").In(o.namespace).Build()
	policy.Annotations = map[string]string{"ticket": "SEC-1"}
	from := v1alpha1.NewTime(time.Now().AddDate(2, 0, 0))
	policy.Spec.ValidFrom = &from
	env.Create(o, policy)

	without := policyFile("p", "true", "")
	// It ends before the validFrom that the file no longer has.
	until := time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339)
	with := strings.Replace(policyFile("p", "true", "  validUntil: "+until+"\n"), "{name: p}",
		"{name: p, annotations: {ticket: SEC-2}}", 1)
	folder := folderOf(t, map[string]string{"with.yaml": with, "without.yaml": without})
	triager := o.member(testenv.Triager)
	triager.findings("policy", "test", "-f", filepath.Join(folder, "with.yaml")).Wants("matched 4 of 4 findings")
	// The rule takes a moment to come into force.
	harness.Eventually(t, func(g Gomega) {
		g.Expect(harness.Run(t, triager.command("policy", "test", "-f", filepath.Join(folder, "without.yaml"))).Stderr).
			To(ContainSubstring("a policy needs a ticket"))
	})
}

func TestWhatCannotBeReadIsNotedByATestOfPolicies(t *testing.T) {
	o := ruled(t, "policy-unreadable")
	for kind, name := range map[string]string{"Finding": "f-odd", "Project": "odd", "Repository": "odd"} {
		o.unreadable(kind, name)
	}
	file := filepath.Join(folderOf(t, map[string]string{"p.yaml": policyFile("p", "true", "")}), "p.yaml")
	o.member(testenv.Viewer).findings("policy", "test", "-f", file).
		Wants("Finding f-odd cannot be read", "matched 4 of 4 findings", "objects that cannot be read were left out: 3")
}

func TestATestOfPoliciesIsAGate(t *testing.T) {
	o := ruled(t, "policy-gate")
	o.inForce("mute", "finding.ruleID in ['R0', 'R1']")
	viewer := o.member(testenv.Viewer)
	for reason, tc := range map[string]struct {
		manifest, failOn string
		code             int
		says             string
	}{
		"nothing is lost":   {policyFile("mute", "finding.ruleID in ['R0', 'R1', 'R2']", ""), "losses,gains=1,stopped,inert", 0, "gate losses,gains=1,stopped,inert passed"},
		"something is lost": {policyFile("mute", "finding.ruleID == 'R0'", ""), "losses", 3, "the gate --fail-on losses failed: mute: findings lost: 1"},
		"a mode that the file does not name stays": {
			strings.Replace(policyFile("mute", "finding.ruleID in ['R0', 'R1', 'R2']", ""), "  mode: Apply\n", "", 1), "gains", 3,
			"the gate --fail-on gains failed: mute: findings gained: 1",
		},
		"it is stopped": {policyFile("new", "true", "  maxFindings: 1\n"), "stopped", 3, "STOPPED (TooMany): 4 findings match and maxFindings is 1"},
	} {
		cmd := viewer.direct("policy", "test", "-f", "-", "--fail-on", tc.failOn)
		cmd.Stdin = strings.NewReader(tc.manifest)
		harness.Same(t, reason+": exit code", tc.code, harness.Run(t, cmd).Says(tc.says).Code)
	}
}

// Whether applying such a file removes the mode depends on who applies it, how, and who else has set the mode: a gate that
// guesses passes what it should not.
func TestNoGatePassesAFileThatNoLongerNamesTheMode(t *testing.T) {
	o := ruled(t, "policy-mode")
	viewer := o.member(testenv.Viewer)
	applied := policyFile("mute", "finding.ruleID in ['R0', 'R1']", "")
	without := strings.Replace(applied, "  mode: Apply\n", "", 1)
	folder := folderOf(t, map[string]string{
		"applied.yaml": applied, "without.yaml": without,
		"preview.yaml": strings.Replace(applied, "mode: Apply", "mode: Preview", 1),
		"wider.yaml":   strings.Replace(without, "finding.ruleID in ['R0', 'R1']", "true", 1),
	})
	clientSide, serverSide := []string{"apply"}, []string{"apply", "--server-side", "--force-conflicts"}
	from := func(manager string) []string { return append(serverSide, "--field-manager", manager) }
	// Helm creates an object, and sends a patch of what differs between the last file and the new one.
	helm, patch := []string{"create", "--field-manager", "helm"}, []string{"patch", "--field-manager", "helm", "--type=merge", "--patch"}
	const unknown, kept = "the file no longer names spec.mode: write mode: Apply or mode: Preview into it", "the policy keeps mode Apply"
	for reason, tc := range map[string]struct {
		first, second []string
		file          string
		// then is how the wider file is applied.
		then []string
		says string
		left v1alpha1.PolicyMode
	}{
		"a server-side apply named it":        {serverSide, nil, "applied", serverSide, unknown, ""},
		"a client-side apply named it":        {clientSide, nil, "applied", clientSide, unknown, ""},
		"somebody has set another since":      {clientSide, nil, "preview", serverSide, unknown, v1alpha1.PolicyApply},
		"another manager names it, too":       {from("flux"), from("ann"), "applied", from("flux"), unknown, v1alpha1.PolicyApply},
		"it is now applied in another way":    {serverSide, nil, "applied", clientSide, unknown, v1alpha1.PolicyApply},
		"a server-side apply did not name it": {serverSide, nil, "without", serverSide, kept, v1alpha1.PolicyApply},
		"a client-side apply did not name it": {clientSide, nil, "without", clientSide, kept, v1alpha1.PolicyApply},
		"Helm named it":                       {helm, nil, "applied", append(patch, `{"spec":{"match":"true","mode":null}}`), unknown, ""},
		"Helm did not name it":                {helm, nil, "without", append(patch, `{"spec":{"match":"true"}}`), kept, v1alpha1.PolicyApply},
	} {
		for _, apply := range [][]string{tc.first, tc.second} {
			if apply != nil {
				env.Kubectl(t, o.namespace, append(apply, "-f", filepath.Join(folder, tc.file+".yaml"))...)
			}
		}
		env.Kubectl(t, o.namespace, "patch", "triagepolicy", "mute", "--type=merge", "--patch", `{"spec":{"mode":"Apply"}}`)
		policy := builder.TriagePolicy("mute", "").In(o.namespace).Build()
		o.comesIntoForce(policy)
		wider := filepath.Join(folder, "wider.yaml")
		for gate, fails := range map[string]bool{"gains": true, "losses": tc.says == unknown} {
			cmd := viewer.direct("policy", "test", "-f", wider, "--fail-on", gate)
			code := map[bool]int{false: 0, true: 3}[fails]
			harness.Same(t, reason+": exit code with the gate "+gate, code, harness.Run(t, cmd).Says(tc.says).Code)
		}

		env.Kubectl(t, o.namespace, append(tc.then, "-f", wider)...)
		left := testenv.Get(t, NewWithT(t), env, policy).Spec.Mode
		harness.Same(t, reason+": the mode after the file was applied", tc.left, left)
		env.Kubectl(t, o.namespace, "delete", "triagepolicy", "mute")
	}
}

func TestAPolicyThatCannotBeTestedIsAnError(t *testing.T) {
	o := ruled(t, "policy-errors")
	viewer, triager := o.member(testenv.Viewer), o.member(testenv.Triager)
	folder := folderOf(t, map[string]string{
		"refused.yaml": policyFile("p", "true", "  priority: 1001\n"),
		"other.yaml":   strings.Replace(policyFile("p", "true", ""), "{name: p}", "{name: p, namespace: org-other}", 1),
	})
	triager.findings("policy", "test", "-f", filepath.Join(folder, "refused.yaml")).Fails("the API server refuses policy p", "spec.priority")
	viewer.findings("policy", "test", "-f", filepath.Join(folder, "other.yaml")).
		Fails("To test policies you need the ClusterRole findings-viewer in namespace org-other")
}
