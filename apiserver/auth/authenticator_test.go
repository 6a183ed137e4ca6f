package auth

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestKeySaysWhoSends(t *testing.T) {
	a := start(t, func(o *Options) { o.Staleness = 2 * time.Hour }) // longer than the key is good for
	namespace := env.Organization(t, "who")
	key := builder.APIKey("ci").In(namespace).Scopes(v1alpha1.ScopeFindingsRead).Build()
	header := issue(t, key, "who")
	identity := waitUntilAccepted(t, a, header)

	g := NewWithT(t)
	g.Expect(identity).To(Equal(Identity{
		Organization: "who", Namespace: namespace, KeyName: "ci", KeyUID: key.UID,
		Scopes: []v1alpha1.Scope{v1alpha1.ScopeFindingsRead}, RequestsPerMinute: 600, ExpiresAt: identity.ExpiresAt,
	}))
	g.Expect(identity.Allows(v1alpha1.ScopeFindingsRead)).To(BeTrue())
	g.Expect(identity.Allows(v1alpha1.ScopeFindingsTriage)).To(BeFalse())
	g.Expect(Identity{}.Allows(v1alpha1.ScopeFindingsTriage)).To(BeTrue())

	_, err := a.Authenticate(header, identity.ExpiresAt)
	harness.Same(t, "reason at the end of the key, though its token is remembered", ReasonExpired, ReasonOf(err))
}

// A key that was copied to another organization's namespace, or that names another organization, gives no
// access there.
func TestAKeyIsValidInItsOwnOrganizationAlone(t *testing.T) {
	a := start(t)
	namespace := env.Organization(t, "home")
	env.Organization(t, "abroad")
	key := builder.APIKey("ci").In(namespace).Build()
	good := issue(t, key, "home")
	waitUntilAccepted(t, a, good)
	now := time.Now()
	foreign := tokens.Claims{KeyUID: key.UID, Organization: "abroad", ID: key.Status.KeyID, IssuedAt: now, ExpiresAt: now.Add(time.Hour)}
	waitUntilRefused(t, a, header(t, foreign), ReasonOrganization)

	// A namespace that was taken from the organization no longer belongs to it.
	controller := env.AsController(t)
	organization := builder.Organization("home").Build()
	harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(organization), organization))
	organization.Status.Namespace = ""
	harness.Must(t, controller.Status().Update(t.Context(), organization))
	waitUntilRefused(t, a, good, ReasonOrganization)
}

func TestAWithdrawnSigningKeyEndsItsTokensThoughTheyAreRemembered(t *testing.T) {
	a := start(t)
	_, header := acceptedKey(t, a, "withdrawn")
	ours, _ := signer()
	t.Cleanup(func() {
		harness.NoError(t, "publish the keys again", publish(context.Background(), ours.Public()))
	})
	harness.Must(t, publish(t.Context(), tokens.KeySet{}))
	waitUntilRefused(t, a, header, ReasonUnknownKey)
	harness.Must(t, publish(t.Context(), ours.Public()))
	waitUntilAccepted(t, a, header)
}

func TestBadHeadersAreRefused(t *testing.T) {
	a := start(t)
	key, good := acceptedKey(t, a, "headers")
	token := good[len("Bearer "):]
	_, err := a.Authenticate("bearer "+token, time.Now())
	harness.NoError(t, "the case of the scheme does not matter", err)
	cases := map[string]struct {
		header string
		want   Reason
	}{
		"none":          {"", ReasonMissing},
		"scheme alone":  {"Bearer", ReasonMalformed},
		"no token":      {"Bearer ", ReasonMalformed},
		"token alone":   {token, ReasonMalformed},
		"other scheme":  {"Basic " + token, ReasonMalformed},
		"two spaces":    {"Bearer  " + token, ReasonMalformed},
		"tab":           {"Bearer\t" + token, ReasonMalformed},
		"trailing":      {good + " ", ReasonMalformed},
		"two tokens":    {good + "," + token, ReasonMalformed},
		"no signature":  {"Bearer " + token[:len(token)-86], ReasonSignature},
		"no JWT":        {"Bearer hello", ReasonMalformed},
		"very long":     {"Bearer " + string(make([]byte, 1<<20)), ReasonMalformed},
		"another's jti": {header(t, tokens.Claims{KeyUID: key.UID, Organization: "headers", ID: "x", IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}), ReasonRotated},
		"no such key":   {header(t, tokens.Claims{KeyUID: "nobody", Organization: "headers", ID: "x", IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}), ReasonNotFound},
		"token expired": {header(t, tokens.Claims{KeyUID: key.UID, Organization: "headers", ID: key.Status.KeyID, IssuedAt: time.Unix(1, 0), ExpiresAt: time.Unix(2, 0)}), ReasonExpired},
	}
	for name, tc := range cases {
		if _, err := a.Authenticate(tc.header, time.Now()); !errors.Is(err, ErrUnauthenticated) || ReasonOf(err) != tc.want {
			t.Errorf("%s: got %v, want reason %s", name, err, tc.want)
		}
	}
}

