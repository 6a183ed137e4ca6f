package apikey

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestKeyGetsATokenInItsSecret(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "issued")
	_, claims := waitUntilIssued(t, key)

	g := NewWithT(t)
	g.Expect(claims.KeyUID).To(Equal(key.UID))
	g.Expect(claims.Organization).To(Equal("issued"))
	g.Expect(key.Status.ExpiresAt.Sub(key.Status.IssuedAt.Time)).To(Equal(90 * 24 * time.Hour))
	g.Expect(key.Status.IssuedAt.Time).To(BeTemporally("==", claims.IssuedAt))
	g.Expect(key.Status.ExpiresAt.Time).To(BeTemporally("==", claims.ExpiresAt))
	g.Expect(key.Status.SecretRef.Name).To(BeEquivalentTo("ci-token"))
	g.Expect(v1alpha1.IsConditionTrue(key.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	secret := testenv.Get(t, g, env, tokenSecret(key))
	g.Expect(secret.Type).To(Equal(corev1.SecretTypeOpaque))
	owner := *metav1.NewControllerRef(key, v1alpha1.GroupVersion.WithKind("APIKey"))
	g.Expect(secret.OwnerReferences).To(Equal([]metav1.OwnerReference{owner}), "it goes with its key")
}

// A user who may read keys and events, but not Secrets, must not get a token.
func TestTokenIsNowhereButInTheSecret(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "secretive")
	token, _ := waitUntilIssued(t, key)
	signature := token[strings.LastIndex(token, ".")+1:]
	harness.Eventually(t, func(g Gomega) {
		events := testenv.List(t, g, env, &eventsv1.EventList{}, client.InNamespace(key.Namespace))
		g.Expect(events.Items).NotTo(BeEmpty(), "an issue is announced")
		for _, object := range []any{events, testenv.Get(t, g, env, key), testenv.Get(t, g, env, signingConfigMap())} {
			g.Expect(string(harness.JSON(t, object))).NotTo(ContainSubstring(signature))
		}
	})
}

// setMaximum bounds the life of the organization's keys.
func setMaximum(t *testing.T, organization string, maximum time.Duration) {
	t.Helper()
	testenv.Change(t, env, builder.Organization(organization).Build(), func(o *v1alpha1.Organization) {
		o.Spec.APIKeys = &v1alpha1.OrganizationAPIKeys{MaxLifetime: &metav1.Duration{Duration: maximum}}
	})
}

func TestKeySaysThatTheOrganizationBoundsItsLife(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "shortened")
	waitUntilIssued(t, key)
	message := func() string {
		return v1alpha1.FindCondition(key.Status.Conditions, v1alpha1.ConditionReady).Message
	}
	if strings.Contains(message(), "maxLifetime") {
		t.Fatalf("without a maximum: %q", message())
	}
	id := key.Status.KeyID
	setMaximum(t, "shortened", time.Hour)
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, env, key)
		g.Expect(key.Status.KeyID).To(Equal(id))
		g.Expect(key.Status.ExpiresAt.Sub(key.Status.IssuedAt.Time)).To(Equal(time.Hour))
		g.Expect(message()).To(ContainSubstring("spec.apiKeys.maxLifetime"))
	})
	// A key that expired by the maximum: as if it had been issued two hours ago.
	_, claims := read(t, NewWithT(t), key)
	claims.IssuedAt = claims.IssuedAt.Add(-2 * time.Hour)
	replaceToken(t, key, claims)
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonExpired)
	harness.Contains(t, "the message, which says who has ended the key's life",
		message(), "The key has expired because of the organization's spec.apiKeys.maxLifetime")
	harness.Eventually(t, func(g Gomega) {
		events := testenv.List(t, g, env, &eventsv1.EventList{}, client.InNamespace(key.Namespace))
		said := map[string]int{}
		for _, event := range events.Items {
			said[event.Reason]++
		}
		g.Expect(said).To(HaveKeyWithValue("LifetimeShortened", BeNumerically(">=", 1)))
		g.Expect(said).To(HaveKeyWithValue("Expired", 1))
	})
}

