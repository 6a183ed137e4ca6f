package apiserver

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A replica that starts knows no keys yet, and its knowledge is not old.
func TestTheDataAgeThatIsExposedIsNoOlderThanTheProcess(t *testing.T) {
	authenticator, err := auth.New(auth.Options{Config: &rest.Config{Host: "127.0.0.1:1"}, Namespace: "findings-system"})
	harness.Must(t, err)
	for reason, c := range map[string]struct {
		begin time.Time
		want  time.Duration
	}{
		"it has just started":   {time.Now(), 0},
		"the machine has slept": {harness.MoveWallClock(time.Now(), -time.Hour), time.Hour},
	} {
		age := testutil.ToFloat64(newDataAge(authenticator, c.begin))
		if over := age - c.want.Seconds(); over < 0 || over > time.Minute.Seconds() {
			t.Errorf("%s: %f seconds", reason, age)
		}
	}
}
