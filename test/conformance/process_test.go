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
func startDeployment(ctx context.Context, stops *harness.Stops) error {
	folder, err := stops.Folder("conformance-")
	if err != nil {
		return err
	}
	env, err := testenv.Start(stops)
	if err != nil {
		return err
	}
	if secretSearch, err = leaks.Start(env.Config, folder); err != nil {
		return err
	}
	stops.Add(endSearch)

	controller, facade, err := env.Operator(ctx, harness.Operator{Folder: folder})
	if err != nil {
		return err
	}
	for _, component := range []*harness.Component{controller, facade} {
		stops.Add(func() error {
			return errors.Join(keepMetrics(component), component.Stop(), keepLog(component))
		})
		if err := component.StartReady(ctx); err != nil {
			return err
		}
	}
	kubeconfigPath = filepath.Join(folder, "admin")
	*baseURL, *requireAll = "http://"+facade.Address, true
	return harness.WriteKubeconfig(kubeconfigPath, env.Config, "default")
}
