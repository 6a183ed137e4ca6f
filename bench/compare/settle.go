package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
)

const (
	settleTimeout  = 10 * time.Minute
	settleInterval = 200 * time.Millisecond
)

// settle runs the controllers over the fixture until they have reconciled everything. It returns
// the number of objects they wrote, and the times from their start until they were done and until
// they were ready.
func settle(ctx context.Context, f *bench.Fixture) (written int, looked, ready time.Duration, err error) {
	revision, err := dataset.Revision(ctx, f.EtcdURL())
	if err != nil {
		return 0, 0, 0, err
	}
	began := time.Now()
	if err := f.StartController(ctx); err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, f.StopController()) }()
	ready = f.Controller.Readied
	if err := waitIdle(ctx, f); err != nil {
		return 0, 0, 0, err
	}
	looked = time.Since(began)
	for _, kind := range kinds {
		n, err := dataset.WrittenSince(ctx, f.EtcdURL(), revision, f.Organization.Namespace, kind)
		if err != nil {
			return 0, 0, 0, err
		}
		written += n
	}
	return written, looked, ready, nil
}

// waitIdle returns once the controllers have reconciled each finding and their queues are empty.
func waitIdle(ctx context.Context, f *bench.Fixture) error {
	last := errors.New("no metrics yet")
	err := wait.PollUntilContextTimeout(ctx, settleInterval, settleTimeout, true, func(ctx context.Context) (bool, error) {
		last = checkIdle(ctx, f)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func checkIdle(ctx context.Context, f *bench.Fixture) error {
	sums, err := sumMetrics(ctx, "http://"+f.Controller.MetricsAddress+"/metrics",
		`workqueue_depth{`, `workqueue_unfinished_work_seconds{`, `controller_runtime_reconcile_total{controller="finding"`)
	if err != nil {
		return err
	}
	if depth := sums[`workqueue_depth{`]; depth > 0 {
		return fmt.Errorf("%.0f objects wait", depth)
	}
	if busy := sums[`workqueue_unfinished_work_seconds{`]; busy > 0 {
		return errors.New("an object is being worked on")
	}
	if looked := sums[`controller_runtime_reconcile_total{controller="finding"`]; looked < float64(f.Size) {
		return fmt.Errorf("%.0f of %d findings were looked at", looked, f.Size)
	}
	return nil
}

// sumMetrics sums the metrics whose lines begin with each prefix.
func sumMetrics(ctx context.Context, url string, prefixes ...string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	sums := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		for _, prefix := range prefixes {
			if !strings.HasPrefix(lines.Text(), prefix) {
				continue
			}
			value, err := strconv.ParseFloat(lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:], 64)
			if err != nil {
				return nil, err
			}
			sums[prefix] += value
		}
	}
	return sums, lines.Err()
}
