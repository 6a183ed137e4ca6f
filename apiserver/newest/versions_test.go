package newest

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

var epoch = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// history holds the states of a few objects in an API server.
type history struct {
	// states of all names in sequence, oldest first.
	states []state
}

type state struct {
	key     types.NamespacedName
	version version
	rv      int
	deleted bool
}

// drawHistory draws creations, changes, deletions and recreations of objects.
func drawHistory(t *rapid.T) history {
	var h history
	live := map[string]types.UID{}
	rv := 5 // so that versions reach two digits, where textual and numeric order differ
	for range rapid.IntRange(1, 30).Draw(t, "writes") {
		rv += rapid.IntRange(1, 3).Draw(t, "gap")
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
		uid, exists := live[name]
		deleted := exists && rapid.IntRange(0, 2).Draw(t, "delete") == 0
		switch {
		case deleted:
			delete(live, name)
		case !exists:
			uid = types.UID(fmt.Sprintf("%s-%d", name, rv))
			live[name] = uid
		}
		h.states = append(h.states, state{
			key:     types.NamespacedName{Namespace: "ns", Name: name},
			version: version{uid: uid, rv: fmt.Sprint(rv)},
			rv:      rv, deleted: deleted,
		})
	}
	return h
}

// at returns the objects that existed at a version.
func (h history) at(rv int) map[types.NamespacedName]state {
	out := map[types.NamespacedName]state{}
	for _, s := range h.states {
		if s.rv > rv {
			break
		}
		if s.deleted {
			delete(out, s.key)
		} else {
			out[s.key] = s
		}
	}
	return out
}

// A naive reference: the newest state ever reported for a name counts. A list at a version reports for every
// name that is not in it that it does not exist as of that version.
func TestVersionsHoldTheNewestThatWasSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		known := New()
		newest := map[types.NamespacedName]state{}
		hear := func(s state) {
			if s.rv > newest[s.key].rv {
				newest[s.key] = s
			}
		}
		for range rapid.IntRange(0, 40).Draw(t, "messages") {
			if rapid.IntRange(0, 5).Draw(t, "list") == 0 {
				rv := rapid.IntRange(5, h.states[len(h.states)-1].rv).Draw(t, "list at")
				there := h.at(rv)
				deliverList(t, known, there, rv)
				for _, s := range h.states {
					if at, ok := there[s.key]; ok {
						hear(at)
					} else {
						hear(state{key: s.key, rv: rv, deleted: true})
					}
				}
			} else {
				s := rapid.SampledFrom(h.states).Draw(t, "event")
				deliver(t, known, s)
				hear(s)
			}
			for key, want := range newest {
				held, ok := known.live[key]
				if ok == want.deleted || ok && held != want.version {
					t.Fatalf("%s: holds %v (%t), newest heard is %+v", key, held, ok, want)
				}
			}
		}
	})
}

func deliver(t *rapid.T, known *Versions, s state) {
	var err error
	if s.deleted {
		_, err = known.Remove(object(s.key, s.version), epoch)
	} else {
		_, err = known.Put(object(s.key, s.version), epoch)
	}
	harness.Must(t, err)
}

func deliverList(t *rapid.T, known *Versions, there map[types.NamespacedName]state, rv int) {
	var list []metav1.Object
	for key, s := range there {
		list = append(list, object(key, s.version))
		_, err := known.PutListed(object(key, s.version), fmt.Sprint(rv), epoch)
		harness.Must(t, err)
	}
	missing, err := known.Missing(list, fmt.Sprint(rv))
	harness.Must(t, err)
	for _, gone := range missing {
		_, err := known.Remove(gone, epoch)
		harness.Must(t, err)
	}
}

func object(key types.NamespacedName, state version) metav1.Object {
	return &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: state.uid, ResourceVersion: state.rv}
}

func TestVersionsTombstones(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	cases := []struct {
		reason string
		after  time.Duration
		state  version
		want   bool
	}{
		{"a late answer of before the deletion raises no ghost", tombstoneLife - time.Second, version{"1", "8"}, false},
		{"a UID never lives again, whatever the version", tombstoneLife - time.Second, version{"1", "20"}, false},
		{"a recreated object is newer than the deletion", time.Second, version{"2", "12"}, true},
		{"another object of before the deletion is as dead", time.Second, version{"0", "9"}, false},
		{"tombstones do not pile up", tombstoneLife, version{"3", "8"}, true},
	}
	for _, c := range cases {
		known := New()
		mustNews(t, true)(known.Put(object(key, version{"1", "7"}), epoch))
		mustNews(t, true)(known.Remove(object(key, version{"1", "10"}), epoch))
		newer, err := known.Put(object(key, c.state), epoch.Add(c.after))
		if err != nil || newer != c.want {
			t.Errorf("%s: got %t, %v", c.reason, newer, err)
		}
		if c.after >= tombstoneLife && len(known.dead)+len(known.expiring) != 0 {
			t.Errorf("%s: %d tombstones are left", c.reason, len(known.dead))
		}
	}
}

// A reader that cannot read an object removes it without a UID, and restores it once it is readable again.
func TestVersionsTakeAnObjectThatWasMended(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	known := New()
	mustNews(t, true)(known.Put(object(key, version{"1", "7"}), epoch))
	mustNews(t, true)(known.Remove(object(key, version{rv: "10"}), epoch))
	mustNews(t, false)(known.Put(object(key, version{"1", "9"}), epoch))
	mustNews(t, true)(known.Put(object(key, version{"1", "11"}), epoch))
}

// A restore, or a database that lost its last writes, takes the objects back to earlier versions.
func TestAListThatContradictsWhatIsKnownWins(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	for _, c := range []struct {
		reason, at string
		want       bool
	}{
		{"the list is as late as what is held, and shows it not", "9", true},
		{"the list is later than what is held", "20", true},
		{"the list lags", "8", false},
	} {
		held, dead, absent := New(), New(), New()
		mustNews(t, true)(held.Put(object(key, version{"1", "9"}), epoch))
		mustNews(t, true)(dead.Put(object(key, version{"1", "7"}), epoch))
		mustNews(t, true)(dead.Remove(object(key, version{"1", "9"}), epoch))
		_, err := absent.Missing(nil, "9")
		harness.Must(t, err)
		for what, known := range map[string]*Versions{"held": held, "dead": dead, "absent": absent} {
			listed := object(key, version{"1", "5"})
			if newer, err := known.PutListed(listed, c.at, epoch); err != nil || newer != c.want || known.Holds(listed) != c.want {
				t.Errorf("%s, %s: got %t, %v", what, c.reason, newer, err)
			}
			mustNews(t, false)(known.PutListed(listed, c.at, epoch))
		}
	}
}

func TestVersionsRefuseWhatCannotBeCompared(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	for _, rv := range []string{"", "0", "007", "x", "-1"} {
		known := New()
		if _, err := known.Put(object(key, version{"1", rv}), epoch); err == nil {
			t.Errorf("Put took the version %q", rv)
		}
		if _, err := known.Remove(object(key, version{"1", rv}), epoch); err == nil {
			t.Errorf("Remove took the version %q", rv)
		}
		if _, err := known.Missing(nil, rv); err == nil {
			t.Errorf("Missing took the version %q", rv)
		}
	}
}

func mustNews(t *testing.T, want bool) func(bool, error) {
	t.Helper()
	return func(newer bool, err error) {
		t.Helper()
		if err != nil || newer != want {
			t.Fatalf("got %t, %v; want %t", newer, err, want)
		}
	}
}
