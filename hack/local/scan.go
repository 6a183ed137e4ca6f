package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// scanSample runs gosec over the sample service now and imports what it says under a scanner's
// own token. It returns the import's summary.
func scanSample(ctx context.Context, o options, p *plane) (string, error) {
	// Built from the pinned module the first time; afterwards the go command's cache has it.
	gosec, err := output(ctx, o.root, "go", "tool", "-modfile="+filepath.Join(o.root, "hack", "tools", "go.mod"), "-n", "gosec")
	if err != nil {
		return "", fmt.Errorf("build gosec: %w", err)
	}
	report := o.state("gosec.sarif")
	if _, err := output(ctx, o.config("samples", "vulnerable-service"), strings.TrimSpace(gosec),
		"-quiet", "-no-fail", "-fmt=sarif", "-out="+report, "./..."); err != nil {
		return "", fmt.Errorf("scan the sample service: %w", err)
	}
	kubeconfig, err := accountKubeconfig(ctx, o, p, sampleNamespace, sampleScanner)
	if err != nil {
		return "", err
	}
	arguments := []string{"import", report,
		"--kubeconfig=" + kubeconfig, "--namespace=" + sampleNamespace,
		"--repository=" + sampleRepository, "--project=" + sampleProject}
	// The commit that last changed the service; a copy without git's history has none.
	if commit, err := output(ctx, o.config("samples", "vulnerable-service"), "git", "log", "-1", "--format=%H", "--", "."); err == nil {
		arguments = append(arguments, "--commit="+strings.TrimSpace(commit))
	}
	summary, err := output(ctx, o.root, o.binary("kubectl-findings"), arguments...)
	if err != nil {
		return "", fmt.Errorf("import the scan of the sample service: %w", err)
	}
	return strings.TrimSpace(summary), nil
}
