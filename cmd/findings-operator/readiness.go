package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	ctrl "sigs.k8s.io/controller-runtime"
)

// cachesSynced is a runnable without leader election. The manager starts those once all caches have synced,
// including those that controllers add: until then this replica cannot lead.
type cachesSynced struct{ atomic.Bool }

// addReadiness makes the manager report ready once all its caches have synced.
func addReadiness(mgr ctrl.Manager) error {
	synced := &cachesSynced{}
	if err := mgr.Add(synced); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", synced.check)
}

// Start implements manager.Runnable.
func (s *cachesSynced) Start(context.Context) error {
	s.Store(true)
	return nil
}

// NeedLeaderElection returns false: a standby replica is ready too.
func (*cachesSynced) NeedLeaderElection() bool { return false }

func (s *cachesSynced) check(*http.Request) error {
	if !s.Load() {
		return errors.New("the caches have not synced yet")
	}
	return nil
}
