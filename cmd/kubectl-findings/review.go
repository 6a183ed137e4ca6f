package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
)

const reviewLong = `Record the review of a pull request's commit, from SARIF 2.1.0 files.

The files must hold everything that all tools found in the commit: a problem that an earlier
commit showed and this one does not is resolved by this commit. Pass all files in one call.
Recording the same files for the same commit again writes nothing. A file that is not
SARIF 2.1.0 is refused, and so are the results of a tool that did not run to its end; then
nothing is written.

The results are compared with the findings of the base branch: those of the scanned projects, or of
the one that --project names, that are open or were closed after the pull request began. Only results
that the base does not have become issues. Findings of the base that the files do not report count as fixed.

Commits are recorded in the order in which they are reviewed; the last 250 are kept. Without
files only the pull request is recorded, or, with --clean, that nothing was found in the
commit. A repository that does not exist is created if spec.imports.create of the Organization is true.`

const reviewExample = `  # Record what gosec found in the head of pull request 412
  kubectl findings review gosec.sarif --repository payments --pr 412 --commit "$GIT_COMMIT" -n org-acme

  # Several tools, and the pull request's title and author
  kubectl findings review gosec.sarif semgrep.sarif --repository payments --pr 412 \
    --commit "$GIT_COMMIT" --title "Refund orders" --author jo

  # Preview what that would change
  kubectl findings review gosec.sarif --repository payments --pr 412 --commit "$GIT_COMMIT" --dry-run

  # In CI: a comment for the pull request, and exit status 3 if it has an issue of high severity
  kubectl findings review gosec.sarif --repository payments --project api --pr 412 --commit "$GIT_COMMIT" \
    --format markdown --fail-on high > comment.md

  # Nothing was found, and the scanner wrote no file
  kubectl findings review --clean --repository payments --pr 412 --commit "$GIT_COMMIT"

  # The pull request was merged
  kubectl findings review --repository payments --pr 412 --status merged`

type reviewOptions struct {
	sarifOptions

	pr         int32
	commit     string
	title      string
	author     string
	status     string
	provider   string
	reviewedAt string
	clean      bool
	openedAt   string
	format     string
	failOn     string
	analysis   string
}

func newReviewCommand(c cli) *cobra.Command {
	o := &reviewOptions{sarifOptions: sarifOptions{cli: c}}
	cmd := &cobra.Command{
		Use:     "review [FILE...] --repository NAME --pr NUMBER [--commit SHA]",
		Short:   "Record the review of a pull request's commit",
		Long:    reviewLong,
		Example: reviewExample,
		RunE: func(cmd *cobra.Command, files []string) error {
			return o.run(cmd.Context(), files)
		},
	}
	o.addFlags(cmd, "Repository of the pull request",
		"Project whose findings are the base to compare with; default: the projects that were scanned", "issues")
	flags := cmd.Flags()
	flags.Int32Var(&o.pr, "pr", 0, "the provider's number of the pull request (required)")
	flags.StringVar(&o.commit, "commit", "", "hash of the reviewed commit; required with files and with --clean")
	flags.StringVar(&o.title, "title", "", "title of the pull request; default: unchanged")
	flags.StringVar(&o.author, "author", "", "who opened the pull request; default: unchanged")
	flags.StringVar(&o.status, "status", "", "open, closed or merged; default: unchanged, open for a new one")
	flags.StringVar(&o.provider, "provider", "",
		"who hosts the pull request, for example github; default: the repository's, or without a commit unchanged. "+
			"If it differs from the repository's, give it with every commit")
	flags.StringVar(&o.reviewedAt, "reviewed-at", "", "when the commit was reviewed, in RFC 3339; default: now")
	flags.StringVar(&o.openedAt, "opened-at", "",
		"when the pull request was opened, in RFC 3339; default: when it was first reviewed")
	flags.StringVar(&o.format, "format", "",
		"markdown: print the summary as a comment for the pull request; default: text")
	flags.StringVar(&o.failOn, "fail-on", "",
		"high, medium or new: exit with status 3 if an open issue has high severity, at least medium severity, or exists at all")
	flags.StringVar(&o.analysis, "analysis", "",
		"the analysis of the base's imports, if the files name another in automationDetails.id; all files are then of this one")
	flags.BoolVar(&o.clean, "clean", false, "record, without files, that nothing was found in the commit")
	require(cmd, "repository", "pr")
	completeWords(cmd, "status", words(pullRequestStatuses...))
	completeWords(cmd, "fail-on", words(reviewimport.Gates...))
	completeWords(cmd, "format", []string{formatMarkdown})
	return cmd
}

