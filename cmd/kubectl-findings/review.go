package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/importer"
	"github.com/appsec-dev/findings-operator/internal/reviewimport"
)

const reviewLong = `Record the review of a pull request's commit, from SARIF 2.1.0 files.

The files are all that was found in the commit, by however many tools: a problem that an
earlier commit showed and this one does not is resolved by it. Give them all in one call.
Recording the same files for the same commit again writes nothing. A file that is not
SARIF 2.1.0 is refused, and so are the results of a tool that did not get to its end; then
nothing at all is written.

Commits are recorded in the order in which they are reviewed; the last 250 are kept. Without
files the pull request alone is recorded, or, with --clean, that nothing was found in the
commit. The repository must be there.`

const reviewExample = `  # Record what gosec found in the head of pull request 412
  kubectl findings review gosec.sarif --repository payments --pr 412 --commit "$GIT_COMMIT" -n org-acme

  # Several tools, and what the pull request is called
  kubectl findings review gosec.sarif semgrep.sarif --repository payments --pr 412 \
    --commit "$GIT_COMMIT" --title "Refund orders" --author jo

  # See first what that would change
  kubectl findings review gosec.sarif --repository payments --pr 412 --commit "$GIT_COMMIT" --dry-run

  # Nothing was found, and the scanner writes no file then
  kubectl findings review --clean --repository payments --pr 412 --commit "$GIT_COMMIT"

  # The pull request was merged
  kubectl findings review --repository payments --pr 412 --status merged`

type reviewOptions struct {
	streams    genericiooptions.IOStreams
	kubeconfig *connectionFlags

	repository  string
	pr          int32
	commit      string
	title       string
	author      string
	status      string
	provider    string
	reviewedAt  string
	tool        string
	sourceRoot  string
	clean       bool
	dryRun      bool
	concurrency int
	output      string
	quiet       bool
}

