package apiserver

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/ratelimit"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestRequestsAreCountedForTheirKeyAsFarAsItIsKnown(t *testing.T) {
	key := ratelimit.Key("uid", 7)
	address := ratelimit.Address(netip.MustParseAddr("127.0.0.1"))
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
		c.Request.RemoteAddr = "127.0.0.1:4711"
		c.Request.Header.Set("X-Forwarded-For", "192.0.2.1") // no proxy is trusted, not even on the same machine
		c.Set(stateKey, &state{identity: test.identity, authErr: test.err})
		if got := (&router{}).callerOf(c); got != test.want {
			t.Errorf("%s: counted for %+v, want %+v", test.reason, got, test.want)
		}
	}
}

// Every request counts and reports the remaining quota, whatever its answer.
func TestEveryRequestOfAKeyIsCounted(t *testing.T) {
	f := newBigFacade(t, 1)
	before := 0
	for i, r := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1/findings", 200},
		{"GET", "/v2/repos", 200},
		{"HEAD", "/v1/findings", 200},
		{"OPTIONS", "/v1/findings", 204},
		{"GET", "/v1/findings?size=0", 400},
		{"GET", "/nowhere", 404},
		{"DELETE", "/v1/findings", 405},
		{"GET", "/openapi.json", 200},
		{"GET", "/docs", 200},
	} {
		answer := answerOf(f, f.request(r.method, r.path, ""))
		harness.Same(t, r.method+" "+r.path, r.status, answer.Code)
		left, err := strconv.Atoi(answer.Header().Get("X-Ratelimit-Remaining"))
		if err != nil || i > 0 && left != before-1 {
			t.Errorf("%s %s: %d requests are left, before %d: %v", r.method, r.path, left, before, err)
		}
		if reset, err := strconv.Atoi(answer.Header().Get("X-Ratelimit-Reset")); err != nil || reset < 1 || reset > 60 {
			t.Errorf("%s %s: the reset is in %d s: %v", r.method, r.path, reset, err)
		}
		before = left
	}
}
