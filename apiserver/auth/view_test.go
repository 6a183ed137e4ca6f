package auth

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func organization(uid string, version int, namespace string) *v1alpha1.Organization {
	return &v1alpha1.Organization{
		ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), ResourceVersion: strconv.Itoa(version)},
		Status:     v1alpha1.OrganizationStatus{Namespace: namespace},
	}
}

func newTestView() *view[*v1alpha1.Organization] {
	return newView(func(o *v1alpha1.Organization) string { return o.Status.Namespace }, nil, nil)
}

func list(objects ...*v1alpha1.Organization) []any {
	out := make([]any, len(objects))
	for i := range objects {
		out[i] = objects[i]
	}
	return out
}

// A list that should show a write and does not proves that it was lost, as by a restore.
func TestViewGoesBackToAListThatProvesALoss(t *testing.T) {
	for name, lost := range map[string]func(v *view[*v1alpha1.Organization]) error{
		"change":   func(v *view[*v1alpha1.Organization]) error { return v.Update(organization("a", 9, "")) },
		"deletion": func(v *view[*v1alpha1.Organization]) error { return v.Delete(organization("a", 9, "")) },
	} {
		v := newTestView()
		harness.Must(t, lost(v))
		harness.Must(t, v.Replace(list(organization("a", 5, "")), "10"))
		if o, ok := v.get("a"); !ok || o.ResourceVersion != "5" {
			t.Errorf("after a %s that was lost: %v", name, o)
		}
	}
}

// Every replica holds all keys, and their metadata may be larger than the rest of them.
func TestViewKeepsNoMetadataThatNobodyReads(t *testing.T) {
	heavy := func(version int) *v1alpha1.Organization {
		o := organization("a", version, "")
		o.Labels, o.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		return o
	}
	v := newTestView()
	expectLight := func(by string, err error) {
		t.Helper()
		o, ok := v.get("a")
		if err != nil || !ok || o.Labels != nil || o.Annotations != nil || o.ManagedFields != nil {
			t.Errorf("by %s: holds %+v, %v", by, o, err)
		}
	}
	expectLight("a watch", v.Update(heavy(1)))
	expectLight("a list", v.Replace(list(heavy(2)), "3"))
}

func TestViewFindsByTheKeyOfNow(t *testing.T) {
	v := newTestView()
	_ = v.Update(organization("a", 1, "org-a"))
	_ = v.Update(organization("a", 2, ""))
	if o, ok := v.find("org-a"); ok {
		t.Errorf("found %s by a key that it no longer has", o.UID)
	}
	if _, ok := v.find(""); ok {
		t.Error("found something by no key")
	}
	// An object was deleted and created again, and the deletion is seen last.
	_ = v.Update(organization("a", 3, "org-a"))
	_ = v.Update(organization("b", 5, "org-a"))
	_ = v.Delete(organization("a", 4, "org-a"))
	if o, ok := v.find("org-a"); !ok || o.UID != "b" {
		t.Errorf("found %v, want b", o)
	}
}

// TestViewNeverGoesBack feeds the history of a few objects to a view as a lagging watch and lagging lists
// would: each in its own order, mixed at random, with relists.
func TestViewNeverGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type change struct {
			object *v1alpha1.Organization
			gone   bool
		}
		var history []change
		states := []map[types.UID]*v1alpha1.Organization{{}} // by version
		const uids = 4
		born, dead := [uids]bool{}, [uids]bool{}
		for version := 1; version <= rapid.IntRange(1, 30).Draw(t, "changes"); version++ {
			now := maps.Clone(states[version-1])
			i := rapid.IntRange(0, uids-1).Draw(t, "object")
			uid := fmt.Sprint("o", i)
			o := organization(uid, version, rapid.SampledFrom([]string{"", "org-x", "org-y"}).Draw(t, "namespace"))
			gone := born[i] && !dead[i] && rapid.Bool().Draw(t, "delete")
			switch {
			case dead[i]: // nothing happens at this version
			case gone:
				dead[i] = true
				delete(now, o.UID)
				history = append(history, change{o, true})
			default:
				born[i] = true
				now[o.UID] = o
				history = append(history, change{o, false})
			}
			states = append(states, now)
		}
		v := newTestView()
		seen, buried := map[types.UID]int{}, map[types.UID]bool{}
		check := func() {
			for uid := range buried {
				if _, ok := v.get(uid); ok {
					t.Fatalf("%s is back from the dead", uid)
				}
			}
			for i := range uids {
				uid := types.UID(fmt.Sprint("o", i))
				o, ok := v.get(uid)
				if !ok {
					if seen[uid] > 0 {
						buried[uid] = true
					}
					continue
				}
				version, _ := strconv.Atoi(o.ResourceVersion)
				if version < seen[uid] {
					t.Fatalf("%s went back from %d to %d", uid, seen[uid], version)
				}
				seen[uid] = version
			}
		}
		relist := func(version int) {
			var objects []any
			for _, o := range states[version] {
				objects = append(objects, o)
			}
			// An empty history has version 0, which no API server sends.
			_ = v.Replace(objects, strconv.Itoa(max(version, 1)))
		}
		event := 0
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "list") {
				relist(rapid.IntRange(1, len(states)-1).Draw(t, "version"))
			} else if event < len(history) {
				if c := history[event]; c.gone {
					_ = v.Delete(c.object)
				} else {
					_ = v.Update(c.object)
				}
				event++
			}
			check()
		}
		last := len(states) - 1
		relist(last)
		check()
		if len(v.objects) != len(states[last]) {
			t.Fatalf("holds %d objects after the last list, want %d", len(v.objects), len(states[last]))
		}
		for uid, want := range states[last] {
			if got, ok := v.get(uid); !ok || got.ResourceVersion != want.ResourceVersion {
				t.Fatalf("holds %v of %s, want version %s", got, uid, want.ResourceVersion)
			}
		}
	})
}

