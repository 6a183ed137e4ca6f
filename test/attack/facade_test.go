package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// facade is `findings-operator apiserver` in a separate process.
type facade struct{ *harness.Component }

// startFacade starts a facade with the rights that it has in a cluster. It trusts this machine as a
// proxy, so that the requests of one test are not refused because of those of another.
func (d *deployment) startFacade(flags ...string) (*facade, error) {
	config, err := d.env.Facade(context.Background())
	if err != nil {
		return nil, err
	}
	d.facades++
	f := &facade{}
	f.Component, err = harness.Operator{
		Binary: filepath.Join(d.programs, "findings-operator"), Folder: d.folder, Namespace: testenv.SystemNamespace,
	}.Facade(fmt.Sprintf("facade-%d", d.facades), config, append([]string{"--trusted-proxies=127.0.0.1/32"}, flags...)...)
	if err != nil {
		return nil, err
	}
	d.stops.Add(f.stop)
	return f, f.StartReady(context.Background())
}

// stop ends it as a cluster does; it is an error if it had already ended, or panicked.
func (f *facade) stop() error {
	err := f.Stop()
	log, readErr := os.ReadFile(f.Log)
	if strings.Contains(string(log), "panic") {
		err = errors.Join(errors.New("the facade panicked"), err)
	}
	return errors.Join(err, readErr)
}

// memory returns the sum of memoryMetrics.
func (f *facade) memory(ctx context.Context) (float64, error) {
	metrics, err := f.Metrics(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask for metrics: %w\n%s", err, f.LogTail())
	}
	sum := 0.0
	for _, name := range memoryMetrics {
		value, err := harness.Sum(metrics, name, nil)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return sum, nil
}
