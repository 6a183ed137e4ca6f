package plugin_test

import (
	"encoding/json"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/apikey"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// issueKeys runs the controller that issues tokens, until the test ends.
func issueKeys(t *testing.T) {
	t.Helper()
	controllertest.Start(t, env, apikey.Settings{Namespace: testenv.SystemNamespace}.SetupWithManager)
}

func (o *organization) key(name string) *v1alpha1.APIKey {
	o.Helper()
	return testenv.Get(o, NewWithT(o), env, builder.APIKey(name).In(o.namespace).Build())
}

// tokenOf returns the token in the key's Secret.
func (o *organization) tokenOf(name string) string {
	o.Helper()
	return env.TokenNow(o, builder.APIKey(name).In(o.namespace).Build())
}

func TestAKeyLivesFromTheCommandLine(t *testing.T) {
	issueKeys(t)
	o := newOrganization(t, "keys")
	administrator := o.administrator()

	before := time.Now().Truncate(time.Second)
	a := administrator.findings("key", "create", "dashboard", "--description", "The team's", "--expires-in", "720h",
		"--scope", "findings:read", "--scope", "repos:read", "--requests-per-minute", "120").
		Wants("API key dashboard was created", "kubectl get secret dashboard-token -o 'go-template={{.data.token | base64decode}}' -n "+o.namespace)
	key, token := o.key("dashboard"), o.tokenOf("dashboard")
	a.Omits(token, "policies:write") // nobody has asked for either
	if until := key.Spec.ExpiresAt; until == nil || until.Time.Before(before.Add(720*time.Hour)) || until.After(time.Now().Add(721*time.Hour)) {
		t.Errorf("the key expires at %v, want in 720 hours", until)
	}
	if diff := cmp.Diff([]v1alpha1.Scope{v1alpha1.ScopeFindingsRead, v1alpha1.ScopeReposRead}, key.Spec.Scopes); diff != "" || *key.Spec.RateLimit.RequestsPerMinute != 120 {
		t.Errorf("the key's spec is %+v", key.Spec)
	}

	a = administrator.findings("key", "create", "ci", "--show-token", "--scope", "policies:write").
		Wants("API key ci was created", "policies:write needs findings:triage too")
	if a.Stdout != o.tokenOf("ci")+"\n" {
		t.Errorf("standard output must be the token alone, and is %d characters", len(a.Stdout))
	}
	administrator.findings("key", "create", "ci").Fails("already exists", "rotate-key ci")

	viewer := o.member(testenv.Viewer)
	viewer.findings("key", "list").Wants("NAME", "dashboard", "The team's", "True", "Reconciled", "ci")
	viewer.findings("key", "list", "-o", "wide").Wants("findings:read,repos:read", "ci-token")
	viewer.findings("key", "list", "-o", "name").Wants("apikey.appsec.dev/ci\napikey.appsec.dev/dashboard\n")
	viewer.findings("key", "create", "mine").Fails("forbidden", "findings-admin")
	viewer.findings("rotate-key", "ci").Fails("forbidden", "findings-admin")
	var list v1alpha1.APIKeyList
	if err := json.Unmarshal([]byte(viewer.findings("key", "list", "-o", "json").Stdout), &list); err != nil || len(list.Items) != 2 {
		t.Errorf("-o json: %v, %d keys", err, len(list.Items))
	}

	rotations(o, administrator, token)
}

func rotations(o *organization, administrator *person, token string) {
	o.Helper()
	id := o.key("dashboard").Status.KeyID
	administrator.findings("rotate-key", "dashboard", "--overlap", "24h").Wants("has a new token", "the one before works until")
	key := o.key("dashboard")
	if p := key.Status.Previous; o.tokenOf("dashboard") == token || p == nil || p.KeyID != id || key.Spec.Rotation.Serial != 1 {
		o.Errorf("after a rotation with an overlap: spec %+v, status %+v", key.Spec.Rotation, key.Status)
	}
	a := administrator.findings("key", "rotate", "dashboard", "--show-token").Wants("the one before is refused")
	key = o.key("dashboard")
	if key.Status.Previous != nil || key.Spec.Rotation.Serial != 2 || key.Spec.Rotation.Overlap != nil || a.Stdout != o.tokenOf("dashboard")+"\n" {
		o.Errorf("after a rotation without one: spec %+v, status %+v", key.Spec.Rotation, key.Status)
	}
	administrator.findings("rotate-key", "dashbord").Fails("Did you mean dashboard?")

	end := *key.Spec.ExpiresAt
	env.Patch(o, key, `{"spec":{"expiresAt":"2020-01-01T00:00:00Z","disabled":true}}`)
	administrator.findings("rotate-key", "dashboard").Fails("expired at 2020-01-01T00:00:00Z", "set a new end with --expires-in")
	administrator.findings("rotate-key", "dashboard", "--expires-in", "1440h").Wants("has a new token", "The key is disabled")
	if key = o.key("dashboard"); key.Spec.Rotation.Serial != 3 || !key.Status.ExpiresAt.After(end.Time) {
		o.Errorf("after a rotation with another end than %v: spec %+v, status %+v", end, key.Spec.Rotation, key.Status)
	}
}

// Another token would replace the first, which nobody has yet, and the clients' token would lose its overlap.
func TestALostAnswerRotatesAKeyOnce(t *testing.T) {
	issueKeys(t)
	o := newOrganization(t, "keys-lost")
	o.administrator().findings("key", "create", "dashboard").Wants("was created")
	inUse := o.key("dashboard").Status.KeyID
	var lost atomic.Bool
	g := &gateway{before: func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || lost.Swap(true) {
			return false
		}
		patch, err := io.ReadAll(r.Body)
		if err == nil {
			err = env.Client.Patch(t.Context(), o.key("dashboard"), client.RawPatch(types.MergePatchType, patch))
		}
		harness.NoError(t, "rotate the key", err)
		harness.Eventually(t, func(g Gomega) { g.Expect(o.key("dashboard").Status.RotationSerial).To(BeEquivalentTo(1)) })
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}}
	g.through(o, o.token(owner)).findings("rotate-key", "dashboard", "--overlap", "24h").Wants("the one before works until")
	key := o.key("dashboard")
	if p := key.Status.Previous; key.Spec.Rotation.Serial != 1 || p == nil || p.KeyID != inUse {
		t.Errorf("spec %+v, status %+v, want one rotation after which %s still works", key.Spec.Rotation, key.Status, inUse)
	}
}

