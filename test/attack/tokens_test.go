package attack

import (
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// refused sends a request with these Authorization headers, which must be answered exactly like any
// other request without a valid key.
func refused(t *testing.T, like *answer, reason string, op shot, authorization ...string) {
	t.Helper()
	op.header = http.Header{"Authorization": authorization}
	a, err := target.facade.try(t, "", op)
	if err != nil {
		// The client refused to send a request that the test needs to send.
		t.Fatalf("%s: %v", reason, err)
	}
	attempt(t, tokensOf, a.status == http.StatusUnauthorized && bytes.Equal(a.body, like.body) && a.headers() == like.headers(),
		"%s: %s: got %s", reason, op, a)
}

func TestTokens_ForgedOnesAreAllRefusedAlike(t *testing.T) {
	all := tenants(t)
	f := newForger(t, all[0])
	list := shot{method: "GET", path: "/v1/findings?size=1"}
	if rebuilt := signed(f.private, f.header, f.claims); target.facade.send(t, rebuilt, list).status != http.StatusOK {
		t.Fatal("a token that is forged without a mistake must be good, else no other proves anything")
	}
	none := target.facade.send(t, "", list)
	if none.status != http.StatusUnauthorized {
		t.Fatalf("without a token: %s", none)
	}
	forgeries := f.forgeries(t, all[1])
	for _, reason := range slices.Sorted(maps.Keys(forgeries)) {
		refused(t, none, reason, list, "Bearer "+forgeries[reason])
	}
}

// disabledKey returns the token of a key that was valid and was taken away.
func disabledKey(t *testing.T, o *tenant) string {
	t.Helper()
	name := "gone-" + letters(6)
	token := o.key(t, name)
	if a := target.facade.send(t, token, shot{method: "GET", path: "/v1/findings"}); a.status != http.StatusOK {
		t.Fatalf("the key: %s", a)
	}
	target.env.Patch(t, builder.APIKey(name).In(o.namespace).Build(), `{"spec":{"disabled":true}}`)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(target.facade.send(t, token, shot{method: "GET", path: "/v1/findings?size=1"}).status).To(Equal(http.StatusUnauthorized))
	})
	return token
}

// Every operation uses the same authenticator, including those that write.
func TestTokens_NoOperationIsOpen(t *testing.T) {
	all := tenants(t)
	f := newForger(t, all[0])
	forged := []string{
		signed(f.stranger, f.header, f.claims),
		encode(f.header.with(object{"alg": "none"})) + "." + encode(f.claims) + ".",
		signed(f.private, f.header, f.claims.with(object{"exp": 1, "iat": 0})),
		disabledKey(t, all[0]),
	}
	ours := target.facade.send(t, "", shot{method: "GET", path: "/v1/findings"})
	// Below these paths errors contain GitHub's message as well as this service's.
	gitHubs := target.facade.send(t, "", shot{method: "GET", path: "/repos/nobody/nothing"})
	for _, op := range operations(t) {
		shot, none := op.shotAt(t, all[0].ids, all[0].sent), ours
		if strings.HasPrefix(shot.path, "/repos/") || strings.HasPrefix(shot.path, "/api/v3/") {
			none = gitHubs
		}
		for _, token := range forged {
			refused(t, none, op.id, shot, "Bearer "+token)
		}
		refused(t, none, op.id+" without a key", shot)
	}
	all[0].unharmed(t)
}

// Tokens too large for a header are refused before the service's own code runs, and are not kept.
func TestTokens_HugeOnesCostLittle(t *testing.T) {
	memory := follow(t, target.facade)
	for i := range inForm(50, 400) {
		size := 1 << 20
		if i%2 == 1 {
			size = 40 << 10
		}
		head := "GET /v1/findings HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: " + someAddress() + "\r\nAuthorization: Bearer "
		status, closed := rawly(t, head, strings.Repeat("A", size), "\r\n\r\n")
		attempt(t, tokensOf, status == 431 || status == 400 || status == 0 && closed, "a token of %d bytes: got %d", size, status)
	}
	memory.bounded(t, tokensOf, 64<<20, "huge tokens")
}

// rawly sends raw bytes and returns the status of the answer, or 0 if the connection was closed
// before an answer.
func rawly(t *testing.T, parts ...string) (status int, closed bool) {
	t.Helper()
	conn := dial(t, target.facade)
	defer conn.Close() //nolint:errcheck // the test's own
	for _, part := range parts {
		if _, err := io.WriteString(conn, part); err != nil {
			break // closed by the server, which may have answered before
		}
	}
	status, err := statusOf(conn)
	return status, err != nil
}

func dial(t *testing.T, f *facade) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", f.Address)
	harness.Must(t, err)
	harness.Must(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}
