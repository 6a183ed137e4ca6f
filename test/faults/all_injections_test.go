//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// killController kills the leading controller and starts it again.
func (s *trial) killController() {
	s.t.Helper()
	s.verdict.injected(1)
	s.must(s.leader().Restart())
}

// killEtcd kills etcd and starts it again.
func (s *trial) killEtcd() {
	s.t.Helper()
	s.verdict.injected(1)
	s.must(s.Etcd.Restart())
	s.must(s.AwaitReady(s.t.Context()))
}

// takeAway kills the API server and etcd, and restarts them after d, or once the facade has begun
// to refuse reads if that is later. It returns how long reads were still served.
func (s *trial) takeAway(d time.Duration) time.Duration {
	s.t.Helper()
	s.verdict.injected(1)
	begun := time.Now()
	s.APIServer.Kill()
	s.Etcd.Kill()
	s.awaitRefusal()
	served := time.Since(begun)
	harness.Pause(s.t.Context(), d-served)
	s.must(errors.Join(s.Etcd.Start(), s.APIServer.Start()))
	s.must(s.AwaitReady(s.t.Context()))
	return served
}

// through applies a fault to the facade's connections for that long.
func (s *trial) through(d time.Duration, do func() error) {
	s.t.Helper()
	s.verdict.injected(1)
	s.must(do())
	harness.Pause(s.t.Context(), d)
	s.must(s.Facade.Door.Heal(s.t.Context()))
}

// killAmidSending kills the leader after it has sent an event and before it has recorded that, and
// waits until the event is sent again under the same id.
func (s *trial) killAmidSending() {
	s.t.Helper()
	s.verdict.injected(1)
	caught := make(chan string, 1)
	s.receiver.keepWaiting(func(id string) bool {
		select {
		case caught <- id:
			return true
		default:
			return false
		}
	})
	var id string
	select {
	case id = <-caught:
	case <-time.After(settleTimeout):
		s.t.Fatal("no webhook was sent")
	}
	s.must(s.leader().Restart())
	s.receiver.keepWaiting(nil)
	s.eventually("the event is sent again and recorded", func(ctx context.Context) error {
		delivery := &v1alpha1.WebhookDelivery{}
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: id}, delivery); err != nil {
			return err
		}
		if delivery.Status.Phase != v1alpha1.WebhookDeliveryDelivered {
			return fmt.Errorf("it is %s: %+v", delivery.Status.Phase, delivery.Status.Attempts)
		}
		return nil
	})
}

// partitionLeader drops the leader's traffic in both directions until another controller leads.
func (s *trial) partitionLeader() {
	s.t.Helper()
	s.verdict.injected(1)
	old := s.leader()
	s.must(old.Door.BlackHole())
	s.awaitLeader(old)
	s.must(old.Door.Heal(s.t.Context()))
}

// awaitRedis waits until the facade counts in Redis, or has stopped doing so.
func (s *trial) awaitRedis(used float64) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("findings_ratelimit_redis_in_use is %v", used), func(ctx context.Context) error {
		got, err := metric(ctx, s.Facade, "findings_ratelimit_redis_in_use")
		if err != nil || got != used {
			return fmt.Errorf("it is %v: %w", got, err)
		}
		return nil
	})
}

// freezeRedis freezes Redis, then kills it, and restores it after each.
func (s *trial) freezeRedis() {
	s.t.Helper()
	s.awaitRedis(1)
	s.verdict.injected(2)
	s.must(s.Redis.Freeze())
	s.awaitRedis(0)
	s.awaitProgress(coolDown)
	s.must(s.Redis.Thaw())
	s.awaitRedis(1)
	s.Redis.Kill()
	s.awaitRedis(0)
	s.awaitProgress(coolDown)
	s.must(s.Redis.Start())
	s.awaitRedis(1)
}
