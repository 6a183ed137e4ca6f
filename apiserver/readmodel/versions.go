package readmodel

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// tombstoneLife is how long a deleted object is remembered, so that a late answer about it
// raises no ghost. Requests and watches end long before.
const tombstoneLife = 10 * time.Minute

// version identifies a state of an object.
type version struct {
	uid types.UID
	// rv is comparable with those of the same resource only.
	rv string
}

// versions decides which of the writes to one kind of resource count. Watch events, lists and
// patch results arrive in any order, repeated or late; whatever the order, what is held is the
// newest that was seen.
//
// Resource versions of one resource are comparable across objects, so a recreated object,
// which has the same name and a new UID, is newer than every state of the one before.
type versions struct {
	live map[types.NamespacedName]version
	dead map[types.NamespacedName]tombstone
	// expiring lists the tombstones in the order of their expiry.
	expiring []expiry
	// listed is the newest version of which a whole list was seen: what is not held and not
	// newer is gone.
	listed string
}

type tombstone struct {
	version
	expires time.Time
}

type expiry struct {
	key     types.NamespacedName
	expires time.Time
}

func newVersions() *versions {
	return &versions{
		live: map[types.NamespacedName]version{},
		dead: map[types.NamespacedName]tombstone{},
	}
}

// put reports whether this state is newer than all that is known of the name, and if so takes
// it as held. The error is that of a resource version that cannot be compared.
func (v *versions) put(key types.NamespacedName, state version, now time.Time) (bool, error) {
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

// remove reports whether the object that is held under the name is gone with this deletion,
// and leaves a tombstone. A UID never lives again, so its deletion counts whatever the version; a deletion
// without a UID is that of whatever is older.
func (v *versions) remove(key types.NamespacedName, state version, now time.Time) (bool, error) {
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

// list takes note of a whole list and returns what is held, is not in it, and is not newer:
// that was deleted, and nobody told, or cannot be read any more. What is in the list must have been put before.
func (v *versions) list(names map[types.NamespacedName]struct{}, listVersion string) ([]types.NamespacedName, error) {
	var gone []types.NamespacedName
	for key, held := range v.live {
		if _, ok := names[key]; ok {
			continue
		}
		newer, err := newer(held.rv, listVersion)
		if err != nil {
			return nil, err
		}
		if !newer {
			gone = append(gone, key)
		}
	}
	newer, err := newer(listVersion, v.listed)
	if newer {
		v.listed = listVersion
	}
	return gone, err
}

func (v *versions) forgetExpired(now time.Time) {
	for len(v.expiring) > 0 && !v.expiring[0].expires.After(now) {
		first := v.expiring[0]
		v.expiring = v.expiring[1:]
		// A later tombstone of the same name has an entry of its own.
		if dead, ok := v.dead[first.key]; ok && !dead.expires.After(first.expires) {
			delete(v.dead, first.key)
		}
	}
}

// newer reports whether version a is later than version b. Anything is later than none.
func newer(a, b string) (bool, error) {
	if b == "" {
		// Compared with itself for the error alone.
		_, err := resourceversion.CompareResourceVersion(a, a)
		return err == nil, err
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order > 0, err
}