// replaceToken signs other claims, as the controller would have done at another time.
func replaceToken(t *testing.T, key *v1alpha1.APIKey, claims tokens.Claims) {
	t.Helper()
	token, err := heldRing(t).Signer.Sign(claims)
	harness.Must(t, err)
	testenv.Change(t, env, tokenSecret(key), func(s *corev1.Secret) { s.Data[v1alpha1.APIKeyTokenKey] = []byte(token) })
}

// The loss of the signing key must not give an expired key a new lifetime.
func TestLostSigningKeyRevivesNoExpiredKey(t *testing.T) {
	shared.Alone(t, env)
	key := newKey(t, "unrevived")
	_, claims := waitUntilIssued(t, key)
	claims.ExpiresAt = claims.IssuedAt.Add(time.Second)
	replaceToken(t, key, claims)
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonExpired)
	harness.Must(t, env.Client.Delete(t.Context(), signingSecret()))
	marker := testenv.Create(t, env, builder.APIKey("marker").In(key.Namespace).Build())
	waitUntilIssued(t, marker)
	// The new signing key enqueues all keys; the status shows when this key was reconciled.
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Description = "looked at" })
	ready := testenv.AwaitObserved(t, env, key)
	if ready.Reason != v1alpha1.ReasonExpired || key.Status.KeyID != claims.ID {
		t.Errorf("the key has token %s and is %s, want it expired as it was", key.Status.KeyID, ready.Reason)
	}
	// Until a rotation is requested.
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Rotation = &v1alpha1.APIKeyRotation{Serial: 1} })
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonReconciled)
}

func TestExpiryComesAtItsTime(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "expiring")
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonReconciled)
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(3 * time.Second))) })
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonExpired)
	if now := time.Now(); now.Before(key.Status.ExpiresAt.Time) {
		t.Errorf("expired %v early", key.Status.ExpiresAt.Sub(now))
	}
	if !v1alpha1.IsConditionTrue(key.Status.Conditions, v1alpha1.ConditionStalled) {
		t.Error("an expired key is not Stalled")
	}
	// A later expiry requires a new token.
	id := key.Status.KeyID
	change(t, key, func(s *v1alpha1.APIKeySpec) {
		s.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(time.Hour)))
		s.Rotation = &v1alpha1.APIKeyRotation{Serial: 1}
	})
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonReconciled)
	if key.Status.KeyID == id {
		t.Error("the token that expired is in force again")
	}
}

func TestAKeyCreatedExpiredGetsNoToken(t *testing.T) {
	shared.Start(t, env)
	namespace := env.Organization(t, "late")
	key := testenv.Create(t, env, builder.APIKey("late").In(namespace).Mutate(func(k *v1alpha1.APIKey) {
		k.Spec.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(-time.Hour)))
	}).Build())
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonExpired)
	if key.Status.KeyID != "" || !env.Gone(t, tokenSecret(key)) {
		t.Errorf("token %q was issued for an expired key", key.Status.KeyID)
	}
}

func TestDisabledKeyIsRotatedAllTheSame(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "disabled")
	_, leaked := waitUntilIssued(t, key)
	change(t, key, func(s *v1alpha1.APIKeySpec) {
		s.Disabled = true
		s.Rotation = &v1alpha1.APIKeyRotation{Serial: 1}
	})
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonDisabled)
	if key.Status.KeyID == leaked.ID {
		t.Error("the leaked token would be good again once the key is enabled")
	}
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Disabled = false })
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonReconciled)
}

