package apikey

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// noSigningKey makes a test begin without a signing key, and so without tokens of other tests.
func noSigningKey(t *testing.T) {
	t.Helper()
	for _, object := range []client.Object{signingSecret(), signingConfigMap()} {
		harness.Must(t, client.IgnoreNotFound(env.Client.Delete(t.Context(), object)))
	}
}

// someSigningKeys returns a replica's signingKeys, with its own recorder and a fixed clock.
func someSigningKeys(t *testing.T, now time.Time) (signingKeys, *clocktesting.FakePassiveClock, *events.FakeRecorder) {
	t.Helper()
	c := env.AsController(t)
	clock, recorder := clocktesting.NewFakePassiveClock(now), events.NewFakeRecorder(100)
	base := reconcile.Base{Client: c, Live: c, Recorder: recorder, Clock: clock}
	return signingKeys{Base: base, namespace: testenv.SystemNamespace, notice: publicationNotice}, clock, recorder
}

func publishedIDs(t *testing.T) []string {
	t.Helper()
	if env.Gone(t, signingConfigMap()) {
		return nil
	}
	set, err := tokens.DecodeKeySet(testenv.Get(t, NewWithT(t), env, signingConfigMap()).Data)
	harness.Must(t, err)
	return set.IDs()
}

func heldRing(t *testing.T) tokens.Ring {
	t.Helper()
	ring, err := tokens.DecodeRing(testenv.Get(t, NewWithT(t), env, signingSecret()).Data)
	harness.Must(t, err)
	return ring
}

// annotateConfigMap requests a rotation like a user.
func annotateConfigMap(t *testing.T, annotations map[string]string) {
	t.Helper()
	patch := harness.JSON(t, map[string]any{"metadata": map[string]any{"annotations": annotations}})
	env.Patch(t, signingConfigMap(), string(patch))
}

func TestReplicasMakeOneSigningKey(t *testing.T) {
	for range 5 {
		noSigningKey(t)
		const replicas = 8
		var (
			running sync.WaitGroup
			ids     [replicas]string
			errs    [replicas]error
		)
		for i := range replicas {
			k, _, _ := someSigningKeys(t, time.Now())
			running.Go(func() {
				if _, errs[i] = k.Reconcile(t.Context(), only(k)); errs[i] != nil {
					return
				}
				harness.Eventually(t, func(g Gomega) {
					ring, err := k.current(t.Context())
					g.Expect(err).NotTo(HaveOccurred())
					ids[i] = ring.Signer.ID()
				})
			})
		}
		running.Wait()
		for i := range replicas {
			if errs[i] != nil || ids[i] != ids[0] {
				t.Fatalf("replica %d has key %s (%v), replica 0 has %s", i, ids[i], errs[i], ids[0])
			}
		}
		if got := publishedIDs(t); len(got) != 1 || got[0] != ids[0] {
			t.Fatalf("published are %v, want %s", got, ids[0])
		}
	}
}

func TestSpoiltSigningKeyIsNotWrittenOver(t *testing.T) {
	noSigningKey(t)
	spoilt := signingSecret()
	spoilt.Data = map[string][]byte{tokens.SigningKeyDataKey: []byte("half a key")}
	env.Create(t, spoilt)
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), spoilt) })
	k, _, _ := someSigningKeys(t, time.Now())
	_, err := k.Reconcile(t.Context(), only(k))
	if err == nil || strings.Contains(err.Error(), "half a key") {
		t.Errorf("error is %v; want one that quotes nothing", err)
	}
	if _, err := k.current(t.Context()); err == nil {
		t.Error("half a key signs tokens")
	}
	if now := testenv.Get(t, NewWithT(t), env, signingSecret()); string(now.Data[tokens.SigningKeyDataKey]) != "half a key" {
		t.Error("the Secret was written over")
	}
}

func TestNothingIsSignedBeforeItIsPublished(t *testing.T) {
	noSigningKey(t)
	k, _, _ := someSigningKeys(t, time.Now())
	if _, err := k.current(t.Context()); !errors.Is(err, errUnpublished) {
		t.Errorf("without a key: %v, want errUnpublished", err)
	}
	reconcileOnce(t, k)
	_, err := k.current(t.Context())
	harness.NoError(t, "with a key that is published", err)
	harness.Must(t, env.Client.Delete(t.Context(), signingConfigMap()))
	if _, err := k.current(t.Context()); !errors.Is(err, errUnpublished) {
		t.Errorf("with a key that is not published: %v, want errUnpublished", err)
	}
}

