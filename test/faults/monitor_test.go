package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// sampleInterval is how often the facade is looked at.
	sampleInterval = 200 * time.Millisecond
	// usualAge is up to which the facade says nothing of the age of what it knows.
	usualAge = 5 * time.Second
	// ageSlack is what an age may differ by between two looks at it.
	ageSlack = 1500 * time.Millisecond
	// slowSample is a look that took so long that it says nothing of one moment.
	slowSample = 2 * time.Second
)

// monitor looks at the facade all the time: whether it says that it is ready, whether it serves
// reads, and how old it says that its knowledge is; and holds each against the others.
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

// observed is what was seen in a phase.
type observed struct {
	name string
	// samples of which so many were served and so many not ready.
	samples, served, notReady, refused int
	// oldest is the greatest x-data-age that a read was served with, in seconds.
	oldest int
	// oldestMetric is the greatest age that the metric told.
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

// begin begins a phase.
func (m *monitor) begin(name string) *observed {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	phase := &observed{name: name}
	m.phases = append(m.phases, phase)
	return phase
}

// seen is what was observed of a phase until now.
func (m *monitor) seen(phase *observed) observed {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return *phase
}

// uptime changes with each kill and each start of the facade, and is odd while it is up.
func (m *monitor) uptime() int { return int(m.life.Load()) }

// killFacade kills the facade and starts it again, so that nobody is surprised.
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
	for pause(ctx, sampleInterval) {
		m.sample(ctx)
	}
}

// sample looks once. The age is read first and last, so that what lies between has had one of these.
func (m *monitor) sample(ctx context.Context) {
	life, begun := m.uptime(), time.Now()
	before, err1 := m.s.facadeMetric(ctx, "findings_api_authorization_data_age_seconds")
	ready, err2 := m.isReady(ctx)
	code, got, err3 := m.s.rest.call(ctx, http.MethodGet, "/v1/findings?size=1", nil)
	after, err4 := m.s.facadeMetric(ctx, "findings_api_authorization_data_age_seconds")
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
		return // a machine with other work: the answers are of different moments
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

// check holds what was seen against what is promised.
func (m *monitor) check(life int, before, after, took time.Duration, ready bool, code int, got answer) {
	youngest, oldest := min(before, after), max(before, after)
	// Between the looks the age may have grown to more than either, and fallen to less.
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
	told := got.header.Get("X-Data-Age")
	age, err := strconv.Atoi(told)
	switch {
	case told == "" && youngest > usualAge+ageSlack:
		m.s.verdict.wrong("a read is served from knowledge %s old without x-data-age", youngest)
	case told != "" && (err != nil || time.Duration(age)*time.Second > oldest+ageSlack || time.Duration(age+1)*time.Second < youngest-ageSlack):
		m.s.verdict.wrong("x-data-age is %q though the metric says %s", told, oldest)
	}
}

func (m *monitor) isReady(ctx context.Context) (bool, error) {
	status, _, err := fetch(ctx, "http://"+m.s.Facade.HealthAddress+"/readyz")
	return status == http.StatusOK, err
}

// facadeMetric is a metric of the facade that has no labels.
func (s *trial) facadeMetric(ctx context.Context, name string) (float64, error) {
	status, body, err := fetch(ctx, "http://"+s.Facade.MetricsAddress+"/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s (%d)", name, status)
}

// probes has connections of its own.
var probes = &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

func fetch(ctx context.Context, url string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := probes.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := readAll(response.Body)
	return response.StatusCode, body, err
}