func TestRotationKeepsThePreviousTokenForTheOverlap(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "rotating")
	_, first := waitUntilIssued(t, key)

	change(t, key, func(s *v1alpha1.APIKeySpec) {
		s.Rotation = &v1alpha1.APIKeyRotation{Serial: 7, Overlap: &metav1.Duration{Duration: time.Hour}}
	})
	_, second := waitUntilIssued(t, key, rotated(key, 7, first.ID), func(g Gomega) {
		g.Expect(key.Status.Previous.ExpiresAt.Sub(key.Status.IssuedAt.Time)).To(Equal(time.Hour))
	})
	if second.ID == first.ID {
		t.Fatal("a rotation gave the same token")
	}
	// A shortened overlap ends by itself, at its time.
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Rotation.Overlap = &metav1.Duration{Duration: 2 * time.Second} })
	waitUntilIssued(t, key, func(g Gomega) {
		g.Expect(key.Status.Previous).To(BeNil())
		g.Expect(key.Status.KeyID).To(Equal(second.ID))
	})
	// And is not revived.
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Rotation.Overlap = &metav1.Duration{Duration: time.Hour} })
	testenv.AwaitObserved(t, env, key)
	if key.Status.Previous != nil {
		t.Errorf("token %s is valid again", key.Status.Previous.KeyID)
	}
	// A lower serial requests nothing.
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Rotation.Serial = 3 })
	testenv.AwaitObserved(t, env, key)
	harness.Same(t, "the token after a lowered serial", second.ID, key.Status.KeyID)
}

func TestSecretThatIsLostOrSpoiltGivesANewToken(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "lost")
	update := func(apply func(*corev1.Secret)) func(g Gomega) {
		return func(g Gomega) {
			secret := testenv.Get(t, g, env, tokenSecret(key))
			apply(secret)
			g.Expect(env.Client.Update(t.Context(), secret)).To(Succeed())
		}
	}
	first, _ := waitUntilIssued(t, key)
	cases := []struct {
		reason string
		spoil  func(g Gomega)
	}{
		{"deleting the Secret revokes the token", func(g Gomega) { g.Expect(env.Client.Delete(t.Context(), tokenSecret(key))).To(Succeed()) }},
		{"an emptied Secret is filled anew", update(func(s *corev1.Secret) { s.Data = nil })},
		{"what is no token is replaced", update(func(s *corev1.Secret) { s.Data[v1alpha1.APIKeyTokenKey] = []byte("hello") })},
		{"a token that was revoked and is put back stays revoked", update(func(s *corev1.Secret) { s.Data[v1alpha1.APIKeyTokenKey] = []byte(first) })},
		{"a frozen Secret is replaced", update(func(s *corev1.Secret) { s.Data[v1alpha1.APIKeyTokenKey] = nil; s.Immutable = new(true) })},
	}
	var past []string
	for _, tc := range cases {
		_, before := waitUntilIssued(t, key)
		past = append(past, before.ID)
		// Tokens of the same second cannot be told apart by age.
		harness.Eventually(t, func(g Gomega) { g.Expect(time.Now()).To(BeTemporally(">", before.IssuedAt.Add(time.Second))) })
		tc.spoil(NewWithT(t))
		waitUntilIssued(t, key, func(g Gomega) {
			g.Expect(past).NotTo(ContainElement(key.Status.KeyID), tc.reason)
			g.Expect(key.Status.Previous).To(BeNil(), tc.reason)
		})
	}
}

// A user who may write Secrets can change the annotations, but cannot extend a token's lifetime.
func TestAnnotationsOfTheSecretRevokeNothingAndReviveNothing(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "annotated")
	_, first := waitUntilIssued(t, key)
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Rotation = &v1alpha1.APIKeyRotation{Serial: 1} })
	_, second := waitUntilIssued(t, key, func(g Gomega) { g.Expect(key.Status.KeyID).NotTo(Equal(first.ID)) })

	secret := testenv.Get(t, NewWithT(t), env, tokenSecret(key))
	secret.Annotations[replacesAnnotation] = first.ID
	secret.Annotations[ownsecret.SerialAnnotation] = "99"
	harness.Must(t, env.Client.Update(t.Context(), secret))
	change(t, key, func(s *v1alpha1.APIKeySpec) {
		s.Rotation = &v1alpha1.APIKeyRotation{Serial: 1, Overlap: &metav1.Duration{Duration: time.Hour}}
	})
	testenv.AwaitObserved(t, env, key)
	if key.Status.Previous != nil || key.Status.KeyID != second.ID || key.Status.RotationSerial != 1 {
		t.Errorf("the annotations changed the status to %+v", key.Status)
	}
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Rotation.Serial = 2 })
	waitUntilIssued(t, key, rotated(key, 2, second.ID))
}

