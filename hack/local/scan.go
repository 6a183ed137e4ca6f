package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// scanner runs gosec on sample code, and imports its results with a scanner's own token.
type scanner struct {
	options    options
	gosec      string
	kubeconfig string
}

func newScanner(ctx context.Context, o options, p *plane) (*scanner, error) {
	// Built from the pinned module the first time; afterwards it comes from Go's build cache.
	gosec, err := output(ctx, o.root, "go", "tool", "-modfile="+filepath.Join(o.root, "hack", "tools", "go.mod"), "-n",
		"gosec")
	if err != nil {
		return nil, fmt.Errorf("build gosec: %w", err)
	}
	config, err := p.account(ctx, sampleNamespace, sampleScanner)
	if err != nil {
		return nil, err
	}
	kubeconfig := o.state("kubeconfigs", sampleScanner)
	if err := harness.WriteKubeconfig(kubeconfig, config, sampleNamespace); err != nil {
		return nil, err
	}
	return &scanner{options: o, gosec: strings.TrimSpace(gosec), kubeconfig: kubeconfig}, nil
}

// projectScan is the part of the sample service that is one project.
type projectScan struct {
	project, report string
	// leavesOut is a pattern of the files of other projects. gosec always runs on the whole service, because its paths
	// are relative to where it starts, and they must be relative to the repository.
	leavesOut string
}

var projectScans = []projectScan{
	{project: sampleProject, report: "gosec.sarif", leavesOut: `/billing/`},
	{project: "billing", report: "gosec-billing.sarif", leavesOut: `/vulnerable-service/[^/]+$`},
}

// scanProjects scans the sample service and imports the results of each project. It returns the imports' summaries.
func (s *scanner) scanProjects(ctx context.Context) (string, error) {
	folder := s.options.config("samples", "vulnerable-service")
	var arguments []string
	// The last commit that changed the service; a copy without git history has none.
	if commit, err := output(ctx, folder, "git", "log", "-1", "--format=%H", "--", "."); err == nil && commit != "" {
		arguments = append(arguments, "--commit="+strings.TrimSpace(commit))
	}
	var summaries strings.Builder
	for _, scan := range projectScans {
		report := s.options.state(scan.report)
		if err := s.scan(ctx, folder, report, "-exclude-rules="+scan.leavesOut+":*", "./..."); err != nil {
			return "", err
		}
		summary, err := s.findings(ctx, append([]string{
			"import", report, "--repository=" + sampleRepository, "--project=" + scan.project}, arguments...)...)
		if err != nil {
			return "", fmt.Errorf("import the scan of project %s: %w", scan.project, err)
		}
		fmt.Fprintf(&summaries, "%s: %s\n", scan.project, strings.TrimSpace(summary))
	}
	return strings.TrimSpace(summaries.String()), nil
}

// scan runs gosec in a folder and writes the results to a SARIF file.
func (s *scanner) scan(ctx context.Context, folder, report string, arguments ...string) error {
	arguments = append([]string{"-quiet", "-no-fail", "-fmt=sarif", "-out=" + report}, arguments...)
	if _, err := output(ctx, folder, s.gosec, arguments...); err != nil {
		return fmt.Errorf("scan %s: %w", folder, err)
	}
	return nil
}

// findings runs the kubectl plugin and returns what it printed.
func (s *scanner) findings(ctx context.Context, arguments ...string) (string, error) {
	return output(ctx, s.options.root, s.options.binary("kubectl-findings"), append(arguments,
		"--kubeconfig="+s.kubeconfig, "--namespace="+sampleNamespace)...)
}
