package reconcile

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// sent counts the Events of each object.
type sent map[string]int

func (s sent) Eventf(regarding, _ runtime.Object, _, _, _, _ string, _ ...any) {
	s[client.ObjectKeyFromObject(regarding.(client.Object)).String()]++
}

// One change of a review may resolve all of its issues, and the next one reopens them.
func TestEventsAreBoundedForEachNamespace(t *testing.T) {
	clock, got := clocktesting.NewFakePassiveClock(time.Now()), sent{}
	r := newRecorder(got, clock)
	record := func(object client.Object, n int) {
		for range n {
			r.Eventf(object, nil, "Normal", "Resolved", "Resolve", "")
		}
	}
	flooding, other := builder.Project("p").In("org-a").Build(), builder.Project("p").In("org-b").Build()
	for _, c := range []struct {
		reason string
		object client.Object
		n      int
		after  time.Duration
		want   int
	}{
		{"the burst", flooding, 1000, 0, 200},
		{"all objects of the namespace share it", builder.Project("q").In("org-a").Build(), 1, 0, 0},
		{"another namespace has its own", other, 1, 0, 1},
		{"later one a second", flooding, 1000, 10 * time.Second, 210},
		{"of cluster-scoped objects each has its own", builder.Organization("org-a").Build(), 1, 0, 1},
		{"so does the next one", builder.Organization("org-b").Build(), 300, 0, 200},
		{"after a rest it is the burst again", flooding, 1000, time.Hour, 410},
	} {
		clock.SetTime(clock.Now().Add(c.after))
		record(c.object, c.n)
		harness.Same(t, c.reason, c.want, got[client.ObjectKeyFromObject(c.object).String()])
	}
}

func TestAllowancesOfEventsAreForgottenOnceTheyAreFull(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := newRecorder(sent{}, clock)
	for i := range 1000 {
		r.Eventf(builder.Project("p").In(fmt.Sprint("org-", i)).Build(), nil, "Normal", "Resolved", "Resolve", "")
	}
	clock.SetTime(clock.Now().Add(eventRefill))
	r.Eventf(builder.Project("p").In("org-0").Build(), nil, "Normal", "Resolved", "Resolve", "")
	harness.Same(t, "allowances", 1, len(r.allowances))
}