func TestStaleCacheAuthenticatesNobody(t *testing.T) {
	t.Parallel() // it mostly waits
	key := builder.APIKey("ci").In(env.Organization(t, "stale")).Build()
	idle, err := New(Options{Config: env.Config, Namespace: "findings-system"})
	harness.Must(t, err)
	header := issue(t, key, "stale")
	if identity, err := idle.Authenticate(header, time.Now()); !errors.Is(err, ErrStale) || identity.KeyUID != "" || idle.Synced() {
		t.Errorf("before anything is known: %+v, %v, want nobody, ErrStale and not ready", identity, err)
	}
	if _, err := idle.Authenticate("", time.Now()); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a request without a key: %v, want ErrUnauthenticated whatever is known", err)
	}

	var broken atomic.Bool
	a := start(t, withTransport(func(c *rest.Config) {
		harness.Between(c, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if broken.Load() {
				return nil, errors.New("the API server is away")
			}
			return next.RoundTrip(r)
		})
	}), func(o *Options) { o.Staleness = 3 * time.Second })
	waitUntilAccepted(t, a, header)
	broken.Store(true)
	_, err = a.Authenticate(header, time.Now())
	harness.NoError(t, "young knowledge holds while the API server is away", err)
	harness.Eventually(t, func(g Gomega) {
		identity, err := a.Authenticate(header, time.Now())
		g.Expect(err).To(MatchError(ErrStale))
		g.Expect(identity.KeyUID).To(Equal(key.UID), "who it was by what was known last")
		g.Expect(a.Synced()).To(BeTrue(), "not ready before the first list alone")
	})
	if identity, err := a.Authenticate(header+"x", time.Now()); !errors.Is(err, ErrStale) || identity.KeyUID != "" {
		t.Errorf("with a forged token: %+v, %v, want nobody and ErrStale", identity, err)
	}
	if age := a.Age(time.Now()); age <= 3*time.Second {
		t.Errorf("stale at an age of %v", age)
	}
	broken.Store(false)
	waitUntilAccepted(t, a, header)
}

// A key may have been revoked while the machine of the replica slept.
func TestWhatWasKnownBeforeASleepIsStaleAfterIt(t *testing.T) {
	a := start(t)
	_, header := acceptedKey(t, a, "asleep")
	_, err := a.Authenticate(header, harness.MoveWallClock(time.Now(), a.staleness/2))
	harness.NoError(t, "after a short sleep", err)
	if _, err := a.Authenticate(header, harness.MoveWallClock(time.Now(), a.staleness+time.Second)); !errors.Is(err, ErrStale) {
		t.Errorf("after a long sleep: %v, want ErrStale", err)
	}
}

// While a watch is stalled, a revoked key is served for this long: docs/faults.md guarantees 1 s.
func TestKeysAreListedEachSecond(t *testing.T) {
	harness.Same(t, "time between two lists", time.Second, prepare(t).interval)
}

