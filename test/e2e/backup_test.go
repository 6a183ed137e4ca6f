package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// stored matches what the API server does not take in a new object.
var stored = regexp.MustCompile(`(?m)^  resourceVersion: .*\n`)

const (
	backedUp = "repositories,projects,findings,reviews,reviewissues,scans,triagepolicies,apikeys,webhookendpoints," +
		"roles,rolebindings,resourcequotas"
	// muteBoth decides about two findings, and is committed from the beginning.
	muteBoth = `{"apiVersion": "appsec.dev/v1alpha1", "kind": "TriageOperation", "metadata": {"name": "both", "namespace": "org-sample"},
		"spec": {"select": {"ids": ["f-1", "f-2"]}, "set": {"userStatus": "muted", "comments": "by the operation"}, "commit": true}}`
	decidedByAnn = `{"spec": {"triage": {"userStatus": "muted", "reason": "accepted-risk", "comments": "until then", "expiresAt": "2099-12-31T00:00:00Z"}}}`
)

// checkBackup saves the sample organization, deletes it with all that it has, and restores it, as docs/backup.md says.
func checkBackup(t *testing.T, r *run) {
	samples := filepath.Join(harness.Root(), "config", "samples")
	for _, sample := range []string{"repository", "project", "finding", "review", "reviewissue", "scan", "triagepolicy", "webhookendpoint"} {
		r.kubectl(t, "apply", "--filename", filepath.Join(samples, sample+".yaml"))
	}
	asAnn := []string{"--as=ann", "--as-group=system:masters", "--namespace=org-sample"}
	for _, name := range []string{"f-1", "f-2", "f-3"} {
		r.apply(t, `{"apiVersion": "appsec.dev/v1alpha1", "kind": "Finding", "metadata": {"name": "`+name+`", "namespace": "org-sample"},
			"spec": {"repositoryRef": {"name": "vulnerable-service"}, "projectRef": {"name": "vulnerable-service"},
			"details": {"title": "A finding", "severity": "high"}}}`)
	}
	r.apply(t, muteBoth)
	r.kubectl(t, "wait", "--for=jsonpath={.status.phase}=Completed", "triageoperation/both", "--namespace=org-sample", "--timeout=2m")
	r.kubectl(t, append(asAnn, "patch", "finding", "f-2", "--type=merge", "--patch", `{"spec": {"triage": {"userStatus": "active"}}}`)...)
	r.kubectl(t, append(asAnn, "patch", "finding", "f-3", "--type=merge", "--patch", decidedByAnn)...)
	r.kubectl(t, "create", "role", "readers", "--namespace=org-sample", "--verb=get", "--resource=configmaps")
	r.kubectl(t, "create", "rolebinding", "readers", "--namespace=org-sample", "--role=readers", "--user=ann")
	// Less than there is: created before the findings, it would refuse them.
	r.kubectl(t, "create", "quota", "few", "--namespace=org-sample", "--hard=count/findings.appsec.dev=1")
	before := r.specs(t)
	operation := r.kubectl(t, "get", "triageoperation", "both", "--namespace=org-sample", "--output=yaml")

	folder := t.TempDir()
	follow := func(names ...string) {
		t.Helper()
		r.follow(t, folder, "backup.md", names...)
	}
	// Less than there is: nothing could be restored.
	r.kubectl(t, "patch", "organization", "sample", "--type=merge",
		`--patch={"spec": {"quotas": {"findings": 1}, "imports": {"create": true}, "retention": {"closedFindings": "1h", "finishedDeliveries": "1h"}}}`)
	follow("suspend retention", "save")
	harness.Same(t, "the retention that is left", `{"finishedDeliveries":"1h"}`,
		r.kubectl(t, "get", "organization", "sample", "--output=jsonpath={.spec.retention}"))
	r.kubectl(t, "annotate", "organization", "sample", "appsec.dev/remove-contents=true")
	r.kubectl(t, "delete", "organization", "sample", "--timeout=3m")
	follow("organization")
	harness.Same(t, "whether imports create projects from the beginning", "false",
		r.kubectl(t, "get", "organization", "sample", "--output=jsonpath={.spec.imports.create}"))
	follow("without imports and quotas")
	if kept, err := os.ReadFile(filepath.Join(folder, "organization.before.yaml")); err != nil ||
		!strings.Contains(string(kept), "\n  quotas:\n    findings: 1\n") {
		t.Errorf("the quotas are not kept for the end: %v\n%s", err, kept)
	}
	r.kubectl(t, "wait", "--for=condition=Ready", "organization/sample", "--timeout=2m")
	harness.Same(t, "whether imports create projects meanwhile", "false",
		r.kubectl(t, "get", "namespace", "org-sample", `--output=jsonpath={.metadata.labels.appsec\.dev/imports-create}`))
	// As if the namespace had come with the backup.
	r.kubectl(t, "annotate", "namespace", "org-sample", "--overwrite", "appsec.dev/organization-uid=former")
	r.kubectl(t, "wait", "--for=condition=Ready=False", "organization/sample", "--timeout=2m")
	follow("namespace", "objects", "projects", "endpoints", "own")

	// What the controllers do with it changes none of it.
	r.kubectl(t, "wait", "--for=jsonpath={.status.observedGeneration}", "finding/f-2", "finding/f-3", "--namespace=org-sample", "--timeout=2m")
	r.kubectl(t, "wait", "--for=condition=Ready", "triagepolicies", "--all", "--namespace=org-sample", "--timeout=2m")
	harness.Same(t, "what people and scanners wrote, after the restore", before, r.specs(t))
	if triage, _ := before["Finding/f-3"]["triage"].(map[string]any); triage["by"] != "ann" || triage["expiresAt"] != "2099-12-31T00:00:00Z" {
		t.Errorf("the backup has the decision %v", triage)
	}
	path := filepath.Join(folder, "operation.yaml")
	harness.Must(t, os.WriteFile(path, []byte(stored.ReplaceAllString(operation, "")), 0o600))
	_, err := r.command(t.Context(), testenv.Binary(t, "kubectl"), "create", "--filename", path)
	harness.ErrorContains(t, "the creation of the operation", err, "as from a backup")
}

