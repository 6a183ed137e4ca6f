package apikey

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func scopeOf(key *v1alpha1.APIKey, organization *v1alpha1.Organization, before v1alpha1.APIKeyStatus, now time.Time) *scope {
	s := &scope{Scope: reconcile.NewScope(key), organization: organization}
	s.Before, s.Now = &before, now
	return s
}

// someScope is a key at any point of its life.
func someScope(t *rapid.T) *scope {
	now := time.Unix(rapid.Int64Range(1e9, 2e9).Draw(t, "now"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
	hours := func(name string) time.Duration {
		return time.Duration(rapid.IntRange(-3, 3).Draw(t, name)) * time.Hour
	}
	key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Name: "ci", Namespace: "org-acme", UID: "uid"}}
	if rapid.Bool().Draw(t, "has expiry") {
		key.Spec.ExpiresAt = new(v1alpha1.NewTime(now.Truncate(time.Second).Add(hours("expiry"))))
	}
	if rapid.Bool().Draw(t, "has rotation") {
		key.Spec.Rotation = &v1alpha1.APIKeyRotation{
			Serial:  rapid.Int64Range(1, 3).Draw(t, "serial"),
			Overlap: &metav1.Duration{Duration: time.Duration(rapid.IntRange(0, 3).Draw(t, "overlap")) * time.Hour},
		}
	}
	organization := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	if rapid.Bool().Draw(t, "has maximum") {
		maximum := time.Duration(rapid.IntRange(1, 300).Draw(t, "maximum")) * time.Minute
		organization.Spec.APIKeys = &v1alpha1.OrganizationAPIKeys{MaxLifetime: &metav1.Duration{Duration: maximum}}
	}
	return scopeOf(key, organization, v1alpha1.APIKeyStatus{}, now)
}

// The issued token is the wanted one, and another decision changes nothing: reconciles settle.
func TestDecisionsConvergeAndKeepWithinTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := someScope(t)
		var have *issued
		for range rapid.IntRange(1, 6).Draw(t, "reconciles") {
			if o, needed := decide(s, have); needed {
				o.claims.ID = rapid.StringMatching(`[a-z]{12}`).Draw(t, "id")
				have = &issued{claims: o.claims, serial: o.serial, replaces: o.replaces}
			}
			status := statusFor(s, have)
			checkBounds(t, s, status)
			*s.Before = status
			if again, needed := decide(s, have); needed {
				t.Fatalf("not settled: asks for %+v after %+v", again, have)
			}
			if s.Object.Spec.Rotation != nil && rapid.Bool().Draw(t, "rotate") {
				s.Object.Spec.Rotation.Serial++
			}
			s.Now = s.Now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "minutes")) * time.Minute)
		}
	})
}

func checkBounds(t *rapid.T, s *scope, status v1alpha1.APIKeyStatus) {
	if status.KeyID == "" {
		return
	}
	if expiry := s.Object.Spec.ExpiresAt; expiry != nil && status.ExpiresAt.After(expiry.Time) {
		t.Fatalf("outlives the spec: %v > %v", status.ExpiresAt, expiry)
	}
	if bounds := s.organization.Spec.APIKeys; bounds != nil && status.ExpiresAt.Sub(status.IssuedAt.Time) > bounds.MaxLifetime.Duration {
		t.Fatalf("outlives the organization's maximum: %v", status.ExpiresAt.Sub(status.IssuedAt.Time))
	}
	previous := status.Previous
	if previous == nil {
		return
	}
	if previous.KeyID == status.KeyID || previous.KeyID == "" {
		t.Fatalf("%q stays beside %q", previous.KeyID, status.KeyID)
	}
	if previous.ExpiresAt.Sub(status.IssuedAt.Time) > overlap(s.Object) || previous.ExpiresAt.After(status.ExpiresAt.Time) || !previous.ExpiresAt.After(s.Now) {
		t.Fatalf("the overlap until %v is out of bounds at %v: %+v", previous.ExpiresAt, s.Now, status)
	}
}