func only(k signingKeys) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: k.namespace, Name: tokens.SigningKeySecret}}
}

func reconcileOnce(t *testing.T, k signingKeys) time.Duration {
	t.Helper()
	result, err := k.reconcile(t.Context())
	harness.Must(t, err)
	return result.RequeueAfter
}

func TestNextStep(t *testing.T) {
	now := time.Unix(1e9, 0)
	first := tokens.GenerateSigningKey()
	second := tokens.GenerateSigningKey()
	rest := tokens.Ring{Signer: first}
	prepared := tokens.Ring{Signer: first, Next: second}
	overlapping := tokens.Ring{Signer: second, Previous: first.Public()}
	ago := func(d time.Duration) string { return now.Add(-d).UTC().Format(time.RFC3339) }
	const overlap, notice = 24 * time.Hour, 10 * time.Second
	cases := []struct {
		reason      string
		ring        tokens.Ring
		annotations map[string]string
		asked       string
		published   bool
		want        step
		wait        time.Duration
	}{
		{"nothing is asked for", rest, nil, "", false, stay, 0},
		{"a rotation is asked for", rest, nil, "1", false, prepare, 0},
		{"it has been served", rest, map[string]string{servedAnnotation: "1"}, "1", false, stay, 0},
		{"another is asked for", rest, map[string]string{servedAnnotation: "1"}, "2", false, prepare, 0},
		{"the annotation was taken off", rest, map[string]string{servedAnnotation: "1"}, "", false, stay, 0},
		{"a next key is published, since when is not known", prepared, nil, "1", false, countNotice, 0},
		{"it was published this moment, whatever was noted before", prepared, map[string]string{publishedAnnotation: ago(time.Hour)}, "1", true, countNotice, 0},
		{"not every replica can have seen it", prepared, map[string]string{publishedAnnotation: ago(4 * time.Second)}, "1", false, stay, 6 * time.Second},
		{"every replica has seen it", prepared, map[string]string{publishedAnnotation: ago(notice)}, "1", false, promote, 0},
		{"a time that is none is as good as none", prepared, map[string]string{publishedAnnotation: "soon"}, "1", false, countNotice, 0},
		{"tokens may still be signed anew", overlapping, nil, "1", false, countOverlap, 0},
		{"clients may have copies", overlapping, map[string]string{overlapAnnotation: ago(overlap - 40*time.Minute)}, "1", false, stay, 40 * time.Minute},
		{"for a day, unless the machine sleeps or its clock is put forward", overlapping, map[string]string{overlapAnnotation: ago(0)}, "1", false, stay, reconcile.MaxWait},
		{"the overlap is over", overlapping, map[string]string{overlapAnnotation: ago(overlap)}, "1", false, withdraw, 0},
		{"one rotation at a time", overlapping, map[string]string{overlapAnnotation: ago(overlap - time.Minute)}, "2", false, stay, time.Minute},
	}
	for _, tc := range cases {
		held := holding{ring: tc.ring, secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}}
		got, wait := nextStep(held, tc.asked, overlap, notice, tc.published, now)
		if got != tc.want || wait != tc.wait {
			t.Errorf("%s: got step %d in %v, want %d in %v", tc.reason, got, wait, tc.want, tc.wait)
		}
	}
}

func TestSigningOverlap(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 24 * time.Hour, "0s": 0, "90m": 90 * time.Minute, "720h": 720 * time.Hour,
		"soon": -1, "30d": -1, "-1s": -1, "721h": -1,
	} {
		public := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{OverlapAnnotation: text}}}
		got, usable := signingOverlap(public)
		if !usable && got == maxSigningOverlap {
			got = -1
		}
		harness.Same(t, text, want, got)
	}
}

// expectEvent checks the next Event that has been sent, and does not wait for one.
func expectEvent(t *testing.T, recorder *events.FakeRecorder, reason string) {
	t.Helper()
	select {
	case event := <-recorder.Events:
		harness.Contains(t, "what is said", event, reason)
	default:
		t.Errorf("nothing was said, want %s", reason)
	}
}

// logsError reconciles once, and checks what a log that has only errors reports.
func logsError(t *testing.T, k signingKeys, want string) {
	t.Helper()
	var log harness.Buffer
	_, err := k.reconcile(ctrl.LoggerInto(t.Context(), harness.ErrorLogger(&log)))
	harness.Must(t, err)
	harness.Contains(t, "the log of errors", log.String(), want)
}

