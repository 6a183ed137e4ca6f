//go:build attack

package attack

import (
	"context"
	"sync"
	"testing"
)

// full says that there are minutes and not seconds.
const full = true

// Bodies that come slowly are cut off at the timeout of a whole request.
func TestInput_SlowBodiesAreCutOff(t *testing.T) {
	o := tenants(t)[0]
	watcher := bystand(t)
	memory := follow(t, target.facade)
	n := 200
	conns := crowd(t, n, "PATCH /v2/findings/"+o.ids["finding"]+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer "+o.token+"\r\nContent-Length: 60000\r\n\r\n{\"comments\":\"")
	ctx, stop := context.WithCancel(t.Context())
	var dripping sync.WaitGroup
	dripping.Go(func() { drip(ctx, conns, "a") })
	closedByThem(t, conns, "slow bodies")
	stop()
	dripping.Wait()
	memory.bounded(t, inputOf, atRest+float64(n*(perConnection+64<<10)), "slow bodies")
	watcher.leave(t, inputOf, "slow bodies")
}
