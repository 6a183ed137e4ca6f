package conformance

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/leaks"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// startDeployment starts a control plane, the controllers and the facade, each with the rights of
// its own service account, and sets the flags as a user of the suite would. This deployment has
// everything that tests need, so every test must run.
func startDeployment() (stop func() error, err error) {
	var stops harness.Stops
	stop = stops.Stop
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	folder, err := stops.Folder("conformance-")
	if err != nil {
		return stop, err
	}
	ctx := context.Background()
	programs, err := harness.Build(ctx)
	if err != nil {
		return stop, err
	}
	env, err := testenv.Start()
	if err != nil {
		return stop, err
	}
	stops.Add(env.Stop)
	if secretSearch, err = leaks.Start(env.Config, folder); err != nil {
		return stop, err
	}
	stops.Add(endSearch)

	controller, facade, err := env.Operator(ctx, harness.Operator{
		Binary: filepath.Join(programs, "findings-operator"), Folder: folder, Namespace: testenv.SystemNamespace,
	})
	if err != nil {
		return stop, err
	}
	for _, component := range []*harness.Component{controller, facade} {
		stops.Add(func() error {
			return errors.Join(keepMetrics(component), component.Stop(), keepLog(component))
		})
		if err := component.StartReady(ctx); err != nil {
			return stop, err
		}
	}
	kubeconfigPath = filepath.Join(folder, "admin")
	*baseURL, *requireAll = "http://"+facade.Address, true
	return stop, harness.WriteKubeconfig(kubeconfigPath, env.Config, "default")
}