// Else whoever ends old tokens by a lower limit, and lifts it again, would revive all of them.
func TestAnExpiredTokenStaysSo(t *testing.T) {
	issuedAt := time.Unix(1e9, 0).UTC()
	in := func(d time.Duration) *v1alpha1.Time { return new(v1alpha1.NewTime(issuedAt.Add(d))) }
	const signed = 90 * 24 * time.Hour
	have := &issued{claims: tokens.Claims{ID: "first", IssuedAt: issuedAt, ExpiresAt: issuedAt.Add(signed)}}
	lowered := func(s *scope) {
		s.organization.Spec.APIKeys = &v1alpha1.OrganizationAPIKeys{MaxLifetime: &metav1.Duration{Duration: time.Hour}}
	}
	for _, c := range []struct {
		reason      string
		limit       func(*scope)
		limitedAt   time.Duration
		liftedAfter time.Duration
		want        time.Duration
	}{
		{"it expired by the organization's maximum", lowered, 2 * time.Hour, time.Minute, time.Hour},
		{"it expired by the key's own expiry", func(s *scope) { s.Object.Spec.ExpiresAt = in(time.Hour) }, 2 * time.Hour, time.Minute, time.Hour},
		{"it expires between two reconciles", lowered, time.Minute, time.Hour, time.Hour},
		{"the next leader's clock is behind", lowered, time.Hour, -apitime.MaxAhead, time.Hour},
		{"the limit is lifted before that", lowered, time.Minute, time.Minute, signed},
		{"the limit is lifted minutes before that", lowered, time.Minute, 56 * time.Minute, signed},
	} {
		s := scopeOf(&v1alpha1.APIKey{}, &v1alpha1.Organization{}, v1alpha1.APIKeyStatus{}, issuedAt)
		reconciled := func(at time.Duration) {
			s.Now = in(at).Time
			*s.Status = statusFor(s, have)
			s.conclude(judge(s))
			*s.Before = *s.Status.DeepCopy()
		}
		reconciled(0)
		c.limit(s)
		reconciled(c.limitedAt)
		s.Object.Spec.ExpiresAt, s.organization.Spec.APIKeys = nil, nil
		for range 2 {
			reconciled(c.limitedAt + c.liftedAfter)
			harness.Same(t, c.reason+": life", c.want, s.Status.ExpiresAt.Sub(issuedAt))
		}
		_, again := decide(s, nil)
		harness.Same(t, c.reason+": a new token if its Secret is lost", c.want == signed, again)
	}
}

// The organization's maximum lifetime may have ended it long before the end that it is signed with.
func TestAnOverlapEndsNoLaterThanItsToken(t *testing.T) {
	now := time.Unix(1e9, 0).UTC()
	for reason, c := range map[string]struct {
		left, want time.Duration
	}{
		"it lives longer than the overlap": {2 * time.Hour, time.Hour},
		"it ends within the overlap":       {time.Minute, time.Minute},
		"it has ended":                     {0, 0},
	} {
		s := scopeOf(&v1alpha1.APIKey{Spec: v1alpha1.APIKeySpec{Rotation: &v1alpha1.APIKeyRotation{Serial: 1, Overlap: &metav1.Duration{Duration: time.Hour}}}},
			&v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "acme"}},
			v1alpha1.APIKeyStatus{KeyID: "first", ExpiresAt: new(v1alpha1.NewTime(now.Add(c.left)))}, now)
		o, needed := decide(s, &issued{claims: tokens.Claims{ID: "first", ExpiresAt: now.Add(90 * 24 * time.Hour)}})
		if !needed {
			t.Fatalf("%s: no token is issued", reason)
		}
		o.claims.ID = "second"
		have := &issued{claims: o.claims, serial: o.serial, replaces: o.replaces}
		for range 2 { // The second time, the status records the rotation.
			*s.Before = statusFor(s, have)
			var got time.Duration
			if previous := s.Before.Previous; previous != nil {
				got = previous.ExpiresAt.Sub(now)
			}
			harness.Same(t, reason, c.want, got)
		}
	}
}

