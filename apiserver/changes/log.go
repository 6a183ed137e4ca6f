package changes

import (
	"slices"
	"sort"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// aheadAtMost is how long a reader's position may be ahead of the log. Another replica may have seen more of the
// watch, by up to the two minutes that the first bookmark takes. After that, the store has gone back to an
// earlier state.
const aheadAtMost = 150 * time.Second

// Limits bound how many changes are remembered.
type Limits struct {
	// Changes and Bytes are per organization, Total is the number of changes of all organizations.
	Changes, Bytes, Total int
}

// DefaultLimits are the usual limits of a Log: at most 1 MiB per organization, and about 16 MiB in total.
var DefaultLimits = Limits{Changes: 4096, Bytes: 1 << 20, Total: 64 << 10}

// Log remembers the last changes of each organization. Its methods may be called concurrently.
//
// Changes of one kind must be put in the order of their versions, without a gap between two restarts.
type Log struct {
	limits Limits
	clock  clock.PassiveClock

	mu sync.Mutex
	// heads are the versions up to which all changes were put, across all organizations.
	heads Position
	feeds map[string]*feed
	// total is how many changes all feeds hold.
	total int
}

// feed holds the last changes of an organization.
type feed struct {
	changes []numbered
	// next is the number of the next change. The numbers are local to this replica.
	next  uint64
	bytes int
	// base is where the feed begins: all later changes are held.
	base Position
	// resets counts, for each kind, how often it restarted with a gap.
	resets [Kinds]int
	// wake is closed by the next change; nil without waiters.
	wake   chan struct{}
	closed bool
}

// numbered is a change with its place in the feed.
type numbered struct {
	number uint64
	Change
}

// New returns an empty log.
func New(limits Limits, clock clock.PassiveClock) *Log {
	return &Log{limits: limits, clock: clock, feeds: map[string]*feed{}}
}

// Add starts to record the changes of an organization after the given versions: earlier ones may still be put, or
// skipped by Advance. Existing readers, which belong to its former namespace, end.
func (l *Log) Add(organization string, after Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(organization)
	l.feeds[organization] = &feed{base: l.heads.later(after)}
}

// Remove drops an organization. Its readers end.
func (l *Log) Remove(organization string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(organization)
}

func (l *Log) end(organization string) {
	f := l.feeds[organization]
	if f == nil {
		return
	}
	l.total -= len(f.changes)
	f.closed = true
	f.notify()
	delete(l.feeds, organization)
}

// Put records a change of an organization. For an organization that was not added, it only advances the head.
func (l *Log) Put(organization string, c *Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heads[c.Kind] = max(l.heads[c.Kind], c.Version)
	f := l.feeds[organization]
	if f == nil {
		return
	}
	f.changes = append(f.changes, numbered{f.next, *c})
	f.next++
	f.bytes += c.bytes()
	l.total++
	over := 0
	for bytes := f.bytes; len(f.changes)-over > l.limits.Changes || bytes > l.limits.Bytes; over++ {
		bytes -= f.changes[over].bytes()
	}
	l.forget(f, over)
	if l.total > l.limits.Total {
		// Drop half of the longest feed, so that this is rare and short feeds keep their changes.
		longest := f
		for _, other := range l.feeds {
			if len(other.changes) > len(longest.changes) {
				longest = other
			}
		}
		l.forget(longest, (len(longest.changes)+1)/2)
	}
	f.notify()
}

// forget drops the oldest changes of a feed, which has no room for them.
func (l *Log) forget(f *feed, n int) {
	if n == 0 {
		return
	}
	for i := range f.changes[:n] {
		c := &f.changes[i]
		f.base[c.Kind] = max(f.base[c.Kind], c.Version)
		f.bytes -= c.bytes()
	}
	clear(f.changes[:n])
	f.changes = f.changes[n:]
	l.total -= n
}

// Advance records that a kind has no further changes up to a version.
func (l *Log) Advance(k Kind, version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heads[k] = max(l.heads[k], version)
}

// Restart drops all changes of a kind: those before that version may not all have been put. Each reader of the kind
// gets one reset.
func (l *Log) Restart(k Kind, version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heads[k] = version
	for _, f := range l.feeds {
		before := len(f.changes)
		f.changes = slices.DeleteFunc(f.changes, func(c numbered) bool {
			if c.Kind == k {
				f.bytes -= c.bytes()
			}
			return c.Kind == k
		})
		l.total -= before - len(f.changes)
		f.base[k] = version
		f.resets[k]++
		f.notify()
	}
}

// Head returns the version up to which all changes of a kind were put.
func (l *Log) Head(k Kind) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heads[k]
}

