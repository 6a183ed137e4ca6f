package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAKeyThatHasExpiredGetsANewToken(t *testing.T) {
	now := time.Now()
	past, future := new(v1alpha1.NewTime(now)), new(v1alpha1.NewTime(now.Add(time.Hour)))
	overlap := &metav1.Duration{Duration: time.Hour}
	for _, c := range []struct {
		reason string
		spec   *v1alpha1.APIKeyRotation
		status v1alpha1.APIKeyStatus
		want   *v1alpha1.APIKeyRotation
	}{
		{"a new key", nil, v1alpha1.APIKeyStatus{}, nil},
		{"a key that works", nil, v1alpha1.APIKeyStatus{ExpiresAt: future}, nil},
		{"a key that was never rotated", nil, v1alpha1.APIKeyStatus{ExpiresAt: past}, &v1alpha1.APIKeyRotation{Serial: 1}},
		{"a key that a person has rotated", &v1alpha1.APIKeyRotation{Serial: 7, Overlap: overlap},
			v1alpha1.APIKeyStatus{ExpiresAt: past, RotationSerial: 7}, &v1alpha1.APIKeyRotation{Serial: 8, Overlap: overlap}},
		{"a serial that a person has removed", nil, v1alpha1.APIKeyStatus{ExpiresAt: past, RotationSerial: 7},
			&v1alpha1.APIKeyRotation{Serial: 8}},
	} {
		key := &v1alpha1.APIKey{Spec: v1alpha1.APIKeySpec{Rotation: c.spec}, Status: c.status}
		harness.Same(t, c.reason+": renewed", c.spec != c.want, renew(key, now))
		harness.Same(t, c.reason, c.want, key.Spec.Rotation)
	}
}

func TestTheWaitEndsOnceNothingChangesByItself(t *testing.T) {
	condition := func(of string, status metav1.ConditionStatus, generation int64) v1alpha1.Condition {
		return v1alpha1.Condition{Type: of, Status: status, ObservedGeneration: generation, Message: "Do this."}
	}
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, 2)
	waiting := condition(v1alpha1.ConditionReady, metav1.ConditionFalse, 2)
	stalled := condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, 2)
	for _, c := range []struct {
		reason     string
		deleted    bool
		conditions []v1alpha1.Condition
		ready      bool
		err        string
	}{
		{reason: "no status yet"},
		{reason: "ready", conditions: []v1alpha1.Condition{ready}, ready: true},
		{reason: "not ready yet", conditions: []v1alpha1.Condition{waiting}},
		{reason: "stalled", conditions: []v1alpha1.Condition{waiting, stalled}, err: "Do this. Start with SAMPLES=false"},
		{reason: "stalled before the last change", conditions: []v1alpha1.Condition{
			condition(v1alpha1.ConditionReady, metav1.ConditionFalse, 1), condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, 1),
		}},
		{reason: "being deleted", deleted: true, conditions: []v1alpha1.Condition{ready}, err: "being deleted: complete that. Do this. Start"},
		{reason: "being deleted, without a status", deleted: true, err: "being deleted"},
	} {
		organization := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		if c.deleted {
			organization.DeletionTimestamp = new(metav1.Now())
		}
		got, err := isReady(organization, c.conditions)
		if got != c.ready || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: ready %t, error %v; want %t, %q", c.reason, got, err, c.ready, c.err)
		}
	}
}

func TestAWaitInVainEndsWithWhatTheObjectWaitsFor(t *testing.T) {
	organization := builder.Organization("sample").Build()
	organization.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: "A quota is in the way."}}
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(organization).Build()
	ctx, end := context.WithCancel(t.Context())
	end()
	err := waitForReady(ctx, newRunFolder(t), c, organization, &organization.Status.Conditions)
	harness.ErrorContains(t, "the wait", err, "A quota is in the way.")
}

