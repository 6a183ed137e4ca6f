package handlers

import (
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A response that is its own may be refused with 429, after which a client would not know that the import was made.
func TestOnlyADryRunIsRefusedBecauseOfItsLongAnswer(t *testing.T) {
	for _, dryRun := range []bool{false, true} {
		response, err := uploadResponse(&openapi.Upload{Id: "u-1", DryRun: dryRun})
		harness.Must(t, err)
		harness.Same(t, "the response is its own", dryRun, response.Own)
	}
}
