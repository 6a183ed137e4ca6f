package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/importer"
	"github.com/appsec-dev/findings-operator/internal/sarif"
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
	kubeconfig *genericclioptions.ConfigFlags

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

func newImportCommand(kubeconfig *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
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
	files, err := o.read(names)
	if err != nil {
		return err
	}
	batches, err := importer.Collect(files, choices, time.Now())
	if err != nil {
		return err
	}
	namespace, _, err := o.kubeconfig.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	config, err := o.kubeconfig.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := importer.NewClient(config)
	if err != nil {
		return err
	}
	progress := newProgress(o.streams.ErrOut, o.quiet)
	target := importer.Target{Namespace: namespace, Repository: o.repository, Project: o.project}
	summaries, err := importer.New(client, target, importer.Options{
		DryRun: o.dryRun, Force: o.force, Concurrency: o.concurrency,
		OnWaiting: progress.waiting, OnProgress: progress.at,
	}).Import(ctx, batches)
	progress.finish()
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
	if o.startedAt != "" {
		t, err := time.Parse(time.RFC3339, o.startedAt)
		if err != nil {
			return c, fmt.Errorf("--started-at is %q and must be a time in RFC 3339, as 2026-01-31T12:00:00Z: %w", o.startedAt, err)
		}
		c.StartedAt = t
	}
	if o.concurrency < 1 || o.concurrency > 256 {
		return c, fmt.Errorf("--concurrency is %d and must be from 1 to 256", o.concurrency)
	}
	if o.output != "" && o.output != outputJSON && o.output != outputYAML {
		return c, fmt.Errorf("--output is %q and must be json or yaml", o.output)
	}
	return c, nil
}

// read reads every file before anything is written, and says of each that is refused why.
func (o *importOptions) read(names []string) ([]importer.File, error) {
	var files []importer.File
	var errs []error
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("%s is given twice", name))
			continue
		}
		log, err := o.readOne(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s is refused: %w", name, err))
			continue
		}
		files = append(files, importer.File{Name: name, Log: log})
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("nothing was imported: %w", errors.Join(errs...))
	}
	return files, nil
}

func (o *importOptions) readOne(name string) (*sarif.Log, error) {
	var in io.Reader = o.streams.In
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the user names the files to read
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // only read from
		in = file
	}
	return sarif.Parse(in, sarif.Options{SourceRoot: o.sourceRoot})
}
