package apiserver

import (
	"context"
	"testing"
)

func TestARequestThatComesWhileTheServiceStartsWaits(t *testing.T) {
	asked := 0
	awaitStart(t.Context(), func() bool {
		asked++
		return asked == 3
	})
	if asked != 3 {
		t.Errorf("it went on after having asked %d times whether the service has started", asked)
	}
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