// With the default instead, copies of tokens would end after a day, though their owners asked for thirty.
func TestRotationWaitsForAnOverlapThatCanBeUsed(t *testing.T) {
	noSigningKey(t)
	k, clock, recorder := someSigningKeys(t, time.Now())
	reconcileOnce(t, k)
	annotateConfigMap(t, map[string]string{RotateAnnotation: "1", OverlapAnnotation: "30d"})
	harness.Same(t, "time until it is said again", time.Hour, reconcileOnce(t, k))
	if heldRing(t).HasNext() {
		t.Error("the rotation began with an overlap that nobody asked for")
	}
	expectEvent(t, recorder, "InvalidOverlap")
	logsError(t, k, "The overlap of the signing keys cannot be used")
	annotateConfigMap(t, map[string]string{OverlapAnnotation: "720h"})
	for range 20 {
		if heldRing(t).HasPrevious() {
			break
		}
		clock.SetTime(clock.Now().Add(reconcileOnce(t, k)))
	}
	if !heldRing(t).HasPrevious() {
		t.Fatal("the rotation stays where it was, with an overlap that can be used")
	}
	reconcileOnce(t, k) // the overlap begins
	for len(recorder.Events) > 0 {
		<-recorder.Events
	}
	annotateConfigMap(t, map[string]string{OverlapAnnotation: "31d"})
	clock.SetTime(clock.Now().Add(maxSigningOverlap - 2*time.Hour))
	harness.Same(t, "time until it is said again", time.Hour, reconcileOnce(t, k))
	expectEvent(t, recorder, "InvalidOverlap")
	if !heldRing(t).HasPrevious() {
		t.Error("the previous key was withdrawn after an overlap that nobody asked for")
	}
	clock.SetTime(clock.Now().Add(2 * time.Hour))
	if reconcileOnce(t, k); heldRing(t).HasPrevious() {
		t.Error("the previous key stays after the longest overlap")
	}
	noSigningKey(t)
}

// The process may die before or after each write. The next process knows only what is stored.
func TestRotationSurvivesACrashAtEachWrite(t *testing.T) {
	for _, done := range []bool{false, true} {
		for at := 1; ; at++ {
			noSigningKey(t)
			healthy, clock, _ := someSigningKeys(t, time.Now().Truncate(time.Second))
			reconcileOnce(t, healthy)
			first := heldRing(t).Signer
			annotateConfigMap(t, map[string]string{RotateAnnotation: "1", OverlapAnnotation: "1h"})

			dying, writes := dyingAt(t, healthy, at, done)
			rotateWith(t, dying, clock)
			if *writes < at {
				break // It did not die: all writes have been tested.
			}
			rotateWith(t, healthy, clock)
			ring := heldRing(t)
			if ring.Signer.ID() == first.ID() || ring.HasNext() || ring.HasPrevious() {
				t.Fatalf("write %d, done %t: the rotation has not come to its end", at, done)
			}
			if got := publishedIDs(t); len(got) != 1 || got[0] != ring.Signer.ID() {
				t.Fatalf("write %d, done %t: published are %v, want %s", at, done, got, ring.Signer.ID())
			}
		}
	}
}

// dyingAt returns a replica whose writes fail from that number on; done means that this first
// failing write is stored nevertheless.
func dyingAt(t *testing.T, k signingKeys, at int, done bool) (signingKeys, *int) {
	t.Helper()
	writes := 0
	dead := errors.New("the process has died")
	write := func(do func() error) error {
		writes++
		switch {
		case writes < at:
			return do()
		case writes == at && done:
			return errors.Join(do(), dead)
		}
		return dead
	}
	k.Client = interceptor.NewClient(env.AsController(t), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return write(func() error { return c.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, object, patch, options...) })
		},
	})
	return k, &writes
}

// rotateWith reconciles until there is nothing to do, or an error, and checks the invariants after
// each step. It advances the clock by the requested waits.
func rotateWith(t *testing.T, k signingKeys, clock *clocktesting.FakePassiveClock) {
	t.Helper()
	for range 20 {
		before := env.Versions(t, signingSecret(), signingConfigMap())
		result, err := k.reconcile(t.Context())
		checkPublished(t, k)
		if err != nil {
			return
		}
		clock.SetTime(clock.Now().Add(result.RequeueAfter))
		after := env.Versions(t, signingSecret(), signingConfigMap())
		if result.RequeueAfter == 0 && slices.Equal(before, after) {
			return
		}
	}
	t.Fatal("the rotation does not settle")
}