func TestSignaturesAreRememberedWithinBoundsAndOnlyGoodOnes(t *testing.T) {
	key := tokens.GenerateSigningKey()
	other := tokens.GenerateSigningKey()
	s := newSignatures(8)
	claims := func(i int) tokens.Claims {
		return tokens.Claims{KeyUID: "uid", Organization: "acme", ID: fmt.Sprint(i), IssuedAt: time.Unix(1, 0), ExpiresAt: time.Unix(2, 0)}
	}
	for i := range 100 {
		forged, err := other.Sign(claims(i))
		harness.Must(t, err)
		if _, err := s.verify(key.Public(), forged); ReasonOf(err) != ReasonUnknownKey {
			t.Fatalf("got %v for a foreign token", err)
		}
	}
	harness.Same(t, "bad tokens that are remembered", 0, s.good.Len())
	for round := range 2 {
		for i := range 100 {
			token, err := key.Sign(claims(i))
			harness.Must(t, err)
			got, err := s.verify(key.Public(), token)
			if err != nil || got.ID != fmt.Sprint(i) {
				t.Fatalf("round %d: token %d says %v (%v)", round, i, got, err)
			}
		}
	}
	harness.Same(t, "tokens that are remembered", 8, s.good.Len())
}

func TestNotingAUseNeverWaits(t *testing.T) {
	u := newUsage()
	now := time.Now()
	for i := range 10 * usageQueue { // nobody works off the queue
		u.note(&v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}}, now)
	}
	if len(u.queue) != usageQueue || len(u.queued.at) != usageQueue {
		t.Errorf("queued %d and noted %d, want %d: what was dropped must be noted later", len(u.queue), len(u.queued.at), usageQueue)
	}
	u.note(&v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{UID: "next"}}, now.Add(2*usageInterval))
	harness.Same(t, "old notes that are kept", 0, len(u.queued.at))
}

// Every event stream asks anew whether its key is valid when the bell rings. Each use of a key and each import changes a
// status.
func TestOnlyWhatDecidesAboutRequestsWakesTheStreams(t *testing.T) {
	later := new(v1alpha1.NewTime(time.Unix(1e9, 0)))
	conditions := []v1alpha1.Condition{{Type: v1alpha1.ConditionReady}}
	a, err := New(Options{Config: &rest.Config{}, Namespace: "findings-system"})
	harness.Must(t, err)
	key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: "org-a", Name: "k", UID: "k", ResourceVersion: "1"}}
	owner := organization("a", 1, "org-a")
	harness.Must(t, a.keys.Add(key))
	harness.Must(t, a.organizations.Add(owner))
	version := 1
	for _, c := range []struct {
		reason string
		key    func(*v1alpha1.APIKey)
		owner  func(*v1alpha1.Organization)
		want   bool
	}{
		{"a key was used", func(k *v1alpha1.APIKey) { k.Status.LastUsedAt = later }, nil, false},
		{"a key has another condition", func(k *v1alpha1.APIKey) { k.Status.Conditions = conditions }, nil, false},
		{"a key is disabled", func(k *v1alpha1.APIKey) { k.Spec.Disabled = true }, nil, true},
		{"a key has another token", func(k *v1alpha1.APIKey) { k.Status.KeyID = "another" }, nil, true},
		{"a key was deleted and created again", func(k *v1alpha1.APIKey) { k.UID = "another" }, nil, true},
		{"findings were counted", nil, func(o *v1alpha1.Organization) { o.Status.Counts.Findings = 7 }, false},
		{"an organization has another condition", nil, func(o *v1alpha1.Organization) { o.Status.Conditions = conditions }, false},
		{"an organization has another namespace", nil, func(o *v1alpha1.Organization) { o.Status.Namespace = "org-b" }, true},
		{"an organization has another limit", nil, func(o *v1alpha1.Organization) { o.Spec.RateLimit = &v1alpha1.RateLimit{} }, true},
	} {
		version++
		changed := a.Changed()
		if c.key != nil {
			key = key.DeepCopy()
			key.ResourceVersion = strconv.Itoa(version)
			c.key(key)
			harness.Must(t, a.keys.Update(key))
		} else {
			owner = owner.DeepCopy()
			owner.ResourceVersion = strconv.Itoa(version)
			c.owner(owner)
			harness.Must(t, a.organizations.Update(owner))
		}
		rang := false
		select {
		case <-changed:
			rang = true
		default:
		}
		harness.Same(t, c.reason, c.want, rang)
	}
}
