package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// sarifOptions are the flags of the commands that read SARIF files.
type sarifOptions struct {
	cli

	repository, project, tool string
	formerly, category        string
	// sourceRoot is the folder, on the scanning machine, that paths are relative to.
	sourceRoot    string
	dryRun, quiet bool
	concurrency   int
	output        string
}

// addFlags adds the flags. repository and project are the help texts of the flags of that name, and things is what the
// command writes, such as "findings".
func (o *sarifOptions) addFlags(cmd *cobra.Command, repository, project, things string) {
	flags := cmd.Flags()
	flags.StringVar(&o.repository, "repository", "",
		repository+": its name, or OWNER/NAME, its full name (required)")
	flags.StringVar(&o.project, "project", "", project)
	flags.StringVar(&o.tool, "tool", "", "the scanner's name, instead of the one in the files")
	flags.StringVar(&o.formerly, "formerly", "",
		"an earlier name of the scanner; the "+things+" of that name are taken over with their decisions")
	flags.StringVar(&o.category, "category", "",
		"Code, Package or Secret, of all results; default: derived from the scanner's name")
	flags.StringVar(&o.sourceRoot, "source-root", "",
		"absolute path of the source on the machine that scanned; paths of "+things+" become relative to it")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would change and write nothing")
	flags.IntVar(&o.concurrency, "concurrency", importer.DefaultConcurrency,
		"how many "+things+" are written at the same time")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "print errors only")
	completeFlagNames(cmd, "repository", o.cli, "Repository")
	completeFlagNames(cmd, "project", o.cli, "Project")
	completeWords(cmd, "category", categoryChoice.values)
	addSummaryOutput(cmd, &o.output, summaryFormats)
}

// silent reports whether --quiet omits the text of the summary. It omits neither what --output asks for nor a review's
// Markdown.
func (o *sarifOptions) silent() bool { return o.quiet && o.output == "" }

// choices returns the choices that the flags make, or every mistake in the flags.
func (o *sarifOptions) choices() (importer.Choices, error) {
	c := importer.Choices{Tool: o.tool, Formerly: o.formerly}
	errs := []error{
		checkProject(o.project), checkConcurrency(o.concurrency), checkOutput(o.output, summaryFormats),
		checkSourceRoot(o.sourceRoot),
	}
	if o.category != "" {
		for _, known := range readChoice[v1alpha1.FindingCategory](categoryChoice, []string{o.category}, &errs) {
			c.Category = known
		}
	}
	return c, errors.Join(errs...)
}

// files reads every file before anything is written, and explains why each refused file was refused. It returns once
// ctx ends, even if a scanner that hangs keeps standard input open.
func (o *sarifOptions) files(ctx context.Context, names []string) ([]importer.File, error) {
	files, err := untilDone(ctx, func() ([]importer.File, error) { return o.parseAll(names) })
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = fmt.Errorf("stopped while reading, nothing was written: %w", err)
	}
	return files, err
}

// untilDone returns the result of read, or the cause once ctx ends: read does not know a context, and is left running.
func untilDone[T any](ctx context.Context, read func() (T, error)) (T, error) {
	var result T
	done := make(chan error, 1)
	go func() {
		done <- safely.Func(func() (err error) {
			result, err = read()
			return err
		})()
	}()
	select {
	case err := <-done:
		return result, err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

func (o *sarifOptions) parseAll(names []string) ([]importer.File, error) {
	var files []importer.File
	names, errs := expand(names)
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("%s is listed twice", name))
			continue
		}
		log, err := o.parse(name)
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

// expand replaces names with wildcards by those of the files that match: the shells of Windows do not.
func expand(names []string) (files []string, errs []error) {
	for _, name := range names {
		if _, err := os.Stat(name); err == nil || !strings.ContainsAny(name, "*?") {
			files = append(files, name)
			continue
		}
		matches, _ := filepath.Glob(name) // a malformed pattern matches nothing
		if len(matches) == 0 {
			errs = append(errs, fmt.Errorf("%s is refused: no file matches", name))
		}
		files = append(files, matches...)
	}
	return files, errs
}

// parse reads one file; "-" is standard input.
func (o *sarifOptions) parse(name string) (*sarif.Log, error) {
	in := o.streams.In
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the user names the files to read
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // only read from
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return nil, fmt.Errorf("it is a folder: name its files, as in %s", filepath.Join(name, "*.sarif"))
		}
		in = file
	}
	return sarif.Parse(in, sarif.Options{SourceRoot: o.sourceRoot})
}

// connect returns a session, which explains errors, and a client for imports. It refuses a namespace whose name cannot
// belong to an organization.
func (c cli) connect(ctx context.Context) (*session, *importer.Client, error) {
	session, err := c.open()
	if err != nil {
		return nil, nil, err
	}
	if err := session.checkOrganization(ctx); err != nil {
		return nil, nil, err
	}
	imports, err := importer.NewClient(session.config)
	return session, imports, err
}

// explainImport adds advice to an import's error: which role allows it, or that the namespace does not exist.
func (s *session) explainImport(ctx context.Context, err error, what string) error {
	if _, refused := errors.AsType[*importer.RefusedError](err); refused || kube.IsNotFound(err) {
		if missing := s.checkPlace(context.WithoutCancel(ctx)); missing != nil {
			return errors.Join(missing, err)
		}
	}
	if kube.IsQuotaExceeded(err) {
		return err // the import's error already explains its quota
	}
	explained := s.explain(err, need{what: what, role: roleScanner})
	if kube.LacksField(err) {
		return fmt.Errorf("%w\nWhat is already written is kept", explained)
	}
	return explained
}

// checkSourceRoot refuses a root that would have no effect.
func checkSourceRoot(root string) error {
	if root != "" && !sarif.IsRoot(root) {
		return fmt.Errorf("--source-root is %q and must be an absolute path such as \"$PWD\", or a file:// URI", root)
	}
	return nil
}

// checkProject refuses what cannot be the name of an object, such as a full name as for --repository.
func checkProject(name string) error {
	if len(content.IsPathSegmentName(name)) > 0 {
		return fmt.Errorf("--project is %q and must be the name of a Project, for example api: "+
			"see kubectl get projects.appsec.dev -n NAMESPACE", name)
	}
	return nil
}

// checkFolder refuses a folder outside of the repository: without its first part it would be another folder.
func checkFolder(folder string) error {
	if provision.Leaves(folder) {
		return fmt.Errorf("--project-path is %q and must be a folder in the repository, for example services/api", folder)
	}
	return nil
}