func TestAKeySaysWhatToDoNext(t *testing.T) {
	o := newOrganization(t, "keys-next")
	administrator := o.administrator()
	administrator.findings("key", "list").Wants("there are no API keys", "key create")
	administrator.findings("key", "create", "A_b").Fails("Invalid value")
	administrator.findings("rotate-key", "a").Fails("not found")
	administrator.findings("key", "create", "waiting", "--timeout", "100ms").
		Fails("is the controller of findings-operator running?",
			"once this prints the name of a Secret: kubectl get apikey waiting -o 'jsonpath={.status.secretRef.name}' -n "+o.namespace)
}

// The command must not wait for a key that never gets a token.
func TestAKeyThatGetsNoTokenIsNotWaitedFor(t *testing.T) {
	o := newOrganization(t, "keys-stalled")
	key := builder.APIKey("old").In(o.namespace).Build()
	env.Create(o, key)
	o.administrator().findings("rotate-key", "old", "--timeout", "100ms").
		Fails("has no new token after 100ms", "Do not rotate again", "The new token is issued once this prints 1: kubectl get apikey old")
	done := make(chan *harness.Outcome)
	go func() { done <- o.administrator().findings("rotate-key", "old", "--timeout", "5m") }()
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, key).Spec.Rotation.Serial).To(BeEquivalentTo(2))
	})
	testenv.ChangeStatus(t, env, key, func(k *v1alpha1.APIKey) {
		k.Status.ObservedGeneration = k.Generation
		v1alpha1.SetCondition(&k.Status.Conditions, v1alpha1.Condition{
			Type: v1alpha1.ConditionStalled, Status: "True", LastTransitionTime: v1alpha1.Now(),
			Reason: v1alpha1.ReasonExpired, Message: "the key's life is over",
		})
	})
	(<-done).Fails("gets no token (Expired)", "the key's life is over")
}