func TestSecretOfAnotherIsNotTouched(t *testing.T) {
	shared.Start(t, env)
	namespace := env.Organization(t, "taken")
	other := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ci-token"},
		Data:       map[string][]byte{"token": []byte("someone's")},
	}
	env.Create(t, other)
	key := testenv.Create(t, env, builder.APIKey("ci").In(namespace).Build())
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonSecretConflict)
	if secret := testenv.Get(t, NewWithT(t), env, tokenSecret(key)); string(secret.Data["token"]) != "someone's" || secret.ResourceVersion != other.ResourceVersion {
		t.Error("another's Secret was written")
	}
	harness.Same(t, "the token in force, that nobody can have", "", key.Status.KeyID)
	harness.Must(t, env.Client.Delete(t.Context(), other))
	waitUntilIssued(t, key)
}

func disown(s *corev1.Secret) { s.OwnerReferences = nil }

// Who may write Secrets can detach one, and attach it again with an earlier token.
func TestConflictBringsNoTokenBack(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "reattached")
	for reason, change := range map[string]func(*tokens.Claims){
		"an earlier token":               func(c *tokens.Claims) { c.ID, c.IssuedAt = "revoked", c.IssuedAt.Add(-time.Hour) },
		"the last token was revoked too": func(*tokens.Claims) {},
	} {
		_, claims := waitUntilIssued(t, key)
		owners := testenv.Get(t, NewWithT(t), env, tokenSecret(key)).OwnerReferences
		testenv.Change(t, env, tokenSecret(key), disown)
		testenv.AwaitReason(t, env, key, v1alpha1.ReasonSecretConflict)
		last := claims.ID
		change(&claims)
		token, err := heldRing(t).Signer.Sign(claims)
		harness.Must(t, err)
		testenv.Change(t, env, tokenSecret(key), func(s *corev1.Secret) {
			s.OwnerReferences, s.Data[v1alpha1.APIKeyTokenKey] = owners, []byte(token)
		})
		waitUntilIssued(t, key, func(g Gomega) {
			g.Expect(key.Status.KeyID).NotTo(BeElementOf(claims.ID, last), reason)
		})
	}
}

func TestConflictRevivesNoExpiredKey(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "detached")
	_, claims := waitUntilIssued(t, key)
	claims.ExpiresAt = claims.IssuedAt.Add(time.Second)
	replaceToken(t, key, claims)
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonExpired)
	testenv.Change(t, env, tokenSecret(key), disown)
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonSecretConflict)
	harness.Must(t, env.Client.Delete(t.Context(), tokenSecret(key)))
	// No watch reports that this Secret was deleted.
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Description = "looked at" })
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonExpired)
	if !env.Gone(t, tokenSecret(key)) {
		t.Error("the expired key got a new token")
	}
}