func checkPublished(t *testing.T, k signingKeys) {
	t.Helper()
	ids := publishedIDs(t)
	if len(ids) == 0 || len(ids) > 2 {
		t.Fatalf("published are %v, want one key or two", ids)
	}
	// A signer that was not published for the notice would sign tokens that some replica refuses.
	ring := heldRing(t)
	if _, err := k.current(t.Context()); err != nil {
		t.Fatalf("nothing can be signed, by key %s while %v are published: %v", ring.Signer.ID(), ids, err)
	}
}

func TestSigningKeyIsWithdrawnWhenNoTokenIsOwed(t *testing.T) {
	noSigningKey(t)
	k, clock, recorder := someSigningKeys(t, time.Now().Truncate(time.Second))
	reconcileOnce(t, k)
	first := heldRing(t).Signer
	namespace := env.Organization(t, "owed")
	key := testenv.Create(t, env, builder.APIKey("slow").In(namespace).Build())
	testenv.ChangeStatus(t, env, key, func(k *v1alpha1.APIKey) {
		k.Status.KeyID, k.Status.SigningKeyID = "token", first.ID()
		k.Status.ExpiresAt = new(v1alpha1.NewTime(clock.Now().Add(1000 * time.Hour)))
	})
	annotateConfigMap(t, map[string]string{RotateAnnotation: "1", OverlapAnnotation: "1h"})
	reconcileOnce(t, k) // the next key
	reconcileOnce(t, k) // published, and counted from now
	if wait := reconcileOnce(t, k); wait != publicationNotice || heldRing(t).Signer.ID() != first.ID() {
		t.Fatalf("signs by another key, or waits %v and not %v", wait, publicationNotice)
	}
	clock.SetTime(clock.Now().Add(publicationNotice))
	reconcileOnce(t, k) // signs
	if heldRing(t).Signer.ID() == first.ID() {
		t.Fatal("the key before still signs")
	}
	clock.SetTime(clock.Now().Add(2 * time.Hour))
	if wait := reconcileOnce(t, k); wait != owedRetry || len(publishedIDs(t)) != 2 {
		t.Fatalf("looks again in %v with %v published, while a token has not been signed anew", wait, publishedIDs(t))
	}
	testenv.ChangeStatus(t, env, key, func(k *v1alpha1.APIKey) { k.Status.SigningKeyID = heldRing(t).Signer.ID() })
	reconcileOnce(t, k)
	if wait := reconcileOnce(t, k); wait != time.Hour {
		t.Fatalf("the overlap is %v, want it to be an hour from when no token is owed", wait)
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	reconcileOnce(t, k)
	reconcileOnce(t, k)
	if got := publishedIDs(t); len(got) != 1 || got[0] == first.ID() {
		t.Errorf("published are %v, want the new key alone", got)
	}
	close(recorder.Events)
	var said []string
	for event := range recorder.Events {
		said = append(said, strings.Fields(event)[1])
	}
	NewWithT(t).Expect(said).To(Equal([]string{"SigningKeyAdded", "SigningKeyRotated", "SigningKeyWithdrawn"}))
}

func TestKeysThatGoByNothingOweNothing(t *testing.T) {
	noSigningKey(t)
	k, clock, _ := someSigningKeys(t, time.Now())
	reconcileOnce(t, k)
	first := heldRing(t).Signer
	key := testenv.Create(t, env, builder.APIKey("idle").In(env.Organization(t, "idle")).Build())
	live := new(v1alpha1.NewTime(clock.Now().Add(time.Hour)))
	unready := func(reason string) []v1alpha1.Condition {
		return []v1alpha1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason,
			LastTransitionTime: v1alpha1.Now(), Message: "x",
		}}
	}
	cases := []struct {
		reason string
		status v1alpha1.APIKeyStatus
		owed   bool
	}{
		{"a token of the key before", v1alpha1.APIKeyStatus{SigningKeyID: first.ID(), ExpiresAt: live}, true},
		{"a token of another", v1alpha1.APIKeyStatus{SigningKeyID: "another", ExpiresAt: live}, false},
		{"no token", v1alpha1.APIKeyStatus{}, false},
		{"a token that is over", v1alpha1.APIKeyStatus{SigningKeyID: first.ID(), ExpiresAt: new(v1alpha1.NewTime(clock.Now().Add(-time.Hour)))}, false},
		{"no organization that could serve it", v1alpha1.APIKeyStatus{SigningKeyID: first.ID(), ExpiresAt: live, Conditions: unready(v1alpha1.ReasonOrganizationNotFound)}, false},
		{"a Secret that cannot be written", v1alpha1.APIKeyStatus{SigningKeyID: first.ID(), ExpiresAt: live, Conditions: unready(v1alpha1.ReasonSecretNotWritten)}, false},
		{"a Secret that cannot be replaced", v1alpha1.APIKeyStatus{SigningKeyID: first.ID(), ExpiresAt: live, Conditions: unready(v1alpha1.ReasonSecretConflict)}, false},
	}
	for _, tc := range cases {
		forget(t, key, tc.status)
		if owed, err := k.owed(t.Context(), first.Public()); err != nil || owed != tc.owed {
			t.Errorf("%s: owed is %t (%v), want %t", tc.reason, owed, err, tc.owed)
		}
	}
}

