package apiserver

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/ratelimit"
)

func TestRequestsAreCountedForTheirKeyAsFarAsItIsKnown(t *testing.T) {
	key := ratelimit.Key("uid", 7)
	address := ratelimit.Address(netip.MustParseAddr("192.0.2.1"))
	known := auth.Identity{KeyUID: "uid", RequestsPerMinute: 7}
	for _, test := range []struct {
		reason   string
		identity auth.Identity
		err      error
		want     ratelimit.Caller
	}{
		{"a good key", known, nil, key},
		{"one that may have been revoked since", known, auth.ErrStale, key},
		{"nobody is known yet", auth.Identity{}, auth.ErrStale, address},
		{"no good key", auth.Identity{}, auth.ErrUnauthenticated, address},
		{"another error", known, errors.New("other"), address},
	} {
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		c.Request.RemoteAddr = "192.0.2.1:4711"
		c.Set(stateKey, &state{identity: test.identity, authErr: test.err})
		if got := (&router{}).callerOf(c); got != test.want {
			t.Errorf("%s: counted for %+v, want %+v", test.reason, got, test.want)
		}
	}
}