// Held returns how many changes are remembered.
func (l *Log) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

func (f *feed) notify() {
	if f.wake != nil {
		close(f.wake)
		f.wake = nil
	}
}

// Read returns a reader of an organization's changes of the given kinds, after a position, or from now on if
// the position is nil. The reader begins with a reset if changes after the position may be missing, and gets one
// later if the log does not reach the position in time, which may be that of another replica. Read returns nil
// for an organization that was not added.
func (l *Log) Read(organization string, kinds Set, after *Position) *Reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.feeds[organization]
	if f == nil {
		return nil
	}
	r := &Reader{log: l, feed: f, kinds: kinds, began: l.clock.Now(), resets: f.resets}
	if after != nil && after.reaches(kinds, &f.base) { // all later changes are held
		r.at = *after
		return r
	}
	r.next, r.at, r.owed = f.next, l.heads.later(f.base), after != nil
	return r
}

// Reader reads the changes of an organization. It is not safe for concurrent use, need not be closed, and
// blocks no writer.
type Reader struct {
	log   *Log
	feed  *feed
	kinds Set
	// began is when the reader got its position, the only one that may be ahead of the log.
	began time.Time
	// next is the number of the change to be read next.
	next uint64
	at   Position
	// resets are the feed's resets that the reader has reported, or need not report. owed is set if it must report
	// another because it could not begin at the requested position.
	resets [Kinds]int
	owed   bool
}

// Batch is the result of one read.
type Batch struct {
	// Reset reports that changes before these may be missing.
	Reset   bool
	Changes []Change
	// After holds the position after each change.
	After []Position
	// At is the position after all of them.
	At Position
	// Ended reports that no more changes will follow: the organization is gone, or the reader was so slow that
	// changes of its kinds that it had not read were dropped.
	Ended bool
	// Wake is closed once there are more changes; nil if there may be more already.
	Wake <-chan struct{}
}

// Next returns the changes since the last call, at most that many.
func (r *Reader) Next(most int) Batch {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	f := r.feed
	if f.closed {
		return Batch{Ended: true, At: r.at}
	}
	var b Batch
	b.Reset = r.reset()
	if !r.at.reaches(r.kinds, &f.base) {
		return Batch{Ended: true, At: r.at}
	}
	from := sort.Search(len(f.changes), func(i int) bool { return f.changes[i].number >= r.next })
	for i := from; i < len(f.changes) && len(b.Changes) < most; i++ {
		c := &f.changes[i].Change
		r.next = f.changes[i].number + 1
		if !r.kinds.Has(c.Kind) || c.Version <= r.at[c.Kind] {
			continue
		}
		r.at[c.Kind] = c.Version
		b.Changes, b.After = append(b.Changes, *c), append(b.After, r.at)
	}
	if last := len(f.changes) - 1; last < 0 || f.changes[last].number < r.next {
		r.at = r.at.later(r.log.heads)
		if f.wake == nil {
			f.wake = make(chan struct{})
		}
		b.Wake = f.wake
	}
	b.At = r.at
	return b
}

// reset moves a reader that may have missed changes of its kinds, and reports whether it is one.
func (r *Reader) reset() bool {
	f, gap := r.feed, r.owed
	for k := range Kinds {
		if r.resets[k] != f.resets[k] {
			// The held changes of the kind came after its restart. Its version may be lower than earlier ones if the
			// cluster was restored.
			r.at[k] = f.base[k]
			gap = gap || r.kinds.Has(k)
		}
	}
	r.owed, r.resets = false, f.resets
	if r.isLost() {
		r.next, r.at, gap = f.next, r.log.heads, true
	}
	if gap { // the reset also stands for the changes that were dropped
		r.at = r.at.later(f.base)
	}
	return gap
}

// isLost reports whether the store no longer has the state of the reader's position: the client would seem to have seen
// changes up to that version. The feed may begin ahead of the heads.
func (r *Reader) isLost() bool {
	known := r.log.heads.later(r.feed.base)
	return !known.reaches(r.kinds, &r.at) && r.log.clock.Since(r.began) > aheadAtMost
}

// reaches reports whether the position is at or after another one in all of the kinds.
func (p *Position) reaches(kinds Set, other *Position) bool {
	for k := range Kinds {
		if kinds.Has(k) && p[k] < other[k] {
			return false
		}
	}
	return true
}

func (p Position) later(other Position) Position {
	for k := range p {
		p[k] = max(p[k], other[k])
	}
	return p
}
