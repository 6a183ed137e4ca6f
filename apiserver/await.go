package apiserver

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// startPatience is how long a request waits if it arrives while the service starts.
	startPatience = 10 * time.Second
	// startPoll is how often such a request checks whether the start is over.
	startPoll = 20 * time.Millisecond
)

// await holds requests that arrive while the service starts: a Service keeps sending requests to a replica whose
// process was restarted, until it learns that the replica is not ready.
func (r *router) await(c *gin.Context) {
	awaitStart(c.Request.Context(), func() bool { return r.auth.Synced() && r.model.Ready() })
}

// awaitStart returns once the service has started, the client has left, or startPatience is over. If the start takes
// longer, refuse answers the request.
func awaitStart(ctx context.Context, started func() bool) {
	if started() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, startPoll, false, func(context.Context) (bool, error) { return started(), nil })
}
