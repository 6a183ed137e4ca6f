package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/load"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	clientGoSide = "client-go"
	rawSide      = "kube-apiserver, raw"

	// decidedFindings is the approximate number of findings that decisions are written to, in turn.
	decidedFindings = 1024
	// decidedBy is the user in the findings' decisions.
	decidedBy = "apikey/bench-0"
)

// writers are the numbers of concurrent writers.
var writers = []int{1, 8, maxCallers}

// writes compares decisions through the REST API with decisions written directly to the API server.
func writes(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	f, err := b.Fixture(ctx, b.Largest())
	if err != nil {
		return nil, err
	}
	w, err := newWriting(ctx, b, f)
	if err != nil {
		return nil, err
	}
	var sides []measure.Side
	for _, n := range writers {
		sides = append(sides, w.facade(n), w.clientGo(n), w.raw(n))
	}
	results, err := b.CompareCollected(ctx, f, sides...)
	if err != nil {
		return nil, err
	}
	section := &report.Section{Title: "Decisions", Text: writesText}
	chart := report.Chart{Title: "Decisions about findings", Unit: "writes a second"}
	for _, n := range writers {
		facade, direct := sideName(facadeSide, callersName(n)), sideName(clientGoSide, callersName(n))
		ratio := results.Ratio(facade, direct)
		row := report.AtLeast(fmt.Sprintf("PATCH against client-go's, %s", callersName(n)), 0.9, ratio.Median, "%.2f")
		row.Measured += fmt.Sprintf(" (%.2f to %.2f; CPU of the servers %.2f)", ratio.Least, ratio.Most,
			results.CPURatio(facade, direct).Median)
		section.Rows = append(section.Rows, row.InSummary(), report.Row{
			Measure: fmt.Sprintf("time added to a write, %s", callersName(n)),
			Measured: fmt.Sprintf("p50 %s, p99 %s", addedBy(results, facade, direct, p50),
				addedBy(results, facade, direct, p99)),
		})
		group := report.Group{Name: callersName(n)}
		for _, who := range []string{facadeSide, clientGoSide, rawSide} {
			group.Bars = append(group.Bars, report.Bar{Name: who, Value: results.Rate(sideName(who, callersName(n)))})
		}
		chart.Groups = append(chart.Groups, group)
	}
	section.Tables = []report.Table{sideTable(fmt.Sprintf("%s findings:", thousands(f.Size)), sides, results)}
	section.Charts = []report.Chart{chart}
	return section, nil
}

const writesText = "`PATCH /v2/findings/{id}` with an API key, a status and comments, compared with the same merge patch of the same `spec.triage` sent straight to kube-apiserver: " +
	"by client-go (HTTP/2, the answer decoded into its type, as the REST API does it), and as a raw request of the same form as the one to the REST API. All reach kube-apiserver as the same service account " +
	"and pass the same admission policies. Each write changes its finding, and no two callers write the same finding. The controllers do not run. " +
	"`CPU` is the processor time of the REST API, kube-apiserver and etcd per write."

func callersName(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}

// writing holds what the sides have in common.
type writing struct {
	bench    *bench.Bench
	fixture  *bench.Fixture
	findings []string
	account  *rest.Config
	direct   *decider
	server   *url.URL
	// turns counts the turns, so that each writes different decisions.
	turns int
}

func newWriting(ctx context.Context, b *bench.Bench, f *bench.Fixture) (*writing, error) {
	w := &writing{bench: b, fixture: f}
	var err error
	if w.findings, err = findingNames(f, decidedFindings); err != nil {
		return nil, err
	}
	if w.account, err = f.ServiceAccount(ctx, testenv.SystemNamespace, testenv.APIServiceAccount); err != nil {
		return nil, err
	}
	if w.direct, err = newDecider(w.account, f.Organization.Namespace, v1alpha1.APIFieldManager, decidedBy); err != nil {
		return nil, err
	}
	w.server, err = url.Parse(w.account.Host)
	return w, err
}

func (w *writing) series() string {
	w.turns++
	return fmt.Sprintf("turn %d", w.turns)
}

// facade returns a side that writes through the REST API.
func (w *writing) facade(callers int) measure.Side {
	target := load.Target{Name: sideName(facadeSide, callersName(callers)), Address: w.fixture.Facade.Address}
	return w.byLoad(target, callers, []int{w.fixture.Facade.PID()}, func(number int, d decision) []byte {
		token := w.fixture.Organization.Tokens[number%len(w.fixture.Organization.Tokens)]
		return load.Request("PATCH", target.Address, "/v2/findings/"+d.finding, d.restBody(),
			"Authorization: Bearer "+token, "Content-Type: application/json")
	})
}

// raw returns a side that writes to the API server with the same client that facade uses.
func (w *writing) raw(callers int) measure.Side {
	target := load.Target{Name: sideName(rawSide, callersName(callers)), Address: w.server.Host, CA: w.account.CAData}
	return w.byLoad(target, callers, nil, func(_ int, d decision) []byte {
		path := fmt.Sprintf("/apis/%s/namespaces/%s/findings/%s?fieldManager=%s",
			v1alpha1.GroupVersion, w.fixture.Organization.Namespace, d.finding, v1alpha1.APIFieldManager)
		return load.Request("PATCH", target.Address, path, d.mergePatch(decidedBy),
			"Authorization: Bearer "+w.account.BearerToken, "Content-Type: application/merge-patch+json", "Accept: application/json")
	})
}

func (w *writing) byLoad(target load.Target, callers int, pids []int, request func(number int,
	d decision) []byte) measure.Side {
	return measure.Side{Name: target.Name, PIDs: append(pids, servers(w.fixture)...),
		Run: func(_ context.Context, duration time.Duration) (measure.Sample, error) {
			series := w.series()
			target.Requests = make([][]byte, 2*len(w.findings))
			for number := range target.Requests {
				target.Requests[number] = request(number, newDecision(w.findings, series, number))
			}
			return w.bench.Client.Run(load.Job{Target: target, Connections: callers, Apart: true, For: duration})
		}}
}

// clientGo returns a side that writes to the API server with client-go, as programs do.
func (w *writing) clientGo(callers int) measure.Side {
	return measure.Side{Name: sideName(clientGoSide, callersName(callers)), PIDs: servers(w.fixture),
		Run: func(ctx context.Context, duration time.Duration) (measure.Sample, error) {
			series := w.series()
			return callFor(ctx, callers, duration, func(ctx context.Context, number int) error {
				return w.direct.write(ctx, newDecision(w.findings, series, number))
			})
		}}
}

func p50(s measure.Sample) time.Duration { return s.P50 }

func p99(s measure.Sample) time.Duration { return s.P99 }

// addedBy returns the median of the rounds' additional time of one side compared with another.
func addedBy(results measure.Results, side, than string, figure func(measure.Sample) time.Duration) string {
	var added []float64
	for i := range min(len(results[side]), len(results[than])) {
		added = append(added, float64(figure(results[side][i])-figure(results[than][i])))
	}
	median := time.Duration(measure.Spread(added).Median)
	if median < 0 {
		return "-" + milliseconds(-median)
	}
	return milliseconds(median)
}
