//go:build faults

package faults

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
	"github.com/appsec-dev/findings-operator/test/needs"
)

const (
	// staleness is the value of --key-staleness, and outage how long the API server and etcd are
	// down.
	staleness = 20 * time.Second
	outage    = 30 * time.Second

	// noticedWithin is how soon the facade gives up a silent connection.
	noticedWithin = 10 * time.Second
	// noise is the delay that other load on the machine may add.
	noise = 2 * time.Second
)

var only = flag.String("only", "", "inject only the faults whose names this regular expression matches")

func TestNothingAcknowledgedIsLostOverEveryFault(t *testing.T) {
	s := start(t, rig.Options{
		KeyStaleness: staleness, Controllers: 2, Redis: needs.Program(t, "redis-server", "redis-server"),
	})
	keys := map[string]string{}
	for _, name := range []string{"calm", "stalled", "black-hole", "dead"} {
		keys[name] = s.spareKey(name)
	}
	var outcomes []outcome
	chosen, err := regexp.Compile(*only)
	s.must(err)
	phase := func(name string, fault func()) {
		if !chosen.MatchString(name) {
			return
		}
		outcomes = append(outcomes, s.phase(name, fault))
	}

	phase("nothing", func() {
		s.checkRevoked("while all is well", "calm", keys["calm"], http.StatusUnauthorized, revokedWithin)
	})
	phase("facade killed, twice", func() { s.killFacade(); s.awaitProgress(coolDown); s.killFacade() })
	phase("leading controller killed", s.killController)
	phase("kube-apiserver killed", s.killAPIServer)
	phase("etcd killed", s.killEtcd)
	for _, m := range moments() {
		phase("leader killed "+m.name, func() { s.killAt(m) })
	}
	phase("leader killed between sending and recording", s.killAmidSending)
	phase("leader cut off while it leads", s.partitionLeader)
	phase("kube-apiserver and etcd gone for "+outage.String(), func() {
		served := s.takeAway(outage)
		t.Logf("without an API server reads were served for %s (--key-staleness %s)", short(served), staleness)
		s.checkServed(served)
	})
	phase("watches cut", func() { s.through(0, s.Facade.Door.Cut) })
	phase("connections dead, new ones pass", func() {
		s.verdict.injected(1)
		s.must(s.Facade.Door.Die())
		s.checkRevoked("on connections that are dead", "dead", keys["dead"], http.StatusUnauthorized, noticedWithin)
	})
	phase("connections reset", func() { s.through(3*time.Second, s.Facade.Door.Reset) })
	phase("connections slow (300 ms +- 200 ms each way)", func() {
		s.through(8*time.Second, func() error { return s.Facade.Door.Slow(300, 200) })
	})
	phase("connections dripping (64 bytes each 2 ms)", func() {
		s.through(8*time.Second, func() error { return s.Facade.Door.Drip(64, 2000) })
	})
	phase("watches stalled", func() {
		s.stallWatches(func() {
			s.checkRevoked("while the watches show nothing", "stalled", keys["stalled"], http.StatusUnauthorized, revokedWithin)
			s.awaitProgress(2 * warmUp)
		})
	})
	phase("connections black-holed", func() {
		s.verdict.injected(1)
		begun := time.Now()
		s.must(s.Facade.Door.BlackHole())
		s.checkRevoked("behind a black hole", "black-hole", keys["black-hole"], http.StatusInternalServerError, staleness)
		s.awaitRefusal()
		s.checkServed(time.Since(begun))
		s.must(s.Facade.Door.Heal(t.Context()))
	})
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusInsufficientStorage} {
		phase(fmt.Sprintf("API server answers %d", status), func() { s.answering(status, status%2) })
	}
	phase("Redis frozen, then gone", s.freezeRedis)

	s.checkReceived()
	report(outcomes, s.verdict.summary(s.journal.sum()))
}

// checkServed checks that reads were served for --key-staleness, neither much shorter nor longer.
func (s *trial) checkServed(served time.Duration) {
	s.t.Helper()
	if served < s.staleness-noise || served > s.staleness+noise {
		s.verdict.wrong("reads were served for %s without an API server; --key-staleness is %s", served, s.staleness)
	}
}

// report prints the outcomes to the terminal.
func report(outcomes []outcome, summary string) {
	for _, o := range outcomes {
		fmt.Fprintln(os.Stdout, o)
	}
	fmt.Fprintln(os.Stdout, summary)
}
