package faults

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	// sampleInterval is how often the facade is sampled.
	sampleInterval = 200 * time.Millisecond
	// usualAge is the age of data up to which the facade does not report it.
	usualAge = 5 * time.Second
	// ageSlack is the allowed difference between the ages in two samples.
	ageSlack = 1500 * time.Millisecond
	// slowSample is the duration from which a sample no longer describes one moment.
	slowSample = 2 * time.Second
)

// monitor samples the facade continuously: whether it reports ready, whether it serves reads, and
// how old it reports its data to be; and checks that these agree.
type monitor struct {
	s *trial
	// life is odd while the facade is up; each start and each kill adds one.
	life atomic.Int64
	// readyOnce is the life in which the facade was first seen ready.
	readyOnce atomic.Int64

	mutex  sync.Mutex
	phases []*observed

	end     context.CancelFunc
	working sync.WaitGroup
}

// observed holds the observations of a phase.
type observed struct {
	name string
	// samples counts the samples; the others count those that were served, not ready, or refused.
	samples, served, notReady, refused int
	// oldest is the greatest x-data-age of a served read, in seconds.
	oldest int
	// oldestMetric is the greatest age in the metric.
	oldestMetric time.Duration
}

func newMonitor(s *trial) *monitor {
	m := &monitor{s: s}
	m.life.Store(1)
	ctx, end := context.WithCancel(context.Background())
	m.end = end
	m.phases = append(m.phases, &observed{name: "before"})
	m.working.Go(func() { m.run(ctx) })
	s.t.Cleanup(m.stop)
	return m
}

func (m *monitor) stop() {
	m.end()
	m.working.Wait()
}

// begin begins a phase. The index of the first one is 1.
func (m *monitor) begin(name string) (phase *observed, index int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	phase = &observed{name: name}
	m.phases = append(m.phases, phase)
	return phase, len(m.phases)
}

// seen returns the observations of a phase so far.
func (m *monitor) seen(phase *observed) observed {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return *phase
}

// uptime changes with each kill and each start of the facade, and is odd while it is up.
func (m *monitor) uptime() int { return int(m.life.Load()) }

// killFacade kills the facade and starts it again, and counts both in life, so that the checks
// expect the outage.
func (m *monitor) killFacade() error {
	m.life.Add(1)
	m.s.Facade.Kill()
	err := m.s.Facade.Start()
	if err != nil {
		return err
	}
	// It answers once it listens.
	if err := await(context.Background(), "the facade listens", func(ctx context.Context) error {
		_, _, err := m.s.rest.call(ctx, http.MethodGet, "/", nil)
		return err
	}); err != nil {
		return err
	}
	m.life.Add(1)
	return nil
}

func (m *monitor) run(ctx context.Context) {
	for harness.Pause(ctx, sampleInterval) {
		m.sample(ctx)
	}
}

// sample takes one sample. It reads the age first and last, so that the age of everything in between
// is known.
func (m *monitor) sample(ctx context.Context) {
	life, begun := m.uptime(), time.Now()
	before, err1 := metric(ctx, m.s.Facade, "findings_api_authorization_data_age_seconds")
	ready, err2 := m.isReady(ctx)
	code, got, err3 := m.s.rest.call(ctx, http.MethodGet, "/v1/findings?size=1", nil)
	after, err4 := metric(ctx, m.s.Facade, "findings_api_authorization_data_age_seconds")
	took := time.Since(begun)
	if ctx.Err() != nil || life != m.uptime() || life%2 == 0 {
		return
	}
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		m.s.verdict.wrong("the facade runs and does not answer: %v", err)
		return
	}
	m.mutex.Lock()
	phase := m.phases[len(m.phases)-1]
	phase.note(ready, code, got, after)
	m.mutex.Unlock()
	if took > slowSample {
		return // a busy machine: the answers describe different moments
	}
	if ready {
		m.readyOnce.Store(int64(life))
	}
	m.check(life, seconds(before), seconds(after), took, ready, code, got)
}

func seconds(value float64) time.Duration {
	const most = 1e6
	return time.Duration(min(value, most) * float64(time.Second))
}

func (o *observed) note(ready bool, code int, got answer, age float64) {
	o.samples++
	if !ready {
		o.notReady++
	}
	if code == http.StatusOK {
		o.served++
		if shown, err := strconv.Atoi(got.header.Get("X-Data-Age")); err == nil {
			o.oldest = max(o.oldest, shown)
		}
	} else {
		o.refused++
	}
	if age < 1e6 {
		o.oldestMetric = max(o.oldestMetric, seconds(age))
	}
}

// check compares a sample with the documented behaviour.
func (m *monitor) check(life int, before, after, took time.Duration, ready bool, code int, got answer) {
	youngest, oldest := min(before, after), max(before, after)
	// Between the two reads the age may have exceeded both values, or fallen below both.
	fresh := oldest+took+ageSlack < m.s.staleness
	stale := youngest > m.s.staleness+ageSlack
	started := m.readyOnce.Load() == int64(life)
	if !ready && started {
		m.s.verdict.wrong("the facade says that it is not ready with knowledge %s old, though it had begun to serve", oldest)
	}
	switch {
	case code == http.StatusOK && stale:
		m.s.verdict.wrong("the facade serves a read though it has known nothing of keys for %s", youngest)
	case code != http.StatusOK && started && fresh:
		m.s.verdict.wrong("a read is answered with %d %q though what is known is %s old", code, got.detail(), oldest)
	case code != http.StatusOK:
		m.s.checkRefusal(code, got)
	}
	if code != http.StatusOK {
		return
	}
	shown := got.header.Get("X-Data-Age")
	age, err := strconv.Atoi(shown)
	switch {
	case shown == "" && youngest > usualAge+ageSlack:
		m.s.verdict.wrong("a read is served from knowledge %s old without x-data-age", youngest)
	case shown != "" && (err != nil || time.Duration(age)*time.Second > oldest+ageSlack || time.Duration(age+1)*time.Second < youngest-ageSlack):
		m.s.verdict.wrong("x-data-age is %q though the metric says %s", shown, oldest)
	}
}

func (m *monitor) isReady(ctx context.Context) (bool, error) {
	status, _, err := fetch(ctx, "http://"+m.s.Facade.HealthAddress+"/readyz")
	return status == http.StatusOK, err
}

// metric returns the sum of the series of a replica's metric.
func metric(ctx context.Context, replica *rig.Replica, name string) (float64, error) {
	body, err := harness.Get(ctx, probes, "http://"+replica.MetricsAddress+"/metrics")
	if err != nil {
		return 0, err
	}
	return harness.Sum(body, name, nil)
}

// probes uses its own connections.
var probes = &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

func fetch(ctx context.Context, url string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	status, body, err := harness.Answer(probes, request)
	return status, string(body), err
}
