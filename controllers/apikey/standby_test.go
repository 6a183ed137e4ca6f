package apikey

import (
	"context"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/appsec-dev/findings-operator/controllers"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// A standby replica takes over with full caches; one that only the leader starts would have to be filled first.
func TestReplicaInWaitingFillsItsCaches(t *testing.T) {
	mgr := func() ctrl.Manager {
		m, err := ctrl.NewManager(env.Config, manager.Options{
			Scheme:                        env.Scheme,
			Cache:                         controllers.CacheOptions(),
			Metrics:                       metricsserver.Options{BindAddress: "0"},
			LeaderElection:                true,
			LeaderElectionID:              "standby-test",
			LeaderElectionNamespace:       testenv.SystemNamespace,
			LeaderElectionReleaseOnCancel: true,
			Controller:                    config.Controller{SkipNameValidation: new(true)},
		})
		harness.Must(t, err)
		return m
	}
	leader, standby := mgr(), mgr()
	harness.Background(t, leader.Start)
	<-leader.Elected()

	own, err := signingKeysCache(t.Context(), standby, testenv.SystemNamespace)
	harness.Must(t, err)
	harness.Background(t, standby.Start)
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	if !own.WaitForCacheSync(ctx) {
		t.Error("the cache of the signing keys has not been started")
	}
	select {
	case <-standby.Elected():
		t.Error("the standby leads: the test shows nothing")
	default:
	}
}