// An earlier version made the Secret immutable; a user's own may be immutable too.
func TestImmutableSigningKeyIsNotRotated(t *testing.T) {
	noSigningKey(t)
	k, _, recorder := someSigningKeys(t, time.Now())
	reconcileOnce(t, k)
	env.Patch(t, signingSecret(), `{"immutable":true}`)
	annotateConfigMap(t, map[string]string{RotateAnnotation: "1"})
	harness.Same(t, "time until it is said again", time.Hour, reconcileOnce(t, k))
	if ring := heldRing(t); ring.HasNext() {
		t.Error("a key was added to what cannot change")
	}
	expectEvent(t, recorder, "RotationRefused")
	logsError(t, k, "the rotation is blocked")
	noSigningKey(t)
}

// The key may have been removed because it leaked.
func TestImmutableConfigMapThatKeepsARemovedKeyIsReported(t *testing.T) {
	noSigningKey(t)
	k, _, recorder := someSigningKeys(t, time.Now())
	reconcileOnce(t, k)
	env.Patch(t, signingConfigMap(), `{"immutable":true}`)
	reconcileOnce(t, k)
	harness.Same(t, "Events while nothing changes", 0, len(recorder.Events))
	harness.Must(t, env.Client.Delete(t.Context(), signingSecret()))
	_, err := k.reconcile(t.Context())
	harness.ErrorContains(t, "the publication", err, "immutable")
	expectEvent(t, recorder, "RotationRefused")
	harness.Must(t, env.Client.Delete(t.Context(), signingConfigMap()))
	reconcileOnce(t, k)
	harness.Same(t, "the published keys", []string{heldRing(t).Signer.ID()}, publishedIDs(t))
	noSigningKey(t)
}

// A rotation does not help against a leak, but must not prevent the removal of the key.
func TestRemovalOfTheSecretEndsARotationToo(t *testing.T) {
	noSigningKey(t)
	k, clock, _ := someSigningKeys(t, time.Now())
	reconcileOnce(t, k)
	first := heldRing(t).Signer
	annotateConfigMap(t, map[string]string{RotateAnnotation: "1", OverlapAnnotation: "1h"})
	reconcileOnce(t, k)
	reconcileOnce(t, k)
	clock.SetTime(clock.Now().Add(publicationNotice))
	reconcileOnce(t, k)
	second := heldRing(t).Signer
	harness.Must(t, env.Client.Delete(t.Context(), signingSecret()))
	reconcileOnce(t, k)
	ring := heldRing(t)
	if got := publishedIDs(t); len(got) != 1 || got[0] != ring.Signer.ID() || got[0] == first.ID() || got[0] == second.ID() {
		t.Errorf("published are %v, want a third key alone", got)
	}
	if reconcileOnce(t, k); heldRing(t).HasNext() {
		t.Error("what was asked for before the key was made is served by it")
	}
}

// What is withdrawn stays so, and every client's copy of a token with it.
func TestAClockThatIsAheadWithdrawsNoSigningKey(t *testing.T) {
	noSigningKey(t)
	server := time.Now().Add(-72 * time.Hour)
	testenv.SetServerTime(t, server)
	key := tokens.GenerateSigningKey()
	previous := tokens.GenerateSigningKey()
	data, err := tokens.EncodeRing(tokens.Ring{Signer: key, Previous: previous.Public()})
	harness.Must(t, err)
	secret := signingSecret()
	secret.Data = data
	env.Create(t, secret)
	stop := shared.Alone(t, env)
	harness.Eventually(t, func(g Gomega) {
		from := holding{secret: testenv.Get(t, g, env, signingSecret())}.time(overlapAnnotation)
		g.Expect(from).To(BeTemporally("~", server, 10*time.Minute), "the overlap is counted")
	})
	NewWithT(t).Expect(publishedIDs(t)).To(ConsistOf(key.ID(), previous.ID()))
	stop()
	noSigningKey(t)
}
