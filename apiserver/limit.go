package apiserver

import (
	"errors"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/ratelimit"
	"github.com/appsec-dev/findings-operator/internal/clientaddress"
)

// limit counts the request for its key or, without a valid key, for the client's address.
func (r *router) limit(c *gin.Context) {
	if fromInside(c.Request.Context()) {
		return
	}
	decision := r.limiter.Take(c.Request.Context(), r.callerOf(c))
	decision.SetHeaders(c.Writer.Header())
	if !decision.Allowed {
		fail(c, problem.TooManyRequests())
	}
}

// callerOf returns the key even if the request is refused because the key data is too old. Counted by address, such
// requests with keys behind one proxy would use up each other's limit.
func (r *router) callerOf(c *gin.Context) ratelimit.Caller {
	s := stateOf(c)
	if s.authErr == nil || errors.Is(s.authErr, auth.ErrStale) && s.identity.KeyUID != "" {
		return ratelimit.Key(string(s.identity.KeyUID), int(s.identity.RequestsPerMinute))
	}
	return ratelimit.Address(clientaddress.Of(c.Request, r.trustedProxies))
}
