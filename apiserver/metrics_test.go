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
	if age := testutil.ToFloat64(newDataAge(authenticator)); age < 0 || age > time.Hour.Seconds() {
		t.Errorf("%f seconds", age)
	}
}