// A Secret that a finalizer keeps is reported, not waited for in a loop.
func TestSecretThatCannotBeReplacedIsAConflict(t *testing.T) {
	shared.Start(t, env)
	hold := func(s *corev1.Secret) { s.Finalizers = []string{"example.com/hold"} }
	release := func(s *corev1.Secret) { s.Finalizers = nil }
	cases := map[string]func(t *testing.T, key *v1alpha1.APIKey) *v1alpha1.APIKey{
		"an earlier key of the name": func(t *testing.T, key *v1alpha1.APIKey) *v1alpha1.APIKey {
			t.Helper()
			testenv.Change(t, env, tokenSecret(key), hold)
			// No garbage collector runs here, so that the Secret stays.
			harness.Must(t, env.Client.Delete(t.Context(), key))
			return testenv.Create(t, env, builder.APIKey("ci").In(key.Namespace).Build())
		},
		"an immutable Secret": func(t *testing.T, key *v1alpha1.APIKey) *v1alpha1.APIKey {
			t.Helper()
			testenv.Change(t, env, tokenSecret(key), func(s *corev1.Secret) { hold(s); s.Immutable = new(true) })
			change(t, key, func(s *v1alpha1.APIKeySpec) { s.Rotation = &v1alpha1.APIKeyRotation{Serial: 1} })
			return key
		},
	}
	for reason, keep := range cases {
		key := newKey(t, strings.ReplaceAll(strings.ToLower(reason), " ", "-"))
		_, before := waitUntilIssued(t, key)
		key = keep(t, key)
		testenv.AwaitReason(t, env, key, v1alpha1.ReasonSecretConflict)
		harness.Same(t, reason+": the token", "", key.Status.KeyID)
		testenv.Change(t, env, tokenSecret(key), release)
		waitUntilIssued(t, key, func(g Gomega) { g.Expect(key.Status.KeyID).NotTo(Equal(before.ID), reason) })
	}
}

// No user asked for another token, so clients' copies keep working.
func TestTokenStaysValidThoughTheNewSigningKeyCannotSignIt(t *testing.T) {
	noSigningKey(t)
	shared.Alone(t, env)
	key := newKey(t, "frozen")
	_, claims := waitUntilIssued(t, key)
	testenv.Change(t, env, tokenSecret(key), func(s *corev1.Secret) {
		s.Finalizers, s.Immutable = []string{"example.com/hold"}, new(true)
	})
	next := tokens.GenerateSigningKey()
	holdSigningKeys(t, tokens.Ring{Signer: next, Previous: heldRing(t).Signer.Public()})
	testenv.AwaitReason(t, env, key, v1alpha1.ReasonSecretConflict)
	harness.Same(t, "the token of the key, which is the one in the Secret", claims.ID, key.Status.KeyID)
	// The rotation of the signing key would otherwise wait for this key until its token expires.
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Disabled = true })
	ready := testenv.AwaitObserved(t, env, key)
	if ready.Reason != v1alpha1.ReasonSecretConflict || !strings.Contains(ready.Message, "refused while spec.disabled is set") {
		t.Errorf("the disabled key is %s: %s", ready.Reason, ready.Message)
	}
	testenv.Change(t, env, tokenSecret(key), func(s *corev1.Secret) { s.Finalizers = nil })
	waitUntilIssued(t, key, func(g Gomega) { g.Expect(key.Status.SigningKeyID).To(Equal(next.ID())) })
	harness.Same(t, "the token of the key, which is the same one signed anew", claims.ID, key.Status.KeyID)
	noSigningKey(t)
}

// holdSigningKeys stores the ring as a rotation of the signing key would.
func holdSigningKeys(t *testing.T, ring tokens.Ring) {
	t.Helper()
	data, err := tokens.EncodeRing(ring)
	harness.Must(t, err)
	testenv.Change(t, env, signingSecret(), func(s *corev1.Secret) { s.Data = data })
}

