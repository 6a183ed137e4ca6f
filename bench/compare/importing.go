package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// importedFindings is the number of findings in each file; importedInShort that of a short run.
	importedFindings = 1000
	importedInShort  = 150
	// maxImportRounds bounds the run time: the findings of each round must be removed again.
	maxImportRounds = 5
	// importAccount is a service account with the scanner's role.
	importAccount = "bench-scanner"
	caughtUp      = 5 * time.Minute
)

// The names of the sides. Each finding counts as an operation.
const (
	createsSide      = "bare creates by client-go"
	importSide       = "import"
	againSide        = "import of the same again"
	createsOnSide    = "bare creates by client-go, controllers at work"
	importOnSide     = "import, controllers at work"
	importConcurrent = importer.DefaultConcurrency
)

var importSides = []string{createsSide, importSide, againSide, createsOnSide, importOnSide}

// importing compares imports with bare creates of the same findings.
func importing(ctx context.Context, b *bench.Bench, f *bench.Fixture) (*report.Section, error) {
	im, err := newLearnedImports(ctx, b, f)
	if err != nil {
		return nil, err
	}
	results, err := im.rounds(ctx, min(b.Plan.Rounds, maxImportRounds))
	if err != nil {
		return nil, err
	}
	section := &report.Section{Title: "Imports", Text: importingText, Rows: []report.Row{
		ratioRow(report.AtLeast, "import against bare creates, controllers halted", 0.8, results.Ratio(importSide, createsSide)),
		ratioRow(report.AtLeast, "import with the controllers at work, against bare creates without", 0.5,
			results.Ratio(importOnSide, createsSide)),
		ratioRow(report.AtLeast, "the same results again, against the first import", 5, results.Ratio(againSide, importSide)),
	}}
	table := report.Table{
		Title: fmt.Sprintf("%d findings in a file of %s, %d at a time, beside %s findings:", im.count,
			kilobytes(len(im.file)), importConcurrent, thousands(f.Size)),
		Columns: []string{"Who, what", "findings/s", "CPU of kube-apiserver and etcd for one"},
	}
	for _, side := range importSides {
		table.Rows = append(table.Rows, []string{side, fmt.Sprintf("%.0f", results.Rate(side)),
			milliseconds(results.CPU(side))})
	}
	section.Tables = []report.Table{table}
	section.Charts = []report.Chart{{Title: "Findings brought in", Unit: "findings a second",
		Groups: []report.Group{rateGroup(results, importSides)}}}
	return section, nil
}

const importingText = "The importer of `kubectl findings import` reads a SARIF file and imports it into a project. The time runs from its first byte to the end of the scan, " +
	"compared with creating the same findings with client-go, with the same concurrency and the same service account. " +
	"What an import does besides (a Lease, a Scan, the list of existing findings) is part of its time. After each turn all findings are removed. " +
	"While the controllers are halted, their process is stopped by a signal; it works off the backlog afterwards."

// imports holds what the sides have in common.
type imports struct {
	*bench.Fixture
	bench    *bench.Bench
	target   importer.Target
	importer *importer.Client
	creator  rest.Interface
	file     []byte
	count    int
	// made are the findings that an import of the file creates.
	made []v1alpha1.FindingSpec
	// turns counts the turns: each uses its own tool name, and therefore its own findings.
	turns int
}

// newLearnedImports prepares imports, and learns which findings one creates.
func newLearnedImports(ctx context.Context, b *bench.Bench, f *bench.Fixture) (*imports, error) {
	count := importedFindings
	if b.Short {
		count = importedInShort
	}
	im, err := newImports(ctx, b, f, min(count, f.Size))
	if err != nil {
		return nil, err
	}
	return im, im.learn(ctx)
}

// newImports prepares imports of a file with count findings.
func newImports(ctx context.Context, b *bench.Bench, f *bench.Fixture, count int) (*imports, error) {
	project := f.Data.Projects[0]
	im := &imports{Fixture: f, bench: b, count: count, target: importer.Target{
		Namespace: f.Organization.Namespace, Repository: string(project.Spec.RepositoryRef.Name), Project: project.Name,
	}}
	config, err := f.Member(ctx, im.target.Namespace, importAccount, testenv.Scanner)
	if err != nil {
		return nil, err
	}
	if im.importer, err = importer.NewClient(config); err != nil {
		return nil, err
	}
	if im.creator, err = kube.NewClient(config); err != nil {
		return nil, err
	}
	im.file, err = sarifOf(im.count, f.Data.Finding)
	return im, err
}

// learn imports the file once, and keeps the created findings for the side that creates them without
// the importer.
func (im *imports) learn(ctx context.Context) error {
	tool := im.newTool()
	if _, err := im.importFile(ctx, tool); err != nil {
		return err
	}
	found, err := im.list(ctx, tool)
	if err != nil {
		return err
	}
	for i := range found.Items {
		im.made = append(im.made, found.Items[i].Spec)
	}
	return removeOf(ctx, im.Fixture, tool)
}

func (im *imports) newTool() string {
	im.turns++
	return fmt.Sprintf("bench-%d", im.turns)
}

// rounds runs the sides' turns, after one warm-up round that does not count.
func (im *imports) rounds(ctx context.Context, rounds int) (measure.Results, error) {
	results := measure.Results{}
	for round := range rounds + 1 {
		im.bench.Say("importing: round %d of %d", round, rounds)
		found, err := im.round(ctx, round%2 == 1)
		if err != nil {
			return nil, err
		}
		if round > 0 {
			results.Add(found)
		}
	}
	return results, nil
}

