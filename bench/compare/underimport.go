package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

const (
	// presentFindings is the number of findings that exist before an import.
	presentFindings = 5_000
	// steadyDecisions is how many decisions are made in each phase, one per steadyPause.
	steadyDecisions  = 150
	steadyPause      = 500 * time.Millisecond
	steadyInShort    = 20
	steadyShortPause = 100 * time.Millisecond
	// receiverTakes is how long the webhook's receiver takes to answer.
	receiverTakes = 250 * time.Millisecond
	// warmUpDecisions are made before, and do not count.
	warmUpDecisions = 5
	// underPatience bounds the wait for what waits behind an import.
	underPatience = time.Hour
)

// underFound holds what was found out.
type underFound struct {
	present, imported int
	pause             time.Duration
	// quiet and during hold the decisions of each phase.
	quiet, during []followed
	// imports holds the import during which the decisions were made, and those without an endpoint.
	imports []importTimes
}

// importTimes holds when what follows from an import was complete, from its beginning.
type importTimes struct {
	// where describes the organization and the controllers.
	where          string
	took, recorded time.Duration
}

// underImport measures how late a person's decision is recorded, shown and delivered while an import runs, and when
// the states of an import's findings are recorded.
func underImport(ctx context.Context, b *bench.Bench) (section *report.Section, err error) {
	f, err := b.OwnFixture(ctx, dataset.Options{Findings: min(b.Largest(), presentFindings), Reviews: b.Reviews})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	found := &underFound{present: f.Size, imported: b.Imported}
	for _, flags := range [][]string{nil, {"--implied-statuses=false"}} {
		b.Say("underimport: an import without an endpoint %v", flags)
		times, err := importAlone(ctx, b, f, flags...)
		if err != nil {
			return nil, err
		}
		found.imports = append(found.imports, times)
	}
	if err := found.decideAndImport(ctx, b, f); err != nil {
		return nil, err
	}
	return found.section(), nil
}

// importAlone imports into an organization without an endpoint, with further flags of the controllers, and removes what
// was imported.
func importAlone(ctx context.Context, b *bench.Bench, f *bench.Fixture,
	flags ...string) (times importTimes, err error) {
	stop, err := withControllers(ctx, f, flags...)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	im, err := newImports(ctx, b, f, b.Imported)
	if err != nil {
		return times, err
	}
	if err := b.Collected(ctx, f); err != nil {
		return times, err
	}
	tool := im.newTool()
	if times, err = im.untilRecorded(ctx, tool); err != nil {
		return times, err
	}
	times.where = "no webhook endpoint"
	for _, flag := range flags {
		times.where += ", `" + flag + "`"
	}
	return times, removeOf(ctx, f, tool)
}

// untilRecorded imports the file, and waits until the states of all its findings are recorded.
func (im *imports) untilRecorded(ctx context.Context, tool string) (importTimes, error) {
	began := time.Now()
	summary, err := im.importScan(ctx, tool)
	if err != nil {
		return importTimes{}, err
	}
	times := importTimes{took: time.Since(began)}
	scan := &v1alpha1.Scan{}
	err = eventually(ctx, settleInterval, underPatience, func(ctx context.Context) error {
		err := im.Client.Get(ctx, client.ObjectKey{Namespace: im.target.Namespace, Name: summary.Scan}, scan)
		if err == nil && !v1alpha1.IsConditionTrue(scan.Status.Conditions, v1alpha1.ConditionSettled) {
			err = fmt.Errorf("the states of the findings of scan %s are not all recorded", scan.Name)
		}
		return err
	})
	times.recorded = time.Since(began)
	return times, err
}

// decideAndImport has a person decide without an import and during one.
func (found *underFound) decideAndImport(ctx context.Context, b *bench.Bench, f *bench.Fixture) (err error) {
	stop, err := withControllers(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	im, err := newImports(ctx, b, f, b.Imported)
	if err != nil {
		return err
	}
	p, err := newSteadyPerson(ctx, f, b.Short)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	found.pause = p.pause
	if _, err := p.decide(ctx, p.next(warmUpDecisions), nil); err != nil {
		return err
	}
	if err := b.Collected(ctx, f); err != nil {
		return err
	}
	b.Say("underimport: decisions while nothing else happens")
	if found.quiet, err = p.decide(ctx, p.next(p.count), nil); err != nil {
		return err
	}
	if err := b.Collected(ctx, f); err != nil {
		return err
	}
	b.Say("underimport: decisions during an import")
	return found.besideImport(ctx, p, im)
}

// besideImport has the person decide during an import, and at most until all its deliveries have arrived.
func (found *underFound) besideImport(ctx context.Context, p *steadyPerson, im *imports) error {
	over := make(chan struct{})
	times := importTimes{}
	group, ctx := errgroup.WithContext(ctx)
	delivering, decided := context.WithCancel(ctx)
	defer decided()
	group.Go(func() (err error) {
		defer close(over)
		if times, err = im.untilRecorded(ctx, im.newTool()); err != nil {
			return err
		}
		if err := p.awaitCreated(delivering, im.count); err != nil && delivering.Err() == nil {
			return err
		}
		return nil
	})
	group.Go(func() (err error) {
		defer decided() // nobody waits for the rest of the deliveries
		found.during, err = p.decide(ctx, p.next(p.count), over)
		return err
	})
	err := group.Wait()
	if err == nil && len(found.during) == 0 {
		err = errors.New("no decision was made during the import: --imported is too low")
	}
	times.where = "a webhook endpoint, a person decides"
	found.imports = append([]importTimes{times}, found.imports...)
	return err
}