// A rotation with an overlap must not keep a token that the maximum would have ended.
func TestALoweredMaximumEndsATokenInItsOverlap(t *testing.T) {
	now := time.Unix(1e9, 0).UTC()
	const day = 24 * time.Hour
	for _, c := range []struct {
		reason  string
		maximum time.Duration
		old     bool // the status is from a version that does not record when the token was issued
		want    time.Duration
	}{
		{"without a maximum it is the overlap", 0, false, 10 * day},
		{"it is within the maximum", 100 * day, false, 10 * day},
		{"it reaches the maximum in its overlap", 85 * day, false, 5 * day},
		{"it is beyond the maximum", 70 * day, false, 0},
		{"it is not known when it was issued", 70 * day, true, 10 * day},
	} {
		s := scopeOf(&v1alpha1.APIKey{Spec: v1alpha1.APIKeySpec{Rotation: &v1alpha1.APIKeyRotation{Serial: 1, Overlap: &metav1.Duration{Duration: 10 * day}}}},
			&v1alpha1.Organization{}, v1alpha1.APIKeyStatus{KeyID: "first", IssuedAt: new(v1alpha1.NewTime(now.Add(-80 * day))), ExpiresAt: new(v1alpha1.NewTime(now.Add(100 * day)))}, now)
		second := &issued{claims: tokens.Claims{ID: "second", IssuedAt: now, ExpiresAt: now.Add(90 * day)}, serial: 1, replaces: "first"}
		*s.Before = statusFor(s, second)
		if c.old {
			s.Before.Previous.IssuedAt = nil
		}
		if c.maximum > 0 {
			s.organization.Spec.APIKeys = &v1alpha1.OrganizationAPIKeys{MaxLifetime: &metav1.Duration{Duration: c.maximum}}
		}
		var got time.Duration
		if previous := statusFor(s, second).Previous; previous != nil {
			got = previous.ExpiresAt.Sub(now)
		}
		harness.Same(t, c.reason, c.want, got)
	}
}

// All keys that were created together are read together, so not every hour.
func TestTheNextReconcileIsAtTheNextChange(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Unix(1e9, 0)
	at := func(d time.Duration) *v1alpha1.Time { return new(v1alpha1.NewTime(now.Add(d))) }
	cases := map[string]struct {
		status v1alpha1.APIKeyStatus
		want   time.Duration
	}{
		"no token":  {v1alpha1.APIKeyStatus{}, 0},
		"one token": {v1alpha1.APIKeyStatus{ExpiresAt: at(time.Minute)}, time.Minute},
		"far away, unless the machine sleeps or its clock is put forward": {v1alpha1.APIKeyStatus{ExpiresAt: at(90 * day)}, day},
		"overlap first": {v1alpha1.APIKeyStatus{ExpiresAt: at(time.Hour), Previous: &v1alpha1.PreviousToken{ExpiresAt: *at(time.Minute)}}, time.Minute},
		"over":          {v1alpha1.APIKeyStatus{ExpiresAt: at(0)}, day},
		"long over":     {v1alpha1.APIKeyStatus{ExpiresAt: at(-time.Hour)}, day},
	}
	for name, tc := range cases {
		harness.Same(t, name, tc.want, untilNextChange(tc.status, now))
	}
}

func TestTokenOfAnotherKeyIsNotRecalled(t *testing.T) {
	signer := tokens.GenerateSigningKey()
	s := scopeOf(&v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Name: "ci", UID: "uid"}},
		&v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, v1alpha1.APIKeyStatus{}, time.Unix(1e9, 0))
	s.accepted = signer.Public()
	good := tokens.Claims{KeyUID: "uid", Organization: "acme", ID: "x", IssuedAt: s.Now, ExpiresAt: s.Now.Add(time.Hour)}
	cases := map[string]struct {
		reason string
		change func(*tokens.Claims)
		want   bool
	}{
		"own":                {"the key's own token", func(*tokens.Claims) {}, true},
		"other key":          {"a Secret of ours with another key's token", func(c *tokens.Claims) { c.KeyUID = "other" }, false},
		"other organization": {"or another organization's", func(c *tokens.Claims) { c.Organization = "other" }, false},
	}
	for name, tc := range cases {
		claims := good
		tc.change(&claims)
		token, err := signer.Sign(claims)
		harness.Must(t, err)
		secret := tokenSecret(s.Object)
		secret.Data = map[string][]byte{v1alpha1.APIKeyTokenKey: []byte(token)}
		harness.Same(t, name+": "+tc.reason, tc.want, recall(s, secret) != nil)
	}
}