func newReviewCommand(kubeconfig *connectionFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &reviewOptions{streams: streams, kubeconfig: kubeconfig}
	cmd := &cobra.Command{
		Use:     "review [FILE...] --repository NAME --pr NUMBER [--commit SHA]",
		Short:   "Record the review of a pull request's commit",
		Long:    reviewLong,
		Example: reviewExample,
		RunE: func(cmd *cobra.Command, files []string) error {
			return o.run(cmd.Context(), files)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.repository, "repository", "", "Repository of the pull request (required)")
	flags.Int32Var(&o.pr, "pr", 0, "the provider's number of the pull request (required)")
	flags.StringVar(&o.commit, "commit", "", "commit that was reviewed, by its hash; required with files and with --clean")
	flags.StringVar(&o.title, "title", "", "title of the pull request; as it was if not given")
	flags.StringVar(&o.author, "author", "", "who opened the pull request; as it was if not given")
	flags.StringVar(&o.status, "status", "", "open, closed or merged; as it was if not given, and open at first")
	flags.StringVar(&o.provider, "provider", "", "who hosts the pull request, as github; as it was if not given, and the repository's at first")
	flags.StringVar(&o.reviewedAt, "reviewed-at", "", "when the commit was reviewed, in RFC 3339; now if not given")
	flags.StringVar(&o.tool, "tool", "", "the scanner's name, in place of the one in the files")
	flags.StringVar(&o.sourceRoot, "source-root", "", "folder, on the machine that scanned, from which the paths of issues count")
	flags.BoolVar(&o.clean, "clean", false, "without files: nothing was found in the commit")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would change and write nothing")
	flags.IntVar(&o.concurrency, "concurrency", importer.DefaultConcurrency, "how many issues are written at the same time")
	flags.StringVarP(&o.output, "output", "o", "", "format of the summary: json or yaml; text if not given")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but errors")
	for _, name := range []string{"repository", "pr"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

func (o *reviewOptions) run(ctx context.Context, names []string) error {
	commit, err := o.validate(names)
	if err != nil {
		return err
	}
	batches, err := o.read(names)
	if err != nil {
		return err
	}
	session, client, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	progress := newProgress(o.streams.ErrOut, o.quiet, "issues")
	pr := reviewimport.PullRequest{
		Namespace: session.namespace, Repository: o.repository, Number: o.pr,
		Title: o.title, Author: o.author, Provider: o.provider, Status: v1alpha1.PullRequestStatus(o.status),
	}
	summary, err := reviewimport.New(client, pr, reviewimport.Options{
		DryRun: o.dryRun, Concurrency: o.concurrency,
		OnWaiting: func(holder string) {
			progress.waiting(fmt.Sprintf("a review of pull request %d", o.pr), holder)
		},
		OnProgress: progress.at,
	}).Import(ctx, commit, batches)
	progress.finish()
	err = session.explainImport(ctx, err, "record reviews")
	if err == nil && (!o.quiet || o.output != "") {
		return write(o.streams.Out, o.output, summary, func() []byte { return o.text(summary) })
	}
	return err
}

func (o *reviewOptions) read(names []string) ([]*importer.Batch, error) {
	if len(names) == 0 {
		return nil, nil
	}
	files, err := (&reader{stdin: o.streams.In, sourceRoot: o.sourceRoot}).read(names)
	if err != nil {
		return nil, err
	}
	return importer.Collect(files, importer.Choices{Tool: o.tool, Commit: o.commit}, time.Now())
}

// commitHash is what Git writes, in full or shortened.
var commitHash = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

// validate says of every mistake in the flags what to do, and returns the commit that was
// reviewed; nil where none was.
func (o *reviewOptions) validate(names []string) (*reviewimport.Commit, error) {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	o.status, o.commit = strings.ToLower(o.status), strings.ToLower(o.commit)
	reviewed := len(names) > 0 || o.clean
	switch {
	case len(names) > 0 && o.clean:
		fail("--clean says that nothing was found, and there are files: leave one out")
	case reviewed && o.commit == "":
		fail("--commit is needed: which commit do the results belong to?")
	case !reviewed && (o.commit != "" || o.reviewedAt != ""):
		fail("there is no file: give the scanner's files, or --clean if nothing was found in the commit")
	case !reviewed && o.status == "" && o.title == "" && o.author == "" && o.provider == "":
		fail("there is nothing to record: give files, or --clean, or what is to be said of the pull request, as --status merged")
	}
	if o.pr < 1 {
		fail("--pr is %d and must be the number of a pull request, from 1", o.pr)
	}
	if o.commit != "" && !commitHash.MatchString(o.commit) {
		fail("--commit is %q and must be a commit's hash: 7 to 64 hexadecimal digits", o.commit)
	}
	known := []v1alpha1.PullRequestStatus{v1alpha1.PullRequestOpen, v1alpha1.PullRequestClosed, v1alpha1.PullRequestMerged}
	if o.status != "" && !slices.Contains(known, v1alpha1.PullRequestStatus(o.status)) {
		fail("--status is %q and must be open, closed or merged", o.status)
	}
	at, err := timeFlag("reviewed-at", o.reviewedAt)
	if err := errors.Join(append(errs, err, checkConcurrency(o.concurrency), checkOutput(o.output))...); err != nil || !reviewed {
		return nil, err
	}
	return &reviewimport.Commit{SHA: o.commit, ReviewedAt: at}, nil
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
		fmt.Fprintf(&b, "%s: review %s\n", head, s.Review)
		return b.Bytes()
	}
	fmt.Fprintf(&b, "%s: %d results = %d new + %d back + %d seen before + %d unchanged + %d skipped; %d resolved, %d open\n",
		head, s.Results, s.Created, s.Reopened, s.Seen, s.Unchanged, s.Skipped, s.Resolved, s.Open)
	fmt.Fprintf(&b, "  review %s, commit %s\n", s.Review, s.Commit)
	explain(&b, s.SkippedBecause, s.SkippedExamples, s.Notes)
	return b.Bytes()
}
