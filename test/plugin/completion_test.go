package plugin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestNamesAreCompleted(t *testing.T) {
	o := newOrganization(t, "completion")
	o.has(builder.Finding("f-aa").Title("SQL injection"), builder.Finding("f-ab"), builder.Finding("f-b"))
	env.Create(t, builder.APIKey("dashboard").In(o.namespace).Build(), builder.Repository("payments").In(o.namespace).Build())
	env.Create(t, builder.Project("api").In(o.namespace).Repository("payments").Build())
	viewer := o.member(testenv.Viewer)
	for name, tc := range map[string]struct {
		typed         []string
		offers, never string
	}{
		"findings":     {[]string{"triage", "f-a"}, "f-aa\tlow: SQL injection", "f-b"},
		"not twice":    {[]string{"triage", "f-aa", "f-a"}, "f-ab", "f-aa"},
		"only one":     {[]string{"history", "f-aa", ""}, "", "f-b"},
		"keys":         {[]string{"rotate-key", ""}, "dashboard", "f-a"},
		"repositories": {[]string{"list", "--repository", "p"}, "payments", "api"},
		"projects":     {[]string{"import", "x.sarif", "--project", ""}, "api", "payments"},
		"of this one":  {[]string{"triage", "--organization", o.name, "f-a"}, "f-ab", "f-b"},
		"by namespace": {[]string{"triage", "--organization", "elsewhere", ""}, "", "f-a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &person{t, viewer.kubeconfig}
			p.findings(append([]string{"__complete"}, tc.typed...)...).Wants(tc.offers).Omits(tc.never)
		})
	}
}

// kubectl calls an executable kubectl_complete-findings on the PATH.
func TestKubectlCompletesThePlugin(t *testing.T) {
	o := newOrganization(t, "completion-kubectl")
	o.has(builder.Finding("f-aa"))
	viewer := o.member(testenv.Viewer)
	script := viewer.findings("completion", "kubectl").Wants("#!/bin/sh").Stdout
	path := filepath.Join(plugins, "kubectl_complete-findings")
	harness.Must(o, os.WriteFile(path, []byte(script), 0o700))
	t.Cleanup(func() { _ = os.Remove(path) })

	cmd := viewer.equip(exec.CommandContext(t.Context(), testenv.Binary(t, "kubectl"), "__complete", "findings", "triage", ""))
	harness.Run(t, cmd).Wants("f-aa")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		viewer.findings("completion", shell).Wants("kubectl-findings")
	}
}