// The cached status may be stale: a rotation based on it would keep a token that is no longer valid
// for the overlap.
func TestRotationWaitsForTheTakeOver(t *testing.T) {
	s := scopeOf(&v1alpha1.APIKey{Spec: v1alpha1.APIKeySpec{Rotation: &v1alpha1.APIKeyRotation{Serial: 2, Overlap: &metav1.Duration{Duration: time.Hour}}}},
		&v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, v1alpha1.APIKeyStatus{KeyID: "first"}, time.Unix(1e9, 0))
	found := &issued{claims: tokens.Claims{ID: "second", IssuedAt: s.Now, ExpiresAt: s.Now.Add(time.Hour)}, serial: 1, replaces: "first"}
	if o, needed := decide(s, found); needed || !rotationWaits(s, found) {
		t.Errorf("issues %+v before the second token is in the status", o)
	}
	*s.Before = statusFor(s, found)
	if o, needed := decide(s, found); !needed || o.replaces != "second" || o.serial != 2 || rotationWaits(s, found) {
		t.Errorf("issues %+v (%v), want one of serial 2 beside the second", o, needed)
	}
}

func TestOnlyTheTokenInForceStaysBesideANewOne(t *testing.T) {
	signer := tokens.GenerateSigningKey()
	s := scopeOf(&v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Name: "ci", UID: "uid"}},
		&v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, v1alpha1.APIKeyStatus{KeyID: "in-force"}, time.Unix(1e9, 0))
	s.accepted = signer.Public()
	token, err := signer.Sign(tokens.Claims{KeyUID: "uid", Organization: "acme", ID: "new", IssuedAt: s.Now, ExpiresAt: s.Now.Add(time.Hour)})
	harness.Must(t, err)
	for annotation, want := range map[string]string{"in-force": "in-force", "revoked-long-ago": "", "": ""} {
		secret := tokenSecret(s.Object)
		secret.Data = map[string][]byte{v1alpha1.APIKeyTokenKey: []byte(token)}
		secret.Annotations = map[string]string{replacesAnnotation: annotation}
		if got := recall(s, secret); got == nil || got.replaces != want {
			t.Errorf("the Secret says it replaces %q: recalled %+v, want %q to stay", annotation, got, want)
		}
	}
}

// A leaked token would stay valid while its owner takes it for replaced.
func TestARotationThatWasCarriedOutBeforeIsSaidToDoNothing(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		reason   string
		rotation *v1alpha1.APIKeyRotation
		disabled bool
		ignored  bool
	}{
		{"none is asked for", nil, false, false},
		{"the last one", &v1alpha1.APIKeyRotation{Serial: 3}, false, false},
		{"an earlier one", &v1alpha1.APIKeyRotation{Serial: 2}, false, true},
		{"an earlier one of a disabled key", &v1alpha1.APIKeyRotation{Serial: 2}, true, true},
	} {
		key := &v1alpha1.APIKey{Spec: v1alpha1.APIKeySpec{Rotation: c.rotation, Disabled: c.disabled}}
		key.Generation = 2
		key.Status = v1alpha1.APIKeyStatus{
			KeyID: "id", RotationSerial: 3, SecretRef: &v1alpha1.SecretReference{Name: "token"}, ObservedGeneration: 1,
			IssuedAt: new(v1alpha1.NewTime(now)), ExpiresAt: new(v1alpha1.NewTime(now.Add(time.Hour))),
		}
		s := scopeOf(key, &v1alpha1.Organization{}, *key.Status.DeepCopy(), now)
		s.conclude(judge(s))
		recorder := events.NewFakeRecorder(10)
		r := &Reconciler{Base: reconcile.Base{Recorder: recorder}}
		r.announce(s)
		message := v1alpha1.FindCondition(key.Status.Conditions, v1alpha1.ConditionReady).Message
		harness.Same(t, c.reason+": said in "+message, c.ignored, strings.Contains(message, "Nothing is rotated"))
		announced := ""
		if len(recorder.Events) > 0 {
			announced = <-recorder.Events
		}
		harness.Same(t, c.reason+": announced "+announced, c.ignored, strings.HasSuffix(announced, "set it to 4"))
		*s.Before = *key.Status.DeepCopy()
		r.announce(s)
		harness.Same(t, c.reason+": announced again", 0, len(recorder.Events))
	}
}
