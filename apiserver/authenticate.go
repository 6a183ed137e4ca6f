package apiserver

import (
	"errors"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// identify authenticates the request's key. It refuses nothing yet, because requests without a valid key count
// against a rate limit too.
func (r *router) identify(c *gin.Context) {
	s := stateOf(c)
	_, span := tracing.Start(c.Request.Context(), "authenticate")
	defer span.End()
	// With two keys it would be ambiguous who sent the request.
	var header string
	if values := c.Request.Header.Values("Authorization"); len(values) == 1 {
		header = values[0]
	}
	switch {
	case likeGitHub(c.Request.URL.Path):
		header = withBearer(header)
	case s.console != nil:
		header = "Bearer " + s.console.APIKey(c.Request)
	}
	s.authenticate = func() (auth.Identity, error) { return r.auth.Authenticate(header, time.Now()) }
	s.identity, s.authErr = s.authenticate()
}

// refuse rejects requests without a valid key.
func (r *router) refuse(c *gin.Context) {
	s := stateOf(c)
	if err := r.refusal(s.authErr); err != nil {
		fail(c, err)
		return
	}
	r.auth.MarkUsed(s.identity)
	if !r.model.Ready() {
		fail(c, problem.TryAgain("the service is starting", nil))
		return
	}
	if age := r.auth.Age(time.Now()); age > usualAge {
		c.Header(api.DataAgeHeader, strconv.Itoa(int(age.Seconds())))
	}
}

// refusal returns the error for a request whose authentication had this result, nil if its key is valid.
func (r *router) refusal(authErr error) error {
	switch {
	case authErr == nil:
		return nil
	case errors.Is(authErr, auth.ErrStale):
		return problem.Internal("authorization data is stale", authErr).Coded(problem.CodeStale)
	}
	r.metrics.refused(auth.ReasonOf(authErr))
	r.auth.MarkRefused(authErr)
	return problem.Unauthorized(authErr)
}

// allow rejects keys whose scopes do not cover the operation. An operation without a scope accepts any key.
func (r *router) allow(needed []v1alpha1.Scope) gin.HandlerFunc {
	return func(c *gin.Context) {
		s := stateOf(c)
		s.needed = needed
		if err := r.lacking(s.identity, needed); err != nil {
			fail(c, err)
		}
	}
}

// lacking returns the error for a key that lacks one of the scopes, nil if it has all.
func (r *router) lacking(identity auth.Identity, needed []v1alpha1.Scope) error {
	for _, scope := range needed {
		if !identity.Allows(scope) {
			r.metrics.refused(auth.ReasonScope)
			r.auth.MarkForbidden(identity, scope)
			return problem.Forbidden(string(scope))
		}
	}
	return nil
}

// readmit authenticates again for a request whose body or response takes a while: its key may have been revoked or have
// lost a scope, and its organization may have been deleted. It returns the key's identity as of now, and does not check
// the age of the data again.
func (r *router) readmit(c *gin.Context) (auth.Identity, error) {
	s := stateOf(c)
	identity, err := s.authenticate()
	if err = r.refusal(err); err != nil {
		return auth.Identity{}, err
	}
	if err = r.lacking(identity, s.needed); err != nil {
		return auth.Identity{}, err
	}
	return identity, r.shows(identity, s.needed)
}

// checkOrganization refuses to answer while the read model does not show the organization of a valid key, because all
// its objects would seem not to exist.
func (r *router) checkOrganization(c *gin.Context) {
	if err := r.shows(stateOf(c).identity, stateOf(c).needed); err != nil {
		fail(c, err)
	}
}

// shows returns an error if the read model does not show the organization of a valid key. An operation that needs no
// scope needs no data.
func (r *router) shows(identity auth.Identity, needed []v1alpha1.Scope) error {
	if len(needed) == 0 {
		return nil
	}
	if _, err := r.model.Namespace(identity.Organization); err != nil {
		return handlers.Unavailable(err)
	}
	return nil
}