// It cannot be signed again. Its status would promise a later end than the REST API accepts it until.
func TestTokenInItsOverlapEndsWithItsSigningKey(t *testing.T) {
	noSigningKey(t)
	shared.Alone(t, env)
	key := newKey(t, "withdrawn")
	_, first := waitUntilIssued(t, key)
	change(t, key, func(s *v1alpha1.APIKeySpec) {
		s.Rotation = &v1alpha1.APIKeyRotation{Serial: 1, Overlap: &metav1.Duration{Duration: time.Hour}}
	})
	_, second := waitUntilIssued(t, key, rotated(key, 1, first.ID))
	next := tokens.GenerateSigningKey()
	holdSigningKeys(t, tokens.Ring{Signer: next, Previous: heldRing(t).Signer.Public()})
	waitUntilIssued(t, key, rotated(key, 1, first.ID), func(g Gomega) { g.Expect(key.Status.SigningKeyID).To(Equal(next.ID())) })
	holdSigningKeys(t, tokens.Ring{Signer: next})
	waitUntilIssued(t, key, func(g Gomega) { g.Expect(key.Status.Previous).To(BeNil()) })
	harness.Same(t, "the token of the key", second.ID, key.Status.KeyID)
	noSigningKey(t)
}

// People delete the Secret of a token that has leaked.
func TestLostTokenIsRevokedThoughNoNewOneCanBeWritten(t *testing.T) {
	shared.Start(t, env)
	for name, lose := range map[string]func(secret *corev1.Secret) error{
		"deleted": func(secret *corev1.Secret) error { return env.Client.Delete(t.Context(), secret) },
		// It holds nothing in use, so it makes room for the new one.
		"emptied": func(secret *corev1.Secret) error {
			secret.Data, secret.Immutable = nil, new(true)
			return env.Client.Update(t.Context(), secret)
		},
	} {
		key := newKey(t, name)
		_, lost := waitUntilIssued(t, key)
		secret := testenv.Get(t, NewWithT(t), env, tokenSecret(key))
		quota := env.UseUp(t, "count/secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "probe"}})
		harness.Must(t, lose(secret))
		ready := testenv.AwaitReason(t, env, key, v1alpha1.ReasonSecretNotWritten)
		if key.Status.KeyID != "" || !strings.Contains(ready.Message, "exceeded quota") {
			t.Errorf("%s: the key has token %q and says %q", name, key.Status.KeyID, ready.Message)
		}
		env.AwaitGone(t, secret)
		harness.Must(t, env.Client.Delete(t.Context(), quota))
		waitUntilIssued(t, key, func(g Gomega) { g.Expect(key.Status.KeyID).NotTo(Equal(lost.ID)) })
	}
}

func TestLostTokenIsRevokedThoughNoNewOneCanBeSigned(t *testing.T) {
	for name, spoil := range map[string]func(){
		"spoilt": func() { env.Patch(t, signingSecret(), `{"data":{"ed25519.pem":"aGFsZg=="}}`) },
		"unpublished": func() {
			env.Patch(t, signingConfigMap(), `{"immutable":true}`)
			harness.Must(t, env.Client.Delete(t.Context(), signingSecret()))
		},
	} {
		noSigningKey(t)
		stop := shared.Alone(t, env)
		key := newKey(t, name)
		_, lost := waitUntilIssued(t, key)
		spoil()
		harness.Must(t, env.Client.Delete(t.Context(), tokenSecret(key)))
		ready := testenv.AwaitReason(t, env, key, v1alpha1.ReasonSecretNotWritten)
		// What is wrong with the signing key is in the log: the organization has no access to it.
		if says := ready.Message; key.Status.KeyID != "" || !strings.Contains(says, "signing key cannot be used") ||
			strings.Contains(says, signingSecret().Name) {
			t.Errorf("%s: the key has token %q and says %q", name, key.Status.KeyID, says)
		}
		noSigningKey(t)
		waitUntilIssued(t, key, func(g Gomega) { g.Expect(key.Status.KeyID).NotTo(Equal(lost.ID)) })
		stop()
	}
}

// A Secret of this type must hold more than a token.
func makeTyped(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	harness.Must(t, env.Client.Delete(t.Context(), secret))
	secret.ResourceVersion, secret.Type = "", corev1.SecretTypeSSHAuth
	secret.Data[corev1.SSHAuthPrivateKey] = []byte("a key")
	env.Create(t, secret)
}

// An immutable Secret can only be deleted and created.
func makeIrreplaceable(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	testenv.Change(t, env, secret, func(s *corev1.Secret) { s.Immutable = new(true) })
	env.UseUp(t, "count/secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: "probe"}})
}

func TestTokenStaysValidWhileItsSecretCannotBeWritten(t *testing.T) {
	for name, hinder := range map[string]func(*testing.T, *corev1.Secret){"typed": makeTyped, "irreplaceable": makeIrreplaceable} {
		stop := shared.Alone(t, env)
		key := newKey(t, name)
		_, claims := waitUntilIssued(t, key)
		stop()
		hinder(t, testenv.Get(t, NewWithT(t), env, tokenSecret(key)))
		stop = shared.Alone(t, env)
		disabled := name == "typed"
		change(t, key, func(s *v1alpha1.APIKeySpec) { s.Disabled, s.Rotation = disabled, &v1alpha1.APIKeyRotation{Serial: 1} })
		ready := testenv.AwaitReason(t, env, key, v1alpha1.ReasonSecretNotWritten)
		if strings.Contains(ready.Message, "refused while spec.disabled is set") != disabled {
			t.Errorf("%s: the message is %q", name, ready.Message)
		}
		if key.Status.KeyID != claims.ID || key.Status.RotationSerial != 0 {
			t.Errorf("%s: the key has token %s of serial %d, want the one in the Secret", name, key.Status.KeyID, key.Status.RotationSerial)
		}
		_, kept := read(t, NewWithT(t), key)
		harness.Same(t, name+": the id of the token in the Secret", claims.ID, kept.ID)
		stop()
	}
}

func TestKeyOutsideAnOrganizationGetsNoToken(t *testing.T) {
	shared.Start(t, env)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-notyet",
		Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "lost"}}}
	early := builder.APIKey("early").In("org-notyet").Build()
	env.Create(t, namespace, early)
	testenv.AwaitReason(t, env, early, v1alpha1.ReasonOrganizationNotFound)
	if !env.Gone(t, tokenSecret(early)) {
		t.Error("the key got a Secret")
	}
	// As soon as the namespace belongs to an organization, its keys are served.
	organization := testenv.Create(t, env, builder.Organization("notyet").Build())
	organization.Status.Namespace = "org-notyet"
	harness.Must(t, env.AsController(t).Status().Update(t.Context(), organization))
	waitUntilIssued(t, early)
}