func (o *reviewOptions) run(ctx context.Context, names []string) error {
	choices, err := o.choices()
	commit, openedAt, mistakes := o.validate(names)
	if err := errors.Join(mistakes, err); err != nil {
		return err
	}
	batches, err := o.read(ctx, names, choices)
	if err != nil {
		return err
	}
	session, client, err := o.connect(ctx)
	if err != nil {
		return err
	}
	found, err := importer.Provision(ctx, client, importer.Place{
		Namespace: session.namespace, Repository: o.repository, Project: o.project, OfPullRequest: true, DryRun: o.dryRun,
	}, batches)
	provisioned(o.streams.ErrOut, found.Provisioned, o.dryRun) // standard output is for the summary
	if err != nil {
		return session.explainImport(ctx, err, "record reviews")
	}
	o.repository = found.Repository.Name
	progress := newProgress(o.streams.ErrOut, o.quiet, "issues")
	pr := reviewimport.PullRequest{
		Namespace: session.namespace, Repository: o.repository, Number: o.pr,
		Title: o.title, Author: o.author, Provider: o.provider, Status: v1alpha1.PullRequestStatus(o.status),
		Project: o.project, OpenedAt: openedAt, Server: session.server(),
	}
	summary, err := reviewimport.New(client, pr, reviewimport.Options{
		DryRun: o.dryRun, Found: found, Concurrency: o.concurrency,
		OnWaiting: func(holder string) {
			progress.waiting(fmt.Sprintf("a review of pull request %d", o.pr), holder)
		},
		OnProgress: progress.at,
	}).Import(ctx, commit, batches)
	progress.finish()
	err = session.explainImport(ctx, err, "record reviews")
	if err != nil {
		return err
	}
	if o.failOn != "" {
		summary.Gate = reviewimport.Gate(o.failOn).Judge(summary)
	}
	return errors.Join(o.print(summary), failedGate(summary.Gate))
}

func (o *reviewOptions) read(ctx context.Context, names []string, choices importer.Choices) ([]*importer.Batch, error) {
	if len(names) == 0 {
		return nil, nil
	}
	files, err := o.files(ctx, names)
	if err != nil {
		return nil, err
	}
	choices.Commit, choices.Analysis = o.commit, &o.analysis
	return importer.Collect(files, choices, time.Now())
}

var pullRequestStatuses = []v1alpha1.PullRequestStatus{
	v1alpha1.PullRequestOpen, v1alpha1.PullRequestClosed, v1alpha1.PullRequestMerged,
}