func TestStalledWatchHidesNoRevocation(t *testing.T) {
	t.Parallel() // it mostly waits
	var watches atomic.Int32
	a := start(t, withTransport(func(c *rest.Config) {
		// Like a middlebox that has forgotten the connection.
		harness.Between(c, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "" {
				return next.RoundTrip(r)
			}
			watches.Add(1)
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
	}))
	key, header := acceptedKey(t, a, "stalled")
	setSpec(t, key, func(s *v1alpha1.APIKeySpec) { s.Disabled = true })
	waitUntilRefused(t, a, header, ReasonDisabled)
	if watches.Load() == 0 {
		t.Error("no watch was stalled: the test shows nothing")
	}
}

func TestWatchAloneShowsARevocation(t *testing.T) {
	a := prepare(t)
	a.interval = time.Hour
	harness.Background(t, a.Run)
	key, header := acceptedKey(t, a, "watched")
	harness.Must(t, env.Client.Delete(t.Context(), key))
	waitUntilRefused(t, a, header, ReasonNotFound)
}

// hole is a network that can silence its connections.
type hole struct {
	mu    sync.Mutex
	conns []*holeConn
}

type holeConn struct {
	net.Conn
	silent, closed chan struct{}
	once           sync.Once
}

func (h *hole) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &holeConn{Conn: conn, silent: make(chan struct{}), closed: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, c)
	return c, nil
}

// swallow silences every open connection; new ones work.
func (h *hole) swallow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		close(c.silent)
	}
	h.conns = nil
}

func (c *holeConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	select {
	case <-c.silent:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *holeConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// HTTP/2 itself would detect this after about 45 seconds, which is longer than this test waits.
func TestSilentConnectionIsGivenUp(t *testing.T) {
	t.Parallel() // it mostly waits
	network := &hole{}
	a := start(t, withTransport(func(c *rest.Config) { c.Dial = network.dial }),
		func(o *Options) { o.Staleness = 3 * minListTimeout })
	key, header := acceptedKey(t, a, "silent")
	network.swallow()
	setSpec(t, key, func(s *v1alpha1.APIKeySpec) { s.Disabled = true })
	waitUntilRefused(t, a, header, ReasonDisabled)
}

// The keys of one organization may make a list slow, and lists at the API server's pace must not make the data too old.
func TestListsMayTakeAThirdOfTheStaleness(t *testing.T) {
	for staleness, want := range map[time.Duration]time.Duration{
		time.Minute: 20 * time.Second, 15 * time.Second: 5 * time.Second, time.Second: 5 * time.Second,
	} {
		harness.Same(t, "the longest list with a staleness of "+staleness.String(), want, listTimeout(staleness))
	}
}

// What this process knows may be what was lost, such as a key that is valid again, or a revocation.
func TestPollingEndsWhereAListIsOlderThanTheOneBefore(t *testing.T) {
	versions := []string{"99", "100", "100", "98"}
	f := &feed{name: "organizations", into: newTestView(), giveUp: func() {}}
	f.listNow = func(context.Context) ([]runtime.Object, string, error) {
		version := versions[0]
		versions = versions[1:]
		return nil, version, nil
	}
	if err := f.poll(t.Context(), time.Millisecond, time.Minute, logr.Discard()); !errors.Is(err, errWentBack) || len(versions) > 0 {
		t.Errorf("got %v with %v still to come, want the end at the last version", err, versions)
	}
}

func TestGivingUpAListLeavesTheConnectionsOfOtherFeeds(t *testing.T) {
	begun, answer := make(chan struct{}, 2), make(chan struct{})
	url := harness.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	ask := func(config *rest.Config) <-chan error {
		done := make(chan error, 1)
		asking, err := rest.HTTPClientFor(config)
		harness.Must(t, err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		harness.Must(t, err)
		go func() {
			response, err := asking.Do(request)
			if err == nil {
				err = response.Body.Close()
			}
			done <- err
		}()
		<-begun
		return done
	}
	shared := &rest.Config{Host: url}
	slow, giveUp := withOwnConnections(shared)
	other, _ := withOwnConnections(shared)
	given, kept := ask(slow), ask(other)
	giveUp()
	if err := <-given; err == nil {
		t.Error("the list that was given up goes on")
	}
	close(answer)
	harness.NoError(t, "the list of the other feed", <-kept)
}

func TestConcurrentRequestsSeeOneTruth(t *testing.T) {
	a := start(t)
	key, header := acceptedKey(t, a, "busy")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			refused := false
			for ctx.Err() == nil {
				identity, err := a.Authenticate(header, time.Now())
				if err == nil {
					a.MarkUsed(identity)
					if refused {
						t.Error("accepted after it was refused")
						return
					}
				}
				refused = refused || err != nil
			}
		})
	}
	setSpec(t, key, func(s *v1alpha1.APIKeySpec) { s.Disabled = true })
	waitUntilRefused(t, a, header, ReasonDisabled)
	stop()
	running.Wait()
}
