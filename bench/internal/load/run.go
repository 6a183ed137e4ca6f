package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
)

const (
	// readBuffer holds a good part of a page, so that reading a page takes few system calls.
	readBuffer = 128 << 10
	// answerTimeout bounds the wait for one answer.
	answerTimeout = 30 * time.Second
)

// Run does the job. Each connection is opened and receives one answer before the clock starts. An answer that is not
// 200 is an error. The times are those from the first byte of a request to the last byte of its answer.
func Run(ctx context.Context, job Job) (measure.Sample, error) {
	workers, err := connect(ctx, job)
	defer func() {
		for _, w := range workers {
			w.connection.Close() //nolint:errcheck // nothing is under way on it
		}
	}()
	if err != nil {
		return measure.Sample{}, err
	}
	start := time.Now()
	until := start.Add(job.For)
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range workers {
		group.Go(func() error { return w.work(ctx, until) })
	}
	if err := group.Wait(); err != nil {
		return measure.Sample{}, fmt.Errorf("%s: %w", job.Target.Name, err)
	}
	return summary(workers, time.Since(start))
}

func connect(ctx context.Context, job Job) ([]*worker, error) {
	workers := make([]*worker, 0, job.Connections)
	if len(job.Target.Requests) == 0 || job.Connections < 1 {
		return nil, errors.New("a job needs requests and connections")
	}
	step := 1
	if job.Apart {
		step = job.Connections
	}
	if len(job.Target.Requests)%step != 0 {
		return workers, fmt.Errorf("%d connections cannot have %d requests apart", step, len(job.Target.Requests))
	}
	for i := range job.Connections {
		connection, err := dial(ctx, job.Target)
		if err != nil {
			return workers, fmt.Errorf("%s: %w", job.Target.Name, err)
		}
		w := &worker{connection: connection, reader: bufio.NewReaderSize(connection, readBuffer),
			requests: job.Target.Requests, next: i, step: step}
		workers = append(workers, w)
		if err := w.once(); err != nil {
			return workers, fmt.Errorf("%s: %w", job.Target.Name, err)
		}
		w.taken, w.bytes = w.taken[:0], 0
	}
	return workers, nil
}

func dial(ctx context.Context, target Target) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: answerTimeout}
	if target.CA == nil {
		return dialer.DialContext(ctx, "tcp", target.Address)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(target.CA) {
		return nil, errors.New("the CA is no PEM of a certificate")
	}
	secure := &tls.Dialer{NetDialer: dialer, Config: &tls.Config{
		RootCAs: roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	}}
	return secure.DialContext(ctx, "tcp", target.Address)
}

// worker is one connection.
type worker struct {
	connection net.Conn
	reader     *bufio.Reader
	requests   [][]byte
	next, step int
	taken      []time.Duration
	bytes      int
}

func (w *worker) work(ctx context.Context, until time.Time) error {
	for ctx.Err() == nil && time.Now().Before(until) {
		if err := w.once(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (w *worker) once() error {
	request := w.requests[w.next%len(w.requests)]
	w.next += w.step
	began := time.Now()
	if err := w.connection.SetDeadline(began.Add(answerTimeout)); err != nil {
		return err
	}
	if _, err := w.connection.Write(request); err != nil {
		return err
	}
	status, length, err := readAnswer(w.reader)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("answered %d", status)
	}
	w.taken = append(w.taken, time.Since(began))
	w.bytes += length
	return nil
}

func summary(workers []*worker, elapsed time.Duration) (measure.Sample, error) {
	var taken []time.Duration
	bytes := 0
	for _, w := range workers {
		taken = append(taken, w.taken...)
		bytes += w.bytes
	}
	if len(taken) == 0 {
		return measure.Sample{}, errors.New("no request was answered")
	}
	sample := measure.SampleOf(taken, elapsed)
	sample.Bytes = bytes / len(taken)
	return sample, nil
}