// validate reports every mistake in the flags of this command alone and how to fix it. It returns the reviewed commit,
// nil if there is none, and when the pull request was opened.
func (o *reviewOptions) validate(names []string) (*reviewimport.Commit, time.Time, error) {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	o.status, o.commit = strings.ToLower(o.status), strings.ToLower(o.commit)
	reviewed := len(names) > 0 || o.clean
	switch {
	case len(names) > 0 && o.clean:
		fail("--clean means that nothing was found, but files are given: leave one out")
	case reviewed && o.commit == "":
		fail("--commit is needed: which commit do the results belong to?")
	case !reviewed && (o.commit != "" || o.reviewedAt != ""):
		fail("there is no file: give the scanner's files, or --clean if nothing was found in the commit")
	case !reviewed && o.status == "" && o.title == "" && o.author == "" && o.provider == "":
		fail("there is nothing to record: give files, or --clean, or a property of the pull request, such as --status merged")
	}
	if o.pr < 1 {
		fail("--pr is %d and must be the number of a pull request, from 1", o.pr)
	}
	if o.commit != "" && !provision.IsCommitHash(o.commit) {
		fail("--commit is %q and must be a commit's hash: 7 to 64 hexadecimal digits", o.commit)
	}
	if o.status != "" && !slices.Contains(pullRequestStatuses, v1alpha1.PullRequestStatus(o.status)) {
		fail("--status is %q and must be open, closed or merged", o.status)
	}
	switch {
	case o.format != "" && o.format != formatMarkdown:
		fail("--format is %q and must be markdown", o.format)
	case o.format != "" && o.output != "":
		fail("--format markdown and --output exclude each other: use one of them")
	}
	if o.failOn != "" {
		if _, err := reviewimport.ParseGate(o.failOn); err != nil {
			fail("--fail-on: %w", err)
		}
		if !reviewed {
			fail("--fail-on judges a commit: give the scanner's files, or --clean")
		}
	}
	reviewedAt, openedAt := timeFlag("reviewed-at", o.reviewedAt, &errs), timeFlag("opened-at", o.openedAt, &errs)
	if err := errors.Join(errs...); err != nil || !reviewed {
		return nil, openedAt, err
	}
	return &reviewimport.Commit{SHA: o.commit, ReviewedAt: reviewedAt}, openedAt, nil
}

func (o *reviewOptions) print(s *reviewimport.Summary) error {
	switch {
	case o.format == formatMarkdown && s.Commit != "":
		_, err := o.streams.Out.Write(s.Markdown())
		if !o.quiet {
			warn(o.streams.ErrOut, s.Warnings) // the comment shows only a few of the scanners' warnings
		}
		return err
	case o.silent():
		return nil
	}
	return write(o.streams.Out, o.output, s, func() []byte { return o.text(s) })
}

func (o *reviewOptions) text(s *reviewimport.Summary) []byte {
	var b bytes.Buffer
	for _, c := range s.Changes {
		changeLine(&b, string(c.Action), c.Name, c.Severity, c.Title, c.Place)
	}
	head := fmt.Sprintf("pull request %d of %s, %s", s.PRNumber, s.Repository, s.PRStatus)
	if o.dryRun {
		unlisted(&b, s.Created+s.Reopened+s.Seen+s.Resolved-len(s.Changes))
		head += ", dry run"
	}
	if s.Commit == "" {
		review := "review"
		if s.NewReview { // with a mistyped number, this would look like success
			review = "new review"
		}
		fmt.Fprintf(&b, "%s: %s %s\n", head, review, s.Review)
		warn(&b, s.Warnings)
		return b.Bytes()
	}
	known := 0
	if s.Base != nil {
		known = s.Base.Known
	}
	fmt.Fprintf(&b, "%s: %s = %d new + %d back + %d seen before + %d unchanged + %d of the base + %d skipped; %d resolved, %d open\n",
		head, results(s.Results), s.Created, s.Reopened, s.Seen, s.Unchanged, known, s.Skipped, s.Resolved, s.Open)
	fmt.Fprintf(&b, "  review %s, commit %s\n", s.Review, s.Commit)
	baseLines(&b, s.Base)
	if s.Gate != nil {
		fmt.Fprintf(&b, "  gate %s %s: %s\n", s.Gate.Gate, map[bool]string{true: "passed", false: "failed"}[s.Gate.Passed],
			s.Gate.Because)
	}
	explain(&b, s.SkippedBecause, s.SkippedExamples, s.Notes)
	warn(&b, s.Warnings)
	return b.Bytes()
}

// baseLines describe how a commit compares with the base branch.
func baseLines(b *bytes.Buffer, base *reviewimport.BaseSummary) {
	if base == nil {
		return
	}
	fmt.Fprintf(b, "  base: results known: %d, of them in doubt: %d; findings fixed: %d\n", base.Known, base.InDoubt,
		base.Fixed)
	for _, scan := range base.Unscanned {
		fmt.Fprintf(b, "  the base was never scanned with %s: all its results count as new; import a scan of the base branch\n",
			printable(scan))
	}
}