// forget resets the status, as if the controller had died before it wrote the next one.
func forget(t *testing.T, key *v1alpha1.APIKey, to v1alpha1.APIKeyStatus) {
	t.Helper()
	testenv.ChangeStatus(t, env, key, func(k *v1alpha1.APIKey) { k.Status = to })
}

func TestTokenWhoseStatusWasLostIsTakenOver(t *testing.T) {
	stop := shared.Alone(t, env)
	key := newKey(t, "crashed")
	before, _ := waitUntilIssued(t, key)
	stop()
	forget(t, key, v1alpha1.APIKeyStatus{})
	shared.Alone(t, env)
	if after, _ := waitUntilIssued(t, key); after != before {
		t.Error("the client's token was replaced")
	}
}

func TestARotationWhoseStatusWasLostIsTakenOverBeforeTheNextOne(t *testing.T) {
	stop := shared.Alone(t, env)
	key := newKey(t, "crashed-rotation")
	_, first := waitUntilIssued(t, key)
	unrotated, overlap := *key.Status.DeepCopy(), &metav1.Duration{Duration: time.Hour}
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Rotation = &v1alpha1.APIKeyRotation{Serial: 1, Overlap: overlap} })
	before, second := waitUntilIssued(t, key, rotated(key, 1, first.ID))
	stop()
	forget(t, key, unrotated)
	stop = shared.Alone(t, env)
	if after, _ := waitUntilIssued(t, key, rotated(key, 1, first.ID)); after != before {
		t.Error("the rotation was done twice")
	}
	stop()
	forget(t, key, unrotated)
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Rotation.Serial = 2 })
	shared.Alone(t, env)
	waitUntilIssued(t, key, rotated(key, 2, second.ID))
}

