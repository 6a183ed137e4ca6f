package readmodel

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/apiserver/changes"
	"github.com/appsec-dev/findings-operator/apiserver/newest"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// Changes are reported in the order of their kind's watch, which is the same in all replicas. The model may learn of
// states in another order: the result of a patch may arrive before an earlier write of another object.

// reportedAs maps the watched kinds to the kinds of changes that are reported. Changes of other kinds are not
// reported.
var reportedAs = map[kind]changes.Kind{
	findings: changes.Findings, triageOperations: changes.Operations, scans: changes.Scans, reviews: changes.Reviews,
	webhookDeliveries: changes.Deliveries,
}

// noticed is a change that is reported once readers see it.
type noticed struct {
	organization string
	version      uint64
	// change is nil for a write that is not reported: it only advances the head.
	change *changes.Change
	// restart is set for a complete list at the version.
	restart bool
	// joined marks what must be joined before readers see the change; only for reviews.
	joined mark
}

// maxNoticed is how many changes may wait until the resources joined with them are rendered.
const maxNoticed = 4096

// Changes returns a reader of an organization's changes of the given kinds, after a position, or from now on if
// it is nil. The error is ErrNoOrganization.
func (m *Model) Changes(organization string, of changes.Set, after *changes.Position) (*changes.Reader, error) {
	reader := m.changes.Read(organization, of, after)
	if reader == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoOrganization, organization)
	}
	return reader, nil
}

// addEvent writes a watch event, and records its change. The caller holds the mutex.
func (m *Model) addEvent(c change) error {
	as, reported := reportedAs[c.kind]
	if !reported {
		return m.write(c)
	}
	version, err := strconv.ParseUint(c.object.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("resource version of %s: %w", c.kind, err)
	}
	key := newest.Key(c.object)
	before := m.held(c.kind, key)
	if err := m.write(c); err != nil {
		return err
	}
	n := noticed{organization: m.ownerOf(key.Namespace), version: version}
	if c.kind == reviews {
		n.joined = m.queue.endOfReviews(key.Namespace)
	}
	owed, unseen := m.clearApplied(c.kind, key, version)
	if unseen {
		before = nil
	}
	if n.organization != "" {
		n.change = changeOf(as, key.Name, version, before, m.held(c.kind, key), owed)
	}
	m.notice(as, n)
	return nil
}

// applied identifies an object whose shown state came from the result of a write or a read.
type applied struct {
	kind kind
	key  types.NamespacedName
}

// unreported is a state that the model got from a write or a read, and not from an event.
type unreported struct {
	version uint64
	// unseen means that no event has reported any state of the object.
	unseen bool
}

// clearApplied reports whether the model shows a state of the object that no event has reported yet (owed), and whether
// no event has reported the object at all (unseen). It forgets the state if the event has its version or a later one.
// An earlier event keeps the state and clears unseen: it has reported the object as new, so the event of the state
// reports a change.
func (m *Model) clearApplied(k kind, key types.NamespacedName, version uint64) (owed, unseen bool) {
	of := applied{k, key}
	noted, ok := m.applied[of]
	switch {
	case ok && version >= noted.version:
		delete(m.applied, of)
	case noted.unseen:
		m.applied[of] = unreported{version: noted.version}
	}
	return ok, noted.unseen
}

// noteApplied remembers that the model shows a state of an object that no event has reported yet: the event will change
// nothing in the model, but must be reported. before is the state that the model held.
func (m *Model) noteApplied(k kind, object metav1.Object, before reportable) {
	of := applied{k, newest.Key(object)}
	if version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64); err == nil {
		m.applied[of] = unreported{version, before == nil || m.applied[of].unseen}
	}
}

// noticeList restarts a kind with a list. States newer than the list, from results of writes and reads, are reported
// when the watch delivers them.
func (m *Model) noticeList(k kind, listVersion string) {
	if k == reviewIssues && m.synced[k] { // reviews that were reported before may only now show their counts
		version := cmp.Or(m.lastNoticed()[changes.Reviews], m.changes.Head(changes.Reviews))
		m.restart(changes.Reviews, version)
		return
	}
	as, reported := reportedAs[k]
	version, err := strconv.ParseUint(listVersion, 10, 64)
	if !reported || err != nil {
		return
	}
	maps.DeleteFunc(m.applied, func(of applied, state unreported) bool { return of.kind == k && state.version <= version })
	m.restart(as, version)
}

// restart drops the changes of a kind that are not reported yet: a reset at the version stands for them.
func (m *Model) restart(k changes.Kind, version uint64) {
	m.noticed[k] = append(m.noticed[k][:0], noticed{version: version, restart: true, joined: m.queue.end()})
}

// noticeQuiet records that a kind has no further changes up to a version.
func (m *Model) noticeQuiet(k kind, version string) {
	as, reported := reportedAs[k]
	if at, err := strconv.ParseUint(version, 10, 64); reported && err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.notice(as, noticed{version: at})
		m.signal()
	}
}

