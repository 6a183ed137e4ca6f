package attack

import (
	"context"
	"flag"
	"net/netip"
	"time"

	"github.com/appsec-dev/findings-operator/controllers/apikey"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/organization"
	"github.com/appsec-dev/findings-operator/controllers/project"
	"github.com/appsec-dev/findings-operator/controllers/repository"
	"github.com/appsec-dev/findings-operator/controllers/retention"
	"github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/controllers/reviewissue"
	"github.com/appsec-dev/findings-operator/controllers/scan"
	"github.com/appsec-dev/findings-operator/controllers/triageoperation"
	"github.com/appsec-dev/findings-operator/controllers/triagepolicy"
	"github.com/appsec-dev/findings-operator/controllers/webhookdelivery"
	"github.com/appsec-dev/findings-operator/controllers/webhookendpoint"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// patience bounds every wait.
	patience = 2 * time.Minute
	interval = 20 * time.Millisecond
	// plenty is the rate limit of organizations in tests that are not about limits.
	plenty = 1_000_000
	// allowedReceiver is the only address of this machine that webhooks may be sent to.
	allowedReceiver = "127.77.0.1"
)

// programs lets the tests attack programs that were built in another way.
var programs = flag.String("programs", "", "whole path of a folder with findings-operator and kubectl-findings; without it they are built")

// deployment is the service on a separate cluster.
type deployment struct {
	env    *testenv.Environment
	facade *facade
	// programs is the folder of the attacked programs.
	programs string
	// folder holds their configuration.
	folder string
	stops  *harness.Stops
	// facades counts the facades that were started.
	facades int
}

func (d *deployment) start(ctx context.Context) (err error) {
	if d.folder, err = d.stops.Folder("attack-"); err != nil {
		return err
	}
	if d.programs = *programs; d.programs == "" {
		if d.programs, err = harness.Build(ctx); err != nil {
			return err
		}
	}
	if d.env, err = testenv.Start(d.stops); err != nil {
		return err
	}
	if err := d.startControllers(); err != nil {
		return err
	}
	d.facade, err = d.startFacade()
	return err
}

// startControllers runs the controllers in this process, where the tests control how the names of
// receivers resolve.
func (d *deployment) startControllers() error {
	receivers := netip.PrefixFrom(netip.MustParseAddr(allowedReceiver), 32)
	stop, err := controllertest.Run(d.env,
		apikey.Settings{Namespace: testenv.SystemNamespace}.SetupWithManager,
		finding.Settings{}.SetupWithManager, organization.SetupWithManager, project.SetupWithManager,
		repository.SetupWithManager, retention.Settings{}.SetupWithManager,
		review.Settings{}.SetupWithManager, reviewissue.SetupWithManager, scan.Settings{}.SetupWithManager,
		triageoperation.SetupWithManager, triagepolicy.SetupWithManager,
		webhookdelivery.Settings{Allowed: []netip.Prefix{receivers}}.SetupWithManager,
		webhookendpoint.Settings{}.SetupWithManager,
	)
	if err != nil {
		return err
	}
	d.stops.Add(stop)
	return nil
}
