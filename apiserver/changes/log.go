package changes

import "sync"

// Limits bound what is remembered.
type Limits struct {
	// Changes and Bytes of one organization, and Total changes of all.
	Changes, Bytes, Total int
}

// DefaultLimits are those of a Log: an organization's changes take at most 1 MiB, and those of all some 16 MiB.
var DefaultLimits = Limits{Changes: 4096, Bytes: 1 << 20, Total: 64 << 10}

// Log remembers the last changes of each organization. Its methods may be called concurrently.
//
// Changes of one kind are put in the order of their versions, without a gap between two restarts.
type Log struct {
	limits Limits

	mu sync.Mutex
	// heads are the versions up to which all changes were put, of whichever organization.
	heads Position
	feeds map[string]*feed
	// total is how many changes all feeds hold.
	total int
}

// feed holds the last changes of an organization.
type feed struct {
	changes []Change
	// first is the number of the oldest change that is held; numbers are this replica's own.
	first uint64
	bytes int
	// base is where the feed begins: all later changes are held.
	base Position
	// resets counts how often the feed began anew with a gap.
	resets int
	// wake is closed with the next change; nil while nobody waits.
	wake   chan struct{}
	closed bool
}

// New returns an empty log.
func New(limits Limits) *Log {
	return &Log{limits: limits, feeds: map[string]*feed{}}
}

// Own begins to remember the changes of an organization, from now on. Readers of the organization's former namespace
// end.
func (l *Log) Own(organization string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(organization)
	l.feeds[organization] = &feed{base: l.heads}
}

// Disown forgets an organization. Its readers end.
func (l *Log) Disown(organization string) {
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
	f.tell()
	delete(l.feeds, organization)
}

// Put remembers a change of an organization. The change of an organization that is not owned moves the head alone.
func (l *Log) Put(organization string, c *Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heads[c.Kind] = max(l.heads[c.Kind], c.Version)
	f := l.feeds[organization]
	if f == nil {
		return
	}
	f.changes = append(f.changes, *c)
	f.bytes += c.bytes()
	l.total++
	over := 0
	for bytes := f.bytes; len(f.changes)-over > l.limits.Changes || bytes > l.limits.Bytes; over++ {
		bytes -= f.changes[over].bytes()
	}
	l.forget(f, over)
	if l.total > l.limits.Total {
		// Half of the longest: so this is rare, and what is short stays.
		longest := f
		for _, other := range l.feeds {
			if len(other.changes) > len(longest.changes) {
				longest = other
			}
		}
		l.forget(longest, (len(longest.changes)+1)/2)
	}
	f.tell()
}

// forget drops the oldest changes of a feed.
func (l *Log) forget(f *feed, n int) {
	for i := range f.changes[:n] {
		c := &f.changes[i]
		f.base[c.Kind] = c.Version
		f.bytes -= c.bytes()
	}
	clear(f.changes[:n])
	f.changes = f.changes[n:]
	f.first += uint64(n) //nolint:gosec // a length
	l.total -= n
}

// Advance notes that nothing was written to a kind since the last change, up to a version.
func (l *Log) Advance(k Kind, version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heads[k] = max(l.heads[k], version)
}

// Restart begins anew: what was written to a kind before that version may not all have been put. Whoever reads gets
// one reset.
func (l *Log) Restart(k Kind, version uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heads[k] = version
	for _, f := range l.feeds {
		l.forget(f, len(f.changes))
		f.base = l.heads
		f.resets++
		f.tell()
	}
}

// Held returns how many changes are remembered.
func (l *Log) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

func (f *feed) tell() {
	if f.wake != nil {
		close(f.wake)
		f.wake = nil
	}
}

// Read returns a reader of the changes of those kinds of an organization, after a position, or from now on where that
// is nil. Where it is not sure that all of them are held the reader begins with a reset. It returns nil for an
// organization that is not owned.
func (l *Log) Read(organization string, kinds Set, after *Position) *Reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.feeds[organization]
	if f == nil {
		return nil
	}
	r := &Reader{log: l, feed: f, kinds: kinds, resets: f.resets}
	if after != nil && f.reaches(kinds, after) {
		r.next, r.at = f.first, *after
		return r
	}
	r.next, r.at, r.owed = f.first+uint64(len(f.changes)), l.heads, after != nil
	return r
}

// reaches reports whether all changes of the kinds after a position are held.
func (f *feed) reaches(kinds Set, after *Position) bool {
	for k := range Kinds {
		if kinds.Has(k) && after[k] < f.base[k] {
			return false
		}
	}
	return true
}

// Reader reads the changes of an organization. It is not safe for concurrent use, needs no end, and holds up nobody.
type Reader struct {
	log   *Log
	feed  *feed
	kinds Set
	// next is the number of the change to be read next.
	next uint64
	at   Position
	// resets is how many of the feed the reader has been told of. It is owed another where it could not begin where
	// it asked.
	resets int
	owed   bool
}

// Batch is what a reader is told at once.
type Batch struct {
	// Reset says that changes before these may be missing.
	Reset   bool
	Changes []Change
	// After holds the position after each change.
	After []Position
	// At is the position after all of them.
	At Position
	// Ended says that there will be no more: the organization is gone, or the reader was so slow that what it has not
	// read was forgotten.
	Ended bool
	// Wake is closed once there is more; nil where there may be already.
	Wake <-chan struct{}
}

// Next returns what has changed since the last call, at most that many changes.
func (r *Reader) Next(most int) Batch {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	f := r.feed
	if f.closed {
		return Batch{Ended: true, At: r.at}
	}
	var b Batch
	if r.resets != f.resets {
		// What is held came after the restart, whose version may be lower than one before: a cluster that was
		// restored.
		b.Reset, r.resets, r.next, r.at = true, f.resets, f.first, f.base
	}
	if r.owed {
		b.Reset, r.owed = true, false
	}
	if r.next < f.first {
		return Batch{Ended: true, At: r.at}
	}
	for int(r.next-f.first) < len(f.changes) && len(b.Changes) < most { //nolint:gosec // at most a length
		c := &f.changes[r.next-f.first]
		r.next++
		if !r.kinds.Has(c.Kind) || c.Version <= r.at[c.Kind] {
			continue
		}
		r.at[c.Kind] = c.Version
		b.Changes, b.After = append(b.Changes, *c), append(b.After, r.at)
	}
	if int(r.next-f.first) == len(f.changes) { //nolint:gosec // at most a length
		r.at = r.at.later(r.log.heads)
		if f.wake == nil {
			f.wake = make(chan struct{})
		}
		b.Wake = f.wake
	}
	b.At = r.at
	return b
}

func (p Position) later(other Position) Position {
	for k := range p {
		p[k] = max(p[k], other[k])
	}
	return p
}