func (m *Model) notice(k changes.Kind, n noticed) {
	waiting := m.noticed[k]
	if last := len(waiting) - 1; n.change == nil && last >= 0 && waiting[last].change == nil && !waiting[last].restart {
		waiting[last].version = n.version
		return
	}
	m.noticed[k] = append(waiting, n)
}

// lastNoticed returns, for each kind, the version of the last change that is not reported yet; 0 if there is none.
func (m *Model) lastNoticed() (last changes.Position) {
	for k, waiting := range m.noticed {
		if len(waiting) > 0 {
			last[k] = waiting[len(waiting)-1].version
		}
	}
	return last
}

// reportChanges reports the changes that readers see now. The caller has just published.
func (m *Model) reportChanges() {
	for k := range changes.Kinds {
		seen := m.seen(k)
		for _, n := range m.noticed[k][:seen] {
			switch {
			case n.restart:
				m.changes.Restart(k, n.version)
			case n.change == nil:
				m.changes.Advance(k, n.version)
			default:
				m.changes.Put(n.organization, n.change)
			}
		}
		m.noticed[k] = slices.Delete(m.noticed[k], 0, seen)
	}
}

// seen returns how many of the noticed changes readers see. A review becomes visible once it is rendered with its
// issues; until then the changes of later reviews wait too, which keeps their order.
func (m *Model) seen(k changes.Kind) int {
	waiting := m.noticed[k]
	if k != changes.Reviews {
		return len(waiting)
	}
	seen, all := max(0, len(waiting)-maxNoticed+1), true
	for i := range waiting {
		// Call it even for changes behind one that waits, because it moves the marks.
		if all = m.queue.hasJoined(&waiting[i].joined) && all; all {
			seen = max(seen, i+1)
		}
	}
	return seen
}

func (m *Model) ownerOf(namespace string) string {
	if p := m.partitions[namespace]; p != nil {
		return p.organization()
	}
	return ""
}

// held returns the held state of an object whose changes are reported, nil if it is not held.
func (m *Model) held(k kind, key types.NamespacedName) reportable {
	if p := m.partitions[key.Namespace]; p != nil {
		return p.tables()[k].held(key.Name)
	}
	return nil
}

// reportable is the held state of an object whose changes are reported.
type reportable interface {
	// report fills in the ids and the status.
	report(c *changes.Change)
	// sameAs reports whether clients see both states the same.
	sameAs(other reportable) bool
}

// changeOf returns the change that a write made; nil if it is not visible. If owed is set, an invisible update
// is reported too.
func changeOf(k changes.Kind, name string, version uint64, before, after reportable, owed bool) *changes.Change {
	c := &changes.Change{Kind: k, Version: version, ID: name}
	switch {
	case before == nil && after == nil:
		return nil
	case after == nil:
		before.report(c)
		c.What, c.Status, c.UserStatus, c.UpdatedAt = changes.Removed, "", "", ""
		return c
	case before == nil:
		c.What = changes.Created
	case !owed && (before == after || before.sameAs(after)):
		return nil
	default:
		c.What = changes.Updated
	}
	after.report(c)
	return c
}

func (i *Item) report(c *changes.Change) {
	c.RepoID, c.ProjectID, c.Status, c.UserStatus, c.UpdatedAt = i.RepoID, i.ProjectID, i.Status, i.UserStatus, i.UpdatedAt
}

func (i *Item) sameAs(other reportable) bool {
	o := other.(*Item)
	if i.uid != o.uid || i.Status != o.Status || i.UserStatus != o.UserStatus || i.UpdatedAt != o.UpdatedAt {
		return false
	}
	// Compare with the same joined data, whose changes are those of another resource.
	was := Item{stored: i.stored, Shown: o.Shown}
	before, after := was.Full(), o.Full()
	return before.Len() == after.Len() && bytes.Equal(before.AppendTo(nil), after.AppendTo(nil))
}

func (i *scanItem) report(c *changes.Change) {
	c.RepoID, c.ProjectID = string(i.object.Spec.RepositoryRef.Name), string(i.object.Spec.ProjectRef.Name)
	c.Status = i.status
}

func (i *scanItem) sameAs(other reportable) bool { return bytes.Equal(i.json, other.(*scanItem).json) }

func (i *deliveryItem) report(c *changes.Change) { c.Status = i.status }

func (i *deliveryItem) sameAs(other reportable) bool {
	return bytes.Equal(i.json, other.(*deliveryItem).json)
}

func (i *operationItem) report(c *changes.Change) { c.Status = i.status }

func (i *operationItem) sameAs(other reportable) bool { return *i == *other.(*operationItem) }

func (h *heldReview) report(c *changes.Change) {
	c.RepoID, c.Status = string(h.object.Spec.RepositoryRef.Name), string(h.object.Spec.PRStatus)
	c.UpdatedAt = render.Timestamp(h.updatedAt.at)
}

// sameAs always returns false, because clients also see the review's issues, which are rendered later.
func (*heldReview) sameAs(reportable) bool { return false }
