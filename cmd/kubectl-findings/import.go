package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
	"github.com/appsec-dev/findings-operator/internal/version"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

const importLong = `Import scan results from SARIF 2.1.0 files.

Only differences are written: new findings are created, changed ones are updated, findings
that the scan no longer reports are closed, and findings that reappear are reopened. People's
decisions are never changed. Importing the same results again, at any commit, writes no
finding.

All results of one tool, category and analysis, from any of the files, form one scan. The analysis
is a file's automationDetails.id up to its last slash: CodeQL for Ruby and CodeQL for Python do not
close each other's findings. A file that is not SARIF 2.1.0 is refused, and then nothing is written.
If a file shows that its scanner did not run to its end, its results are imported and nothing is
closed; the Scan is Failed, and so is the command.

A Repository or a Project that does not exist is created if spec.imports.create of the Organization is true, with
the URL, branch and commit that the files name in versionControlProvenance. Existing ones are never changed.`

const importExample = `  # Import what gosec found in a project of the organization acme
  kubectl findings import gosec.sarif --repository payments --project api -n org-acme

  # Preview what that would change
  kubectl findings import gosec.sarif --repository payments --project api -n org-acme --dry-run

  # Straight from the scanner; in PowerShell before 7.4 use a file, because | changes non-ASCII characters
  semgrep scan --sarif | kubectl findings import - --repository payments --project api

  # The scanner reports under another name now
  kubectl findings import lint.sarif --repository payments --project api --formerly Lint

  # Into a repository that does not exist yet, in an organization that lets imports create it
  kubectl findings import gosec.sarif --repository acme/payments --project payments --branch main

  # Return only when the state of everything that the import changed is recorded
  kubectl findings import gosec.sarif --repository payments --project api -n org-acme --wait

  # Several files of one tool form one scan; paths become relative to the scanned folder
  kubectl findings import eslint-*.sarif --repository payments --project web --source-root "$PWD"`

type importOptions struct {
	sarifOptions

	projectPath, branch string
	analysis            string
	commit              string
	startedAt           string
	force, wait         bool
	timeout             time.Duration
}

func newImportCommand(c cli) *cobra.Command {
	o := &importOptions{sarifOptions: sarifOptions{cli: c}}
	cmd := &cobra.Command{
		Use:     "import FILE... --repository NAME --project NAME",
		Short:   "Import scan results in SARIF 2.1.0",
		Long:    importLong,
		Example: importExample,
		Args:    flagerror.Arguments(cobra.MinimumNArgs(1), "give at least one SARIF file, or - for standard input"),
		RunE: func(cmd *cobra.Command, files []string) error {
			return o.run(cmd.Context(), files, cmd.Flags().Changed("analysis"))
		},
	}
	o.addFlags(cmd, "Repository that was scanned", "Project of the repository that was scanned (required)", "findings")
	flags := cmd.Flags()
	flags.StringVar(&o.projectPath, "project-path", "",
		"folder of the Project in the repository, if the Project is created; default: the whole repository")
	flags.StringVar(&o.branch, "branch", "",
		"branch that was scanned; refused if the Repository has another, or if it is not a branch, such as "+
			"refs/pull/4/merge, refs/tags/v1 or HEAD. A Repository that is created gets it; default: taken from the files")
	flags.StringVar(&o.analysis, "analysis", "",
		"distinguishes scans of one tool and category, instead of automationDetails.id in the files; --analysis= for none. "+
			"All runs of all files are then of this one")
	flags.StringVar(&o.commit, "commit", "", "the scanned commit or another revision; default: taken from the files")
	flags.StringVar(&o.startedAt, "started-at", "",
		"when the scan started, in RFC 3339; default: taken from the files, else now")
	flags.BoolVar(&o.force, "force", false,
		"import a scan although it would be refused, because it is older than the last completed one, would close more "+
			"than half of the open findings, seems to belong to a known analysis under another name, or because the API "+
			"server refuses all its changes. Do not set it in every import")
	flags.BoolVar(&o.wait, "wait", false,
		"wait until the controllers have recorded the state of every finding that the import changed")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long --wait waits in total")
	require(cmd, "repository", "project")
	return cmd
}

