package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
)

// interval is how often metrics are scraped and rules evaluated.
const interval = time.Minute

// The settings of a Prometheus without flags.
var (
	promQL = parser.NewParser(parser.Options{})
	engine = promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: promQL,
	})
	jobs = strings.NewReplacer("$api", `namespace="findings-system", job="everything-api-metrics"`,
		"$controller", `namespace="findings-system", job="everything-controller-metrics"`)
)

// firing evaluates a rule each minute while there are samples, and returns when it fires, in the form of a row's want.
func firing(t *testing.T, rule rulefmt.Rule, series string) string {
	t.Helper()
	pending := int(time.Duration(rule.For) / interval)
	if time.Duration(rule.For)%interval != 0 || rule.KeepFiringFor != 0 {
		t.Fatalf("not evaluated here: for %s, keep_firing_for %s", rule.For, rule.KeepFiringFor)
	}
	scraped, end := load(t, series)
	query, err := engine.NewRangeQuery(t.Context(), scraped, nil, rule.Expr, time.UnixMilli(0), end, interval)
	must(t, err)
	defer query.Close()
	result, err := query.Exec(t.Context()).Matrix()
	must(t, err)
	var alerts []string
	seen := map[string]bool{}
	for _, element := range result {
		identity := labelsOf(rule, element.Metric).String()
		if seen[identity] {
			t.Fatalf("Prometheus does not evaluate a rule that has the same alert twice: %s", identity)
		}
		seen[identity] = true
		for _, run := range runs(element.Floats) {
			if len(run) <= pending {
				continue
			}
			first, last := run[pending], run[len(run)-1]
			when := fmt.Sprintf("from %dm", first.T/interval.Milliseconds())
			if last.T < end.UnixMilli() {
				when += fmt.Sprintf(" to %dm", last.T/interval.Milliseconds())
			}
			alerts = append(alerts, when+" "+describe(t, rule, element.Metric, first))
		}
	}
	return strings.Join(alerts, "\n")
}

// runs divides the samples of a series where one is missing.
func runs(points []promql.FPoint) (all [][]promql.FPoint) {
	for i, point := range points {
		if i == 0 || point.T-points[i-1].T > interval.Milliseconds() {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], point)
	}
	return all
}

// labelsOf returns the labels of a series' alert, in which the rule's replace the series' own.
func labelsOf(rule rulefmt.Rule, element labels.Labels) labels.Labels {
	all := labels.NewBuilder(element).Del(model.MetricNameLabel)
	for name, value := range rule.Labels {
		all.Set(name, value)
	}
	return all.Labels()
}

// describe returns an alert's labels, without those of its job and of the rule, and its summary.
func describe(t *testing.T, rule rulefmt.Rule, element labels.Labels, at promql.FPoint) string {
	t.Helper()
	data := template.AlertTemplateData(element.Map(), nil, "", promql.Sample{T: at.T, F: at.F})
	summary, err := template.NewTemplateExpander(t.Context(),
		"{{$labels := .Labels}}{{$value := .Value}}"+rule.Annotations["summary"], rule.Alert, data, model.Time(at.T),
		nil, nil, nil).Expand()
	must(t, err)
	own := labels.NewBuilder(element).Del(model.MetricNameLabel, "namespace", "job")
	own.Del(slices.Collect(maps.Keys(rule.Labels))...)
	return own.Labels().String() + ": " + summary
}

// load reads one series per line, and returns the time of the last sample of all.
func load(t *testing.T, lines string) (scraped storage.Queryable, end time.Time) {
	t.Helper()
	var all []promql.Series
	for line := range strings.Lines(strings.TrimSpace(jobs.Replace(lines))) {
		metric, values, err := promQL.ParseSeriesDesc(strings.TrimSpace(line))
		must(t, err)
		series := promql.Series{Metric: metric}
		for i, value := range values {
			at := time.UnixMilli(0).Add(time.Duration(i) * interval)
			if !value.Omitted {
				series.Floats = append(series.Floats, promql.FPoint{T: at.UnixMilli(), F: value.Value})
			}
			if end.Before(at) {
				end = at
			}
		}
		all = append(all, series)
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			found := &seriesSet{SeriesSet: storage.EmptySeriesSet()}
			for _, series := range all {
				if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Metric.Get(m.Name)) }) {
					found.rest = append(found.rest, series)
				}
			}
			return found
		},
	}}, end
}

// seriesSet iterates over the series that a query selects.
type seriesSet struct {
	storage.SeriesSet
	at   promql.Series
	rest []promql.Series
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.at, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *seriesSet) At() storage.Series { return promql.NewStorageSeries(s.at) }