func TestReconciledKeyIsNotWritten(t *testing.T) {
	stop := shared.Alone(t, env)
	key := newKey(t, "calm")
	waitUntilIssued(t, key)
	objects := []client.Object{key, tokenSecret(key), signingSecret(), signingConfigMap()}
	before := env.Versions(t, objects...)
	stop()
	// A start reconciles everything; the new key shows when that is done.
	shared.Alone(t, env)
	marker := testenv.Create(t, env, builder.APIKey("marker").In(key.Namespace).Build())
	waitUntilIssued(t, marker)
	harness.Same(t, "what is stored", before, env.Versions(t, objects...))
}

// The facade writes lastUsedAt, and the controller must not revert it.
func TestLastUseSurvivesAReconcile(t *testing.T) {
	shared.Start(t, env)
	key := newKey(t, "used")
	waitUntilIssued(t, key)
	used := v1alpha1.NewTime(time.Now())
	patch := testenv.MergePatch(fmt.Sprintf(`{"status":{"lastUsedAt":%q}}`, used.Format(time.RFC3339)))
	harness.Must(t, env.AsController(t).Status().Patch(t.Context(), key, patch))
	change(t, key, func(s *v1alpha1.APIKeySpec) { s.Rotation = &v1alpha1.APIKeyRotation{Serial: 1} })
	waitUntilIssued(t, key, func(g Gomega) {
		g.Expect(key.Status.RotationSerial).To(Equal(int64(1)))
		g.Expect(key.Status.LastUsedAt).NotTo(BeNil())
		g.Expect(key.Status.LastUsedAt.Time).To(BeTemporally("==", used.Time))
	})
}

func TestLostPublicKeyIsPublishedAgain(t *testing.T) {
	shared.Alone(t, env)
	key := newKey(t, "published")
	before, _ := waitUntilIssued(t, key)
	private := testenv.Get(t, NewWithT(t), env, signingSecret())
	harness.Must(t, env.Client.Delete(t.Context(), signingConfigMap()))
	after, _ := waitUntilIssued(t, key)
	if again := testenv.Get(t, NewWithT(t), env, signingSecret()); again.UID != private.UID || after != before {
		t.Error("a lost ConfigMap cost the signing key or a token")
	}
	// With a key of their own in the ConfigMap, a user could sign any token.
	stranger := tokens.GenerateSigningKey()
	added, err := tokens.EncodeKeySet(stranger.Public())
	harness.Must(t, err)
	configMap := testenv.Get(t, NewWithT(t), env, signingConfigMap())
	for name, text := range added {
		configMap.Data[name] = text
	}
	harness.Must(t, env.Client.Update(t.Context(), configMap))
	harness.Eventually(t, func(g Gomega) { g.Expect(testenv.Get(t, g, env, signingConfigMap()).Data).To(HaveLen(1)) })
}

// Removing the signing key is the response to a leak.
func TestRemovedSigningKeyEndsEveryToken(t *testing.T) {
	shared.Alone(t, env)
	namespace := env.Organization(t, "resigned")
	keys := []*v1alpha1.APIKey{builder.APIKey("a").In(namespace).Build(), builder.APIKey("b").In(namespace).Build()}
	before := map[string]string{}
	for _, key := range keys {
		env.Create(t, key)
		before[key.Name], _ = waitUntilIssued(t, key)
	}
	harness.Must(t, env.Client.Delete(t.Context(), signingSecret()))
	for _, key := range keys {
		waitUntilIssued(t, key, func(g Gomega) {
			token, _ := read(t, g, key)
			g.Expect(token).NotTo(Equal(before[key.Name]))
		})
	}
}