func (o *importOptions) run(ctx context.Context, names []string, chosenAnalysis bool) error {
	choices, err := o.choices(chosenAnalysis)
	if err != nil {
		return err
	}
	files, err := o.files(ctx, names)
	if err != nil {
		return err
	}
	batches, err := importer.Collect(files, choices, time.Now())
	if err != nil {
		return err
	}
	session, client, err := o.connect(ctx)
	if err != nil {
		return err
	}
	found, err := importer.Provision(ctx, client, importer.Place{
		Namespace: session.namespace, Repository: o.repository, Project: o.project, Folder: o.projectPath,
		Claims: provision.Claims{Branch: o.branch}, Check: o.checkBranch, DryRun: o.dryRun,
	}, batches)
	if err != nil {
		provisioned(o.streams.ErrOut, found.Provisioned, o.dryRun) // objects created before the error stay
		return session.explainImport(ctx, err, "import scans")
	}
	progress := newProgress(o.streams.ErrOut, o.quiet, "findings")
	target := importer.Target{Namespace: session.namespace, Repository: found.Repository.Name, Project: o.project}
	summaries, err := importer.New(client, target, importer.Options{
		DryRun: o.dryRun, Found: found, Force: o.force, Concurrency: o.concurrency,
		Importer: program + "/" + version.String(),
		OnWaiting: func(b *importer.Batch, holder string) {
			progress.waiting(b.Name()+" into this project", holder)
		},
		OnProgress: progress.at,
	}).Import(ctx, batches)
	progress.finish()
	if err != nil {
		if o.silent() || len(summaries) == 0 { // no summary names the objects that were created, which stay
			provisioned(o.streams.ErrOut, found.Provisioned, o.dryRun)
		}
		return errors.Join(session.explainImport(ctx, err, "import scans"), o.print(summaries))
	}
	if o.wait {
		err = session.explainImport(ctx, o.awaitSettled(ctx, session, summaries), "import scans")
	}
	return errors.Join(err, o.print(summaries), o.incomplete(summaries))
}

// checkBranch refuses results of a branch other than the repository's, if --branch names one. repository is nil if it
// does not exist yet.
func (o *importOptions) checkBranch(repository *v1alpha1.Repository) error {
	const review = "record the results of a pull request with `kubectl findings review`"
	if o.branch == "" || provision.TakesRef(repository, o.branch) {
		return nil
	}
	if repository == nil {
		return &importer.RefusedError{Reason: fmt.Sprintf("the repository %s does not exist yet, and --branch %q "+
			"cannot become its branch: import results of its branch first, and name it with --branch in "+
			"printable ASCII and at most 255 bytes; if the branch's name has other characters, create the Repository "+
			"with that name as spec.scanBranch; results of a pull request are recorded with `kubectl findings review`",
			o.repository, o.branch)}
	}
	branch, ownIsBranch := provision.BranchOf(repository)
	if !ownIsBranch {
		return &importer.RefusedError{Reason: fmt.Sprintf("spec.scanBranch of repository %s (or without one "+
			"spec.defaultBranch) is %s, which is not a branch: set spec.scanBranch to the branch that is scanned, and "+
			"name that one with --branch", repository.Name, branch)}
	}
	if _, isBranch := provision.Branch(o.branch); !isBranch {
		return &importer.RefusedError{Reason: fmt.Sprintf("--branch is %s, which is not a branch: findings of "+
			"repository %s that it does not contain would be closed; name the branch that was scanned, or %s",
			o.branch, repository.Name, review)}
	}
	return &importer.RefusedError{Reason: fmt.Sprintf("--branch is %s, but the findings of repository %s are those of "+
		"its branch %s, and findings that %s does not contain would be closed: %s, or set spec.scanBranch of the "+
		"Repository if another branch is scanned",
		o.branch, repository.Name, branch, o.branch, review)}
}

// incomplete returns an error if scanners did not report everything, so that a CI job fails: their Scans are Failed
// although the imports succeeded.
func (o *importOptions) incomplete(summaries []*importer.Summary) error {
	is := "is"
	if o.dryRun {
		is = "would be"
	}
	var errs []error
	for _, s := range summaries {
		if len(s.Incomplete) == 0 {
			continue
		}
		because := ""
		if o.quiet || o.output != "" { // otherwise the summary contains it
			because = ", and closes nothing: " + strings.Join(s.Incomplete, "; ")
		}
		errs = append(errs, fmt.Errorf("the scan of %s %s recorded as Failed%s. "+
			"Have the scanner run to its end, or, if a result cannot be read, fix the tool's output or have it report "+
			"less about that result; then import again", s.Name(), is, because))
	}
	return errors.Join(errs...)
}

func (o *importOptions) choices(chosenAnalysis bool) (importer.Choices, error) {
	c, err := o.sarifOptions.choices()
	c.Commit = o.commit
	if chosenAnalysis {
		c.Analysis = &o.analysis
	}
	errs := []error{err, o.checkWait(), checkFolder(o.projectPath)}
	if n := utf8.RuneCountInString(o.commit); n > importer.MaxCommit {
		errs = append(errs, fmt.Errorf("--commit has %d characters and may have at most %d", n, importer.MaxCommit))
	}
	c.StartedAt = timeFlag("started-at", o.startedAt, &errs)
	return c, errors.Join(errs...)
}

func (o *importOptions) checkWait() error {
	if o.wait && o.dryRun {
		return errors.New("--wait and --dry-run exclude each other: a dry run changes no state")
	}
	return checkTimeout(o.timeout)
}