// checkRemovalTakenBack deletes the sample repository by mistake, and takes it back as docs/kinds/repository.md says.
func checkRemovalTakenBack(t *testing.T, r *run) {
	before := r.specs(t)
	uids := func() string {
		t.Helper()
		return r.kubectl(t, "get", "findings,scans,reviewissues", "--namespace=org-sample", "--output=jsonpath={.items[*].metadata.uid}")
	}
	kept := uids()
	controllers := r.pid(t, "controller")
	harness.Must(t, syscall.Kill(controllers, syscall.SIGSTOP)) // as if they were gone, before they have removed anything
	defer func() { harness.Must(t, syscall.Kill(controllers, syscall.SIGCONT)) }()
	r.kubectl(t, "delete", "repositories,projects,reviews", "--all", "--namespace=org-sample", "--wait=false")
	r.follow(t, t.TempDir(), "kinds/repository.md", "take back a removal")
	harness.Must(t, syscall.Kill(controllers, syscall.SIGCONT))
	r.kubectl(t, "wait", "--for=condition=Ready", "repositories,projects,reviews", "--all", "--namespace=org-sample", "--timeout=2m")
	r.kubectl(t, "wait", "--for=jsonpath={.status.counts.findings}", "repository/vulnerable-service", "--namespace=org-sample", "--timeout=2m")
	harness.Same(t, "what people and scanners wrote", before, r.specs(t))
	harness.Same(t, "findings, scans and issues", kept, uids())
}

// follow runs a page's commands with the sample organization.
func (r *run) follow(t *testing.T, folder, page string, names ...string) {
	t.Helper()
	for _, name := range names {
		commands := strings.ReplaceAll(harness.Commands(t, page, name), "acme", "sample")
		shell := exec.CommandContext(t.Context(), "/bin/bash", "-euo", "pipefail", "-c", commands)
		shell.Dir = folder
		shell.Env = append(os.Environ(), "KUBECONFIG="+r.env["KUBECONFIG"],
			"PATH="+filepath.Dir(testenv.Binary(t, "kubectl"))+":"+os.Getenv("PATH"))
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("the page's commands %q: %v\n%s", name, err, out)
		}
	}
}

// specs returns what a backup holds of all objects, by kind and name. Roles and their bindings have no spec.
func (r *run) specs(t *testing.T) map[string]map[string]any {
	t.Helper()
	var list struct {
		Items []struct {
			Kind                     string
			Metadata                 struct{ Name string }
			Spec                     map[string]any
			Rules, RoleRef, Subjects any
		}
	}
	harness.Must(t, json.Unmarshal([]byte(r.kubectl(t, "get", backedUp, "--namespace=org-sample", "--output=json")), &list))
	specs := map[string]map[string]any{}
	for _, item := range list.Items {
		if item.Spec == nil {
			item.Spec = map[string]any{"rules": item.Rules, "roleRef": item.RoleRef, "subjects": item.Subjects}
		}
		specs[item.Kind+"/"+item.Metadata.Name] = item.Spec
	}
	return specs
}