// round runs each side's turn, in one of two orders; the unchanged import follows the first import.
func (im *imports) round(ctx context.Context, importFirst bool) (map[string]measure.Sample, error) {
	turns := []importTurn{
		{createsSide, true, im.create}, {createsOnSide, false, im.create},
		{importSide, true, im.importFile}, {importOnSide, false, im.importFile},
	}
	if importFirst {
		slices.Reverse(turns)
	}
	found := map[string]measure.Sample{}
	for _, t := range turns {
		if err := im.turn(ctx, found, t); err != nil {
			return nil, fmt.Errorf("%s: %w", t.side, err)
		}
	}
	return found, nil
}

// importTurn is a side's work, with the controllers halted or running.
type importTurn struct {
	side   string
	halted bool
	work   func(ctx context.Context, tool string) (findings int, err error)
}

// turn does the work under a new tool name, waits for the controllers, and removes the created objects.
// After an import, it imports the same file again.
func (im *imports) turn(ctx context.Context, found map[string]measure.Sample, t importTurn) error {
	if t.halted {
		if err := im.Controller.Freeze(); err != nil {
			return err
		}
	}
	tool := im.newTool()
	var err error
	if found[t.side], err = im.timed(ctx, tool, t.work); err != nil {
		return err
	}
	if t.side == importSide {
		if found[againSide], err = im.timed(ctx, tool, im.importFile); err != nil {
			return fmt.Errorf("%s: %w", againSide, err)
		}
	}
	if err := im.Controller.Thaw(); err != nil {
		return err
	}
	if err := eventually(ctx, settleInterval, caughtUp,
		func(ctx context.Context) error { return im.checkObserved(ctx, tool) }); err != nil {
		return err
	}
	return removeOf(ctx, im.Fixture, tool)
}

// timed does the work when earlier work has settled: the removal of findings leaves much garbage.
func (im *imports) timed(ctx context.Context, tool string, work func(context.Context, string) (int,
	error)) (measure.Sample, error) {
	if err := im.bench.Collected(ctx, im.Fixture); err != nil {
		return measure.Sample{}, err
	}
	return measure.Once(ctx, servers(im.Fixture), func(ctx context.Context) (int, error) { return work(ctx, tool) })
}

// create creates the findings using only client-go.
func (im *imports) create(ctx context.Context, tool string) (int, error) {
	_, err := callAll(ctx, importConcurrent, len(im.made), func(ctx context.Context, i int) error {
		finding := &v1alpha1.Finding{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Finding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: im.target.Namespace, Name: fmt.Sprintf("%s-%d", tool, i)},
			Spec:       im.made[i],
		}
		finding.Spec.Tool, finding.Spec.Triage = tool, v1alpha1.FindingTriage{}
		return im.creator.Post().Namespace(im.target.Namespace).Resource("findings").
			Param("fieldManager", v1alpha1.ScannerFieldManagerPrefix+tool).
			Body(finding).Do(ctx).Into(&v1alpha1.Finding{})
	})
	return len(im.made), err
}

// importFile imports the file, and returns the number of its findings.
func (im *imports) importFile(ctx context.Context, tool string) (int, error) {
	s, err := im.importScan(ctx, tool)
	if err != nil {
		return 0, err
	}
	return s.Created + s.Unchanged, nil
}

// importScan does what `kubectl findings import` does.
func (im *imports) importScan(ctx context.Context, tool string) (*importer.Summary, error) {
	log, err := sarif.Parse(bytes.NewReader(im.file), sarif.Options{})
	if err != nil {
		return nil, err
	}
	batches, err := importer.Collect([]importer.File{{Name: "bench.sarif", Log: log}},
		importer.Choices{Tool: tool, Category: v1alpha1.CategoryCode}, time.Now())
	if err != nil {
		return nil, err
	}
	summaries, err := importer.New(im.importer, im.target, importer.Options{Concurrency: importConcurrent}).Import(ctx,
		batches)
	if err != nil {
		return nil, err
	}
	s := summaries[0]
	if s.Skipped > 0 || s.Updated+s.Closed+s.Reopened > 0 || s.Created > 0 && s.Unchanged > 0 {
		return nil, fmt.Errorf("the import was not as it should have been: %+v", s)
	}
	return s, nil
}

func (im *imports) list(ctx context.Context, tool string) (*v1alpha1.FindingList, error) {
	list := &v1alpha1.FindingList{}
	return list, im.Client.List(ctx, list, client.InNamespace(im.target.Namespace), client.MatchingFields{"spec.tool": tool})
}

// checkObserved returns an error until the controllers have reconciled every finding.
func (im *imports) checkObserved(ctx context.Context, tool string) error {
	found, err := im.list(ctx, tool)
	if err != nil {
		return err
	}
	for i := range found.Items {
		if f := &found.Items[i]; !findingstate.IsRecorded(f) {
			return fmt.Errorf("the controllers have not looked at finding %s yet", f.Name)
		}
	}
	return nil
}

// removeOf removes the findings and scans of the tool.
func removeOf(ctx context.Context, f *bench.Fixture, tool string) error {
	return removeAll(ctx, f, []client.Object{&v1alpha1.Finding{}, &v1alpha1.Scan{}}, client.MatchingFields{"spec.tool": tool})
}
