package apiserver

import (
	"context"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestARequestThatComesWhileTheServiceStartsWaits(t *testing.T) {
	asked := 0
	awaitStart(t.Context(), func() bool {
		asked++
		return asked == 3
	})
	harness.Same(t, "times it asked whether the service has started", 3, asked)
}

func TestARequestWhoseClientHasLeftWaitsNoLonger(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	asked := 0
	awaitStart(ctx, func() bool {
		if asked++; asked == 3 {
			leave()
		}
		return false
	})
	if asked > 4 {
		t.Errorf("it asked %d times", asked)
	}
}
