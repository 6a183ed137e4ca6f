package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/importer"
)

const importLong = `Import what scanners found, as SARIF 2.1.0 files.

Only differences are written: new findings are created, changed ones updated, those that
the scan no longer reports closed, and those that are back reopened. What people decided
about a finding is never touched. Importing the same results again, at any commit, writes
no finding.

All results of one tool and category are one scan, from whichever of the files. A file
that is not SARIF 2.1.0 is refused, and then nothing at all is written.`

const importExample = `  # Import what gosec found in a project of the organization acme
  kubectl findings import gosec.sarif --repository payments --project api -n org-acme

  # See first what that would change
  kubectl findings import gosec.sarif --repository payments --project api -n org-acme --dry-run

  # Straight from the scanner
  semgrep scan --sarif | kubectl findings import - --repository payments --project api

  # Several files of one tool are one scan; paths count from the folder that was scanned
  kubectl findings import eslint-*.sarif --repository payments --project web --source-root "$PWD"`

type importOptions struct {
	streams    genericiooptions.IOStreams
	kubeconfig *connectionFlags

	repository, project string
	tool                string
	category            string
	commit              string
	startedAt           string
	sourceRoot          string
	dryRun, force       bool
	concurrency         int
	output              string
	quiet               bool
}

func newImportCommand(kubeconfig *connectionFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &importOptions{streams: streams, kubeconfig: kubeconfig}
	cmd := &cobra.Command{
		Use:     "import FILE... --repository NAME --project NAME",
		Short:   "Import scan results in SARIF 2.1.0",
		Long:    importLong,
		Example: importExample,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			return o.run(cmd.Context(), files)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.repository, "repository", "", "Repository that was scanned (required)")
	flags.StringVar(&o.project, "project", "", "Project of the repository that was scanned (required)")
	flags.StringVar(&o.tool, "tool", "", "the scanner's name, in place of the one in the files")
	flags.StringVar(&o.category, "category", "", "Code, Package or Secret; derived from the scanner's name if not given")
	flags.StringVar(&o.commit, "commit", "", "commit that was scanned; taken from the files if they say it")
	flags.StringVar(&o.startedAt, "started-at", "", "when the scan started, in RFC 3339; taken from the files if they say it, else now")
	flags.StringVar(&o.sourceRoot, "source-root", "", "folder, on the machine that scanned, from which the paths of findings count")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would change and write nothing")
	flags.BoolVar(&o.force, "force", false, "import a scan that is older than the last completed one, and close however many findings")
	flags.IntVar(&o.concurrency, "concurrency", importer.DefaultConcurrency, "how many findings are written at the same time")
	flags.StringVarP(&o.output, "output", "o", "", "format of the summary: json or yaml; text if not given")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but errors")
	for _, name := range []string{"repository", "project"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

func (o *importOptions) run(ctx context.Context, names []string) error {
	choices, err := o.choices()
	if err != nil {
		return err
	}
	files, err := (&reader{stdin: o.streams.In, sourceRoot: o.sourceRoot}).read(names)
	if err != nil {
		return err
	}
	batches, err := importer.Collect(files, choices, time.Now())
	if err != nil {
		return err
	}
	session, client, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	progress := newProgress(o.streams.ErrOut, o.quiet, "findings")
	target := importer.Target{Namespace: session.namespace, Repository: o.repository, Project: o.project}
	summaries, err := importer.New(client, target, importer.Options{
		DryRun: o.dryRun, Force: o.force, Concurrency: o.concurrency,
		OnWaiting: func(b *importer.Batch, holder string) {
			progress.waiting(fmt.Sprintf("%s (%s) into this project", b.Tool, b.Category), holder)
		},
		OnProgress: progress.at,
	}).Import(ctx, batches)
	progress.finish()
	err = session.explainImport(ctx, err, "import scans")
	if !o.quiet || o.output != "" {
		err = errors.Join(err, o.print(summaries, err != nil))
	}
	return err
}

func (o *importOptions) choices() (importer.Choices, error) {
	c := importer.Choices{Tool: o.tool, Commit: o.commit}
	known := []appsecv1alpha1.FindingCategory{appsecv1alpha1.CategoryCode, appsecv1alpha1.CategoryPackage, appsecv1alpha1.CategorySecret}
	if o.category != "" {
		at := slices.IndexFunc(known, func(k appsecv1alpha1.FindingCategory) bool { return strings.EqualFold(string(k), o.category) })
		if at < 0 {
			return c, fmt.Errorf("--category is %q and must be Code, Package or Secret", o.category)
		}
		c.Category = known[at]
	}
	var err error
	if c.StartedAt, err = timeFlag("started-at", o.startedAt); err != nil {
		return c, err
	}
	return c, errors.Join(checkConcurrency(o.concurrency), checkOutput(o.output))
}
