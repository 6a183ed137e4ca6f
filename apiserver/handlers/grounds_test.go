package handlers

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAClockThatIsAheadRefusesNoEnd(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-48*time.Hour))
	end := time.Now().Add(-24 * time.Hour).UTC().Format(time.RFC3339) // only by the local clock it has come
	_, err := endOf(end)
	harness.Must(t, err)
	_, err = policySpecOf(&openapi.TriagePolicyRequest{Match: "true", ValidUntil: &end})
	harness.Must(t, err)
}
