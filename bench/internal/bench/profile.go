package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// profileFor is how long a profile takes. Work after a measurement's last whole profile is not
// profiled.
const profileFor = 10 * time.Second

// profileKinds are the profiles taken at the same time: processor time and allocations.
var profileKinds = []string{"profile", "allocs"}

// Profiled saves profiles of a kube-apiserver, one after the other, until stop is called. Each is named after
// the measurement in which it began and the number of its findings.
func (b *Bench) Profiled(ctx context.Context, config *rest.Config, findings int) (stop func() error, err error) {
	if b.Profiles == "" {
		return func() error { return nil }, nil
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(b.Profiles, 0o750); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- b.profiles(ctx, client, config.Host, findings) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

func (b *Bench) profiles(ctx context.Context, client *http.Client, host string, findings int) error {
	for number := 1; ; number++ {
		measurement := b.measurement.Load()
		group, took := errgroup.WithContext(ctx)
		for _, kind := range profileKinds {
			path := filepath.Join(b.Profiles, fmt.Sprintf("%s-%d-%03d.%s.pprof", measurement, findings, number, kind))
			group.Go(func() error { return saveProfile(took, client, host, kind, path) })
		}
		err := group.Wait()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("save a profile of kube-apiserver: %w", err)
		}
	}
}

func saveProfile(ctx context.Context, client *http.Client, host, kind, path string) error {
	content, err := profile(ctx, client, host, kind, fmt.Sprintf("seconds=%.0f", profileFor.Seconds()))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

// profile requests one profile from kube-apiserver: see net/http/pprof.
func profile(ctx context.Context, client *http.Client, host, kind, query string) (string, error) {
	address, err := url.JoinPath(host, "debug/pprof", kind)
	if err != nil {
		return "", err
	}
	return harness.Get(ctx, client, address+"?"+query)
}
