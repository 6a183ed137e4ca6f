// Package newest decides which of several states of an object is the newest, in whatever order they arrive.
package newest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// tombstoneLife is how long a deletion is remembered, so that a late event or response cannot bring the object
// back. Requests and watches end long before that.
const tombstoneLife = 10 * time.Minute

// Versions decides which writes to one kind of resource to apply. Watch events, lists and patch results may
// arrive in any order, repeated or late; the newest state seen is the one held,
// unless a list proves that it was lost: see PutListed.
//
// Resource versions of one resource are comparable across objects, so a recreated object, which has the same
// name and a new UID, is newer than every state of its predecessor.
//
// Its methods return an error for a resource version that cannot be compared. It is not safe for concurrent
// use.
type Versions struct {
	live map[types.NamespacedName]version
	dead map[types.NamespacedName]tombstone
	// expiring lists the tombstones in the order of their expiry.
	expiring []expiry
	// listed is the version of the newest complete list: an object that is neither held nor newer does not exist.
	listed string
}

// version identifies a state of an object.
type version struct {
	uid types.UID
	// rv is comparable only with versions of the same resource.
	rv string
}

type tombstone struct {
	version
	expires time.Time
}

type expiry struct {
	key     types.NamespacedName
	expires time.Time
}

// New returns Versions that hold nothing.
func New() *Versions {
	return &Versions{
		live: map[types.NamespacedName]version{},
		dead: map[types.NamespacedName]tombstone{},
	}
}

// Key returns the key that an object is held under.
func Key(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func versionOf(object metav1.Object) version {
	return version{uid: object.GetUID(), rv: object.GetResourceVersion()}
}

// Len returns how many objects are held.
func (v *Versions) Len() int { return len(v.live) }

// Holds reports whether exactly this state of the object is held.
func (v *Versions) Holds(object metav1.Object) bool {
	held, ok := v.live[Key(object)]
	return ok && held == versionOf(object)
}

// Put reports whether this state is newer than every known state under its name, and if so holds it.
func (v *Versions) Put(object metav1.Object, now time.Time) (bool, error) {
	key, state := Key(object), versionOf(object)
	v.forgetExpired(now)
	if dead, ok := v.dead[key]; ok {
		newer, err := newer(state.rv, dead.rv)
		if err != nil || !newer || state.uid == dead.uid {
			return false, err
		}
	}
	known := v.listed
	if held, ok := v.live[key]; ok {
		known = held.rv
	}
	newer, err := newer(state.rv, known)
	if err != nil || !newer {
		return false, err
	}
	delete(v.dead, key)
	v.live[key] = state
	return true, nil
}

// PutListed is Put for an object of a complete list. A list shows every write up to its version. So a known state with
// a version up to the list's that is newer than the listed one no longer exists, as after a restore: the listed state
// replaces it.
func (v *Versions) PutListed(object metav1.Object, listVersion string, now time.Time) (bool, error) {
	isNewer, err := v.Put(object, now)
	if err != nil || isNewer || v.Holds(object) {
		return isNewer, err
	}
	key := Key(object)
	for _, known := range []string{v.listed, v.live[key].rv, v.dead[key].rv} {
		if known == "" {
			continue
		}
		if later, err := newer(known, listVersion); err != nil || later {
			return false, err
		}
	}
	delete(v.dead, key)
	v.live[key] = versionOf(object)
	return true, nil
}

// Remove reports whether this deletion removes the object held under its name, and leaves a tombstone. A UID is
// never reused, so a deletion with the UID of the held object applies whatever its version. A deletion without
// a UID, of an unreadable object, removes only older states.
func (v *Versions) Remove(object metav1.Object, now time.Time) (bool, error) {
	key, state := Key(object), versionOf(object)
	v.forgetExpired(now)
	held, live := v.live[key]
	known := held
	if !live {
		known = v.dead[key].version
	}
	newer, err := newer(state.rv, known.rv)
	if err != nil {
		return false, err
	}
	if !newer {
		if !live || held.uid != state.uid {
			return false, nil
		}
		state.rv = held.rv
	}
	delete(v.live, key)
	expires := now.Add(tombstoneLife)
	v.dead[key] = tombstone{version: state, expires: expires}
	v.expiring = append(v.expiring, expiry{key: key, expires: expires})
	return live, nil
}

// Missing records a complete list, whose objects must have been put before by PutListed. It returns deletions, to
// be passed to Remove, of the held objects that are not in the list and not newer than it: their deletion was not
// reported, or they are no longer readable. The deletions have no UID, because an unreadable object may become
// readable again.
func (v *Versions) Missing(list []metav1.Object, listVersion string) ([]metav1.Object, error) {
	listed := make(map[types.NamespacedName]struct{}, len(list))
	for _, object := range list {
		listed[Key(object)] = struct{}{}
	}
	var missing []metav1.Object
	for key, held := range v.live {
		if _, ok := listed[key]; ok {
			continue
		}
		newer, err := newer(held.rv, listVersion)
		if err != nil {
			return nil, err
		}
		if !newer {
			missing = append(missing,
				&metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: listVersion})
		}
	}
	newer, err := newer(listVersion, v.listed)
	if newer {
		v.listed = listVersion
	}
	return missing, err
}

func (v *Versions) forgetExpired(now time.Time) {
	for len(v.expiring) > 0 && !v.expiring[0].expires.After(now) {
		first := v.expiring[0]
		v.expiring = v.expiring[1:]
		// A later tombstone of the same name has its own entry.
		if dead, ok := v.dead[first.key]; ok && !dead.expires.After(first.expires) {
			delete(v.dead, first.key)
		}
	}
}

// newer reports whether version a is later than version b. Every version is later than "".
func newer(a, b string) (bool, error) {
	if b == "" {
		// Compared with itself only to get the error.
		_, err := resourceversion.CompareResourceVersion(a, a)
		return err == nil, err
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order > 0, err
}
