package auth

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// answers counts the API server's responses to writes.
type answers struct{ written, conflicts, others atomic.Int32 }

func (a *answers) count(c *rest.Config) {
	harness.Between(c, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if r.Method == http.MethodGet || err != nil {
			return response, err
		}
		switch response.StatusCode {
		case http.StatusOK:
			a.written.Add(1)
		case http.StatusConflict:
			a.conflicts.Add(1)
		default:
			a.others.Add(1)
		}
		return response, nil
	})
}

func TestReplicasNoteOneUseBetweenThem(t *testing.T) {
	var seen answers
	replicas := make([]*Authenticator, 4)
	for i := range replicas {
		replicas[i] = start(t, withTransport(seen.count))
	}
	// For an object created with an empty spec the API server tracks no managers.
	key := builder.APIKey("ci").In(env.Organization(t, "shared")).Scopes(v1alpha1.ScopeReposRead).Build()
	header := issue(t, key, "shared")
	before := key.Status.DeepCopy()
	for _, replica := range replicas {
		waitUntilAccepted(t, replica, header)
	}
	use := func() {
		for range 100 {
			for _, replica := range replicas {
				identity, err := replica.Authenticate(header, time.Now())
				harness.Must(t, err)
				replica.MarkUsed(identity)
			}
		}
	}
	use()
	harness.Eventually(t, func(g Gomega) {
		for _, replica := range replicas {
			known, _ := replica.keys.get(key.UID)
			g.Expect(known.Status.LastUsedAt).NotTo(BeNil())
			g.Expect(replica.usage.queue).To(BeEmpty())
		}
		// Only conflicts of the other replicas can follow.
		g.Expect(seen.written.Load()).To(Equal(int32(1)))
	})
	use()
	for _, replica := range replicas {
		harness.Same(t, "further writes in the queue in the same minute", 0, len(replica.usage.queue))
	}
	if written, others := seen.written.Load(), seen.others.Load(); written != 1 || others != 0 {
		t.Errorf("%d writes and %d other answers, want one write", written, others)
	}
	harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(key), key))
	after := key.Status.DeepCopy()
	after.LastUsedAt = nil
	harness.Same(t, "the rest of the status", before, after)
	noted := slices.ContainsFunc(key.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == v1alpha1.APIFieldManager && entry.Subresource == "status"
	})
	if !noted {
		t.Errorf("the write is not under the facade's name: %v", key.ManagedFields)
	}
}

// A replica whose watch and lists lag behind does not know that another replica has recorded the use: it gets a
// conflict from the API server, and stops.
func TestUseThatAnotherReplicaHasNotedIsLetGo(t *testing.T) {
	t.Parallel() // it mostly waits
	var (
		seen answers
		deaf atomic.Bool
	)
	lagging := start(t, withTransport(func(c *rest.Config) {
		seen.count(c)
		harness.Between(c, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			watches := r.URL.Query().Get("watch") != ""
			if r.Method == http.MethodGet && (watches || deaf.Load()) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return next.RoundTrip(r)
		})
	}))
	key := builder.APIKey("ci").In(env.Organization(t, "lagging")).Build()
	identity := waitUntilAccepted(t, lagging, issue(t, key, "lagging"))
	deaf.Store(true)
	known, _ := lagging.keys.get(key.UID)
	if known.Status.LastUsedAt != nil {
		t.Fatal("the key has been used: the test shows nothing")
	}
	used := v1alpha1.NewTime(time.Now())
	testenv.ChangeStatus(t, env, key, func(k *v1alpha1.APIKey) { k.Status.LastUsedAt = &used })
	version := key.ResourceVersion

	for range 100 {
		lagging.MarkUsed(identity)
	}
	harness.Eventually(t, func(g Gomega) { g.Expect(seen.conflicts.Load()).To(Equal(int32(1))) })
	for range 100 {
		lagging.MarkUsed(identity)
	}
	harness.Same(t, "further writes in the queue after a conflict", 0, len(lagging.usage.queue))
	g := NewWithT(t)
	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(key), key)).To(Succeed())
	if key.ResourceVersion != version || seen.written.Load() != 0 {
		t.Error("the use was written over the other replica's")
	}
}

func TestUseIsNotedOnceAMinute(t *testing.T) {
	now := time.Unix(1e9, 0)
	cases := []struct {
		reason string
		last   time.Duration
		noted  time.Duration
		want   bool
	}{
		{"never used", 0, 0, true},
		{"noted by another replica a moment ago", time.Second, 0, false},
		{"noted by another replica most of a minute ago; its time is cut to the second", 60 * time.Second, 0, false},
		{"noted by another replica more than a minute ago", 61 * time.Second, 0, true},
		{"queued here a moment ago and not written yet", time.Hour, time.Second, false},
		{"queued here a minute ago", time.Hour, time.Minute, true},
		{"queued here before the API server's time was set back", time.Hour, -time.Hour, true},
		{"another replica's clock is ahead", -time.Minute, 0, false},
		{"noted by a replica whose clock was wrong", -24 * time.Hour, 0, true},
	}
	for _, tc := range cases {
		u := newUsage()
		key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
		if tc.noted != 0 {
			u.queued.at[key.UID] = now.Add(-tc.noted)
		}
		if tc.last != 0 {
			key.Status.LastUsedAt = new(v1alpha1.NewTime(now.Add(-tc.last)))
		}
		u.note(key, now)
		harness.Same(t, tc.reason, tc.want, len(u.queue) == 1)
	}
}

// A replica whose clock was ahead must not stop the others from noting uses until that time comes, nor must one whose
// clock is behind overwrite what they note.
func TestUseIsDatedByTheAPIServersTime(t *testing.T) {
	a := start(t)
	key, header := acceptedKey(t, a, "ahead")
	identity, err := a.Authenticate(header, time.Now())
	harness.Must(t, err)
	tomorrow := v1alpha1.NewTime(time.Now().Add(24 * time.Hour))
	testenv.ChangeStatus(t, env, key, func(k *v1alpha1.APIKey) { k.Status.LastUsedAt = &tomorrow })
	harness.Eventually(t, func(g Gomega) {
		known, _ := a.keys.get(key.UID)
		g.Expect(known.Status.LastUsedAt).NotTo(BeNil())
	})
	server := time.Now().Add(-48 * time.Hour) // the local clock is ahead
	testenv.SetServerTime(t, server)
	a.MarkUsed(identity)
	harness.Eventually(t, func(g Gomega) {
		used := testenv.Get(t, g, env, key).Status.LastUsedAt
		g.Expect(used.Time).To(BeTemporally("~", server, time.Minute))
	})

	server = time.Now().Add(2 * apitime.MaxAhead) // the local clock is behind
	testenv.SetServerTime(t, server)
	byAnother := v1alpha1.NewTime(server)
	testenv.ChangeStatus(t, env, key, func(k *v1alpha1.APIKey) { k.Status.LastUsedAt = &byAnother })
	harness.Eventually(t, func(g Gomega) {
		known, _ := a.keys.get(key.UID)
		g.Expect(known.Status.LastUsedAt.Time).To(BeTemporally("==", byAnother.Time))
	})
	a.MarkUsed(identity)
	a.usage.mu.Lock()
	defer a.usage.mu.Unlock()
	if at := a.usage.queued.at[key.UID]; at.After(time.Now().Add(-apitime.MaxAhead)) {
		t.Errorf("a write of %s was queued over %s", at, byAnother)
	}
}
