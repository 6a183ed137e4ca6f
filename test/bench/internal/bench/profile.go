package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

// profileFor is how long a profile takes. What a measurement does after its last whole one is in none.
const profileFor = 10 * time.Second

// profiled has the processor profiles of a fixture's kube-apiserver saved, one after the other, each under
// the name of the measurement in which it began, until the function that it returns is called.
func (b *Bench) profiled(ctx context.Context, f *Fixture) (stop func() error, err error) {
	if b.Profiles == "" {
		return func() error { return nil }, nil
	}
	client, err := rest.HTTPClientFor(f.Config)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(b.Profiles, 0o750); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- b.profiles(ctx, client, f) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

func (b *Bench) profiles(ctx context.Context, client *http.Client, f *Fixture) error {
	for number := 1; ; number++ {
		name := fmt.Sprintf("%s-%d-%03d.pprof", b.measurement.Load(), f.Size, number)
		content, err := profile(ctx, client, f.Config.Host)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(b.Profiles, name), content, 0o600)
		}
		if err != nil {
			return fmt.Errorf("save a profile of kube-apiserver: %w", err)
		}
	}
}

func profile(ctx context.Context, client *http.Client, host string) ([]byte, error) {
	url := fmt.Sprintf("%s/debug/pprof/profile?seconds=%.0f", host, profileFor.Seconds())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK && err == nil {
		err = fmt.Errorf("GET %s: %s: %s", url, response.Status, content)
	}
	return content, errors.Join(err, response.Body.Close())
}