func TestTheSamplesOfAnEarlierRunAreUsedAsTheyAre(t *testing.T) {
	key := func(change func(*v1alpha1.APIKey)) *v1alpha1.APIKey {
		key := &v1alpha1.APIKey{
			ObjectMeta: metav1.ObjectMeta{Namespace: sampleNamespace, Name: sampleAPIKey, Generation: 2},
			Status: v1alpha1.APIKeyStatus{
				Conditions: []v1alpha1.Condition{{
					Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2, Message: "It is in a Secret.",
				}},
				ExpiresAt: new(v1alpha1.NewTime(time.Now().Add(time.Hour))),
				SecretRef: &v1alpha1.SecretReference{Name: "token"},
			},
		}
		change(key)
		return key
	}
	works := func(*v1alpha1.APIKey) {}
	waits := func(key *v1alpha1.APIKey) {
		key.Status.Conditions[0].Status, key.Status.Conditions[0].Message = metav1.ConditionFalse, "A quota is in the way."
	}
	disabled := func(key *v1alpha1.APIKey) { key.Spec.Disabled = true }
	expired := func(key *v1alpha1.APIKey) { key.Status.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(-time.Minute))) }
	changed := func(key *v1alpha1.APIKey) { key.Status.Conditions[0].ObservedGeneration = 1 }
	deleted := func(key *v1alpha1.APIKey) {
		key.DeletionTimestamp, key.Finalizers = new(metav1.Now()), []string{"example.com/keep"}
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: sampleNamespace, Name: "token"},
		Data:       map[string][]byte{v1alpha1.APIKeyTokenKey: []byte("token")},
	}
	unobserved := &samples{unready: "Its controller has not observed it yet."}
	for reason, c := range map[string]struct {
		stored []client.Object
		want   *samples
	}{
		"no key":                       {},
		"a key that works":             {[]client.Object{key(works), secret}, &samples{token: "token"}},
		"a key that is not ready":      {[]client.Object{key(waits), secret}, &samples{unready: "A quota is in the way."}},
		"a key that is disabled":       {[]client.Object{key(disabled), secret}, &samples{}},
		"a key that has expired since": {[]client.Object{key(expired), secret}, unobserved},
		"a key that was changed since": {[]client.Object{key(changed), secret}, unobserved},
		"a key that is being deleted":  {[]client.Object{key(deleted), secret}, &samples{unready: "It is being deleted."}},
		"a key without its Secret":     {[]client.Object{key(works)}, &samples{unready: "Its Secret does not exist."}},
	} {
		store := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(c.stored...).Build()
		got, err := earlierSamples(t.Context(), store, 0)
		harness.NoError(t, reason, err)
		harness.Same(t, reason, fmt.Sprintf("%+v", c.want), fmt.Sprintf("%+v", got))
	}
	stored := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(key(works), secret).Build()
	early := true
	c := interceptor.NewClient(stored, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch,
		name client.ObjectKey, object client.Object, options ...client.GetOption) error {
		err := c.Get(ctx, name, object, options...)
		if key, ok := object.(*v1alpha1.APIKey); ok && early {
			changed(key)
			early = false
		}
		return err
	}})
	got, err := earlierSamples(t.Context(), c, settleTimeout)
	harness.NoError(t, "a key that its controller observes later", err)
	harness.Same(t, "a key that its controller observes later", "token", got.key())
}

func TestADisabledKeyIsSaidToBeAndHowToEnableIt(t *testing.T) {
	o := newRunFolder(t)
	for _, c := range []struct {
		made *samples
		want string
	}{
		{nil, "There is no sample organization with an API key."},
		{&samples{unready: "It has expired."}, "The sample's API key is not ready: It has expired."},
		{&samples{}, `kubectl patch apikey sample --namespace "$FINDINGS_NAMESPACE"`},
		{&samples{token: "secret"}, "Authorization: Bearer secret"},
	} {
		harness.Contains(t, "how to call", howToCall(o, "http://127.0.0.1:8080", c.made, time.Second), c.want)
	}
}
