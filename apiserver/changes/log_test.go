package changes

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// world is a cluster whose writes reach each replica with a different delay.
type world struct {
	*rapid.T
	// written holds all changes of each kind in order. The id contains the organization.
	written  [Kinds][]Change
	version  uint64
	replicas []*replica
}

// replica gets the changes of each kind in order.
type replica struct {
	log *Log
	// received is how many changes of each kind it got.
	received [Kinds]int
}

const acme = "acme"

// standing is a clock that stands still.
var standing = clocktesting.NewFakePassiveClock(time.Time{})

var allKinds = Set(1<<Kinds - 1)

func newReplica(w *world) *replica {
	r := &replica{log: New(Limits{Changes: 4, Bytes: 1 << 20, Total: 6}, standing)}
	r.log.Add(acme, Position{})
	r.list(w)
	return r
}

// list restarts with the current state.
func (r *replica) list(w *world) {
	for k := range Kinds {
		r.listKind(w, k)
	}
}

func (r *replica) listKind(w *world, k Kind) {
	r.received[k] = len(w.written[k])
	r.log.Restart(k, w.version)
}

// receive applies the next change of a kind.
func (r *replica) receive(w *world, k Kind) {
	if r.received[k] == len(w.written[k]) {
		r.log.Advance(k, w.version)
		return
	}
	c := w.written[k][r.received[k]]
	r.received[k]++
	r.log.Put(c.ID, &c)
}

// watcher is a client that is disconnected and resumes.
type watcher struct {
	kinds  Set
	reader *Reader
	// at is the last id that it got; known is set if it has one.
	at    Position
	known bool
	// sent counts the changes of each kind since the last reset, by version. from is the position of that
	// reset.
	sent map[Kind]map[uint64]int
	from Position
	last Position
}

func (c *watcher) connect(w *world, r *replica) {
	var after *Position
	if c.known {
		at := c.at
		after = &at
	}
	if c.reader = r.log.Read(acme, c.kinds, after); c.reader == nil {
		w.Fatal("the log has no such organization")
	}
}

// read reads the available changes, or a part of them, and may be disconnected in the middle.
func (c *watcher) read(w *world, most, cut int) {
	b := c.reader.Next(most)
	if b.Ended {
		c.reader = nil
		return
	}
	if b.Reset || !c.known {
		c.sent = map[Kind]map[uint64]int{}
		for k := range Kinds {
			c.sent[k] = map[uint64]int{}
		}
		c.from = b.At
		if len(b.After) > 0 {
			c.from = b.After[0]
			c.from[b.Changes[0].Kind] = b.Changes[0].Version - 1
		}
		c.last = c.from
	}
	for i, change := range b.Changes {
		if i >= cut {
			c.reader = nil
			c.at, c.known = c.last, true
			return
		}
		c.sent[change.Kind][change.Version]++
		if change.Version <= c.last[change.Kind] {
			w.Fatalf("%s %d came after %d", change.Kind, change.Version, c.last[change.Kind])
		}
		c.last = b.After[i]
		c.at, c.known = c.last, true
	}
	c.last, c.at, c.known = b.At, b.At, true
}

// Regardless of what is written, when replicas see it and where clients are disconnected: each client gets each
// change exactly once, or one reset.
func TestEveryChangeIsSentOnceOrOneReset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t, version: 100}
		w.replicas = []*replica{newReplica(w), newReplica(w)}
		clients := []*watcher{{kinds: allKinds}, {kinds: Set(0).With(Findings).With(Scans)}}
		which := rapid.IntRange(0, 1)
		kind := rapid.Map(rapid.IntRange(0, int(Kinds)-1), func(i int) Kind { return Kind(i) })
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "n") {
					w.version += uint64(rapid.IntRange(1, 3).Draw(t, "step"))
					k := kind.Draw(t, "kind")
					w.written[k] = append(w.written[k], Change{Kind: k, Version: w.version, What: Updated, ID: rapid.SampledFrom([]string{acme, "other"}).Draw(t, "whose")})
				}
			},
			"receive": func(t *rapid.T) {
				r, k := w.replicas[which.Draw(t, "replica")], kind.Draw(t, "kind")
				for range rapid.IntRange(1, 6).Draw(t, "n") {
					r.receive(w, k)
				}
			},
			"list anew": func(t *rapid.T) { w.replicas[which.Draw(t, "replica")].list(w) },
			"list a kind anew": func(t *rapid.T) {
				w.replicas[which.Draw(t, "replica")].listKind(w, kind.Draw(t, "kind"))
			},
			"start anew": func(t *rapid.T) {
				i := which.Draw(t, "replica")
				w.replicas[i] = newReplica(w)
				for _, c := range clients {
					c.reader = nil
				}
			},
			"connect": func(t *rapid.T) {
				clients[which.Draw(t, "client")].connect(w, w.replicas[which.Draw(t, "replica")])
			},
			"read": func(t *rapid.T) {
				if c := clients[which.Draw(t, "client")]; c.reader != nil {
					c.read(w, rapid.IntRange(1, 8).Draw(t, "most"), rapid.IntRange(0, 20).Draw(t, "cut"))
				}
			},
			"": func(*rapid.T) {
				for _, c := range clients {
					c.check(w)
				}
			},
		})
	})
}

// check expects exactly the changes between where the client began and where it is.
func (c *watcher) check(w *world) {
	if !c.known {
		return
	}
	for k := range Kinds {
		for _, change := range w.written[k] {
			want := 0
			if change.ID == acme && c.kinds.Has(k) && change.Version > c.from[k] && change.Version <= c.at[k] {
				want = 1
			}
			if got := c.sent[k][change.Version]; got != want {
				w.Fatalf("%s %d was sent %d times, want %d (from %v to %v)", k, change.Version, got, want, c.from, c.at)
			}
		}
	}
}

func put(l *Log, organization string, k Kind, version uint64) {
	l.Put(organization, &Change{Kind: k, Version: version, What: Updated, ID: fmt.Sprint(version)})
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	l := New(Limits{Changes: 100, Bytes: 50 * (fixedBytes + 4), Total: 60}, standing)
	l.Add("a", Position{})
	l.Add("b", Position{})
	for version := uint64(1000); version < 2000; version++ {
		put(l, "a", Findings, version)
	}
	harness.Same(t, "held changes, in bytes as many as 50", 50, len(l.feeds["a"].changes))
	for version := uint64(2000); version < 2020; version++ {
		put(l, "b", Findings, version)
	}
	if got := l.Held(); got > 60 {
		t.Errorf("%d changes are held in all", got)
	}
	harness.Same(t, "held changes of the organization with few", 20, len(l.feeds["b"].changes))
	l.Remove("a")
	harness.Same(t, "held of an organization with 20", 20, l.Held())
}

func TestAReaderWhoseChangesAreForgottenEnds(t *testing.T) {
	l := New(Limits{Changes: 3, Bytes: 1 << 20, Total: 100}, standing)
	l.Add(acme, Position{})
	slow, gone := l.Read(acme, allKinds, nil), l.Read(acme, allKinds, nil)
	ofFindings := l.Read(acme, Set(0).With(Findings), nil)
	if b := slow.Next(10); b.Wake == nil || len(b.Changes) > 0 {
		t.Fatalf("got %+v", b)
	}
	for version := uint64(1); version < 5; version++ {
		put(l, acme, Scans, version)
	}
	if b := slow.Next(10); !b.Ended {
		t.Errorf("a reader that lacks a change goes on: %+v", b)
	}
	put(l, acme, Findings, 5)
	if b := ofFindings.Next(10); b.Reset || b.Ended || len(b.Changes) != 1 {
		t.Errorf("a reader that lacks only changes of other kinds gets %+v, want the change 5", b)
	}
	l.Remove(acme)
	if b := gone.Next(10); !b.Ended {
		t.Errorf("a reader of an organization that is gone goes on: %+v", b)
	}
	if l.Read(acme, allKinds, nil) != nil {
		t.Error("there is a reader of an organization that is gone")
	}

	l.Add(acme, Position{Findings: 20})
	for version := uint64(10); version < 14; version++ {
		put(l, acme, Findings, version)
	}
	between := l.Read(acme, Set(0).With(Findings), &Position{Findings: 15})
	harness.Same(t, "reset after an older change was forgotten", true, between.Next(10).Reset)
}

func TestARestartMakesRoomAndWakesReaders(t *testing.T) {
	l := New(Limits{Changes: 100, Bytes: 3 * (fixedBytes + 2), Total: 100}, standing)
	l.Add(acme, Position{})
	kinds := Set(0).With(Findings).With(Scans)
	slow, waiting := l.Read(acme, kinds, nil), l.Read(acme, kinds, nil)
	put(l, acme, Scans, 10)
	put(l, acme, Findings, 11)
	put(l, acme, Findings, 12)
	wake := waiting.Next(10).Wake
	l.Restart(Findings, 13)
	select {
	case <-wake:
	default:
		t.Error("a waiting reader does not hear of the restart")
	}
	put(l, acme, Findings, 14)
	put(l, acme, Scans, 15)
	put(l, acme, Findings, 16)
	harness.Same(t, "held changes", 3, l.Held())
	harness.Same(t, "their bytes", 3*(fixedBytes+2), l.feeds[acme].bytes)

	b := slow.Next(1)
	if !b.Reset || len(b.Changes) != 1 || b.Changes[0].Version != 14 {
		t.Fatalf("a reader that lacks a change and is reset gets %+v", b)
	}
	rest := l.Read(acme, kinds, &b.After[0]).Next(10)
	if rest.Reset || len(rest.Changes) != 2 {
		t.Errorf("it resumes with %+v, want the changes 15 and 16", rest)
	}
	l.Restart(Findings, 5) // the store was restored
	put(l, acme, Findings, 6)
	if b := waiting.Next(10); !b.Reset || len(b.Changes) != 2 || b.Changes[1].Version != 6 {
		t.Errorf("a reader that was ahead of the restored store gets %+v, want a reset, 15 and 6", b)
	}
}

func TestOnlyTheKindsAskedForAreSent(t *testing.T) {
	l := New(DefaultLimits, standing)
	l.Add(acme, Position{})
	r := l.Read(acme, Set(0).With(Reviews), nil)
	put(l, acme, Findings, 1)
	put(l, acme, Reviews, 2)
	b := r.Next(10)
	if len(b.Changes) != 1 || b.Changes[0].Kind != Reviews {
		t.Errorf("got %+v", b.Changes)
	}
}

// After a gap in the deliveries, no client needs to read the findings again.
func TestAListOfAKindResetsTheReadersOfThatKindAlone(t *testing.T) {
	l := New(DefaultLimits, standing)
	l.Add(acme, Position{})
	ofFindings, ofDeliveries := Set(0).With(Findings), Set(0).With(Deliveries)
	resumed := &Position{Findings: 5}
	put(l, acme, Findings, 5)
	put(l, acme, Deliveries, 6)
	following, both := l.Read(acme, ofFindings, nil), l.Read(acme, ofFindings|ofDeliveries, nil)
	put(l, acme, Findings, 7)
	l.Restart(Deliveries, 9)
	put(l, acme, Findings, 10)
	put(l, acme, Deliveries, 11)
	harness.Same(t, "held changes", 4, l.Held())
	for _, tc := range []struct {
		reason string
		reader *Reader
		reset  bool
		want   []uint64
	}{
		{"a reader of findings", following, false, []uint64{7, 10}},
		{"one that resumes", l.Read(acme, ofFindings, resumed), false, []uint64{7, 10}},
		{"a reader of both", both, true, []uint64{7, 10, 11}},
		{"one of both that resumes", l.Read(acme, ofFindings|ofDeliveries, resumed), true, nil},
	} {
		b := tc.reader.Next(10)
		harness.Same(t, tc.reason+": reset", tc.reset, b.Reset)
		var got []uint64
		for _, change := range b.Changes {
			got = append(got, change.Version)
		}
		harness.Same(t, tc.reason+": changes", tc.want, got)
		harness.Same(t, tc.reason+": reset again", false, tc.reader.Next(10).Reset)
	}
}

// A place that is ahead is usual for a while: another replica may have seen more.
func TestAPlaceThatTheStoreHasLostIsReset(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Time{})
	step := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	l := New(DefaultLimits, clock)
	l.Add(acme, Position{})
	for k := range Kinds {
		l.Restart(k, 500)
	}
	place := func(version uint64) *Position { return &Position{version, 500, 500, 500, 500} }
	lost, reached := l.Read(acme, allKinds, place(1000)), l.Read(acme, allKinds, place(501))
	other := l.Read(acme, Set(0).With(Reviews), place(1000))
	l.Add("young", Position{Reviews: 600}) // those up to then have been noticed, but not reported
	young := l.Read("young", allKinds, nil)
	put(l, acme, Findings, 501)
	step(aheadAtMost)
	if b := lost.Next(10); b.Reset || len(b.Changes) > 0 {
		t.Errorf("a place that another replica may have given out is answered with %+v", b)
	}
	step(time.Second)
	b := lost.Next(10)
	harness.Same(t, "reset of the lost place", true, b.Reset)
	harness.Same(t, "place after the reset", *place(501), b.At)
	put(l, acme, Findings, 502)
	step(2 * aheadAtMost)
	b = lost.Next(10)
	if b.Reset || len(b.Changes) != 1 || b.Changes[0].Version != 502 {
		t.Errorf("after the reset comes %+v, want the change 502", b)
	}
	if b := reached.Next(10); b.Reset || len(b.Changes) != 1 {
		t.Errorf("a place that the log has reached is answered with %+v, want the change 502", b)
	}
	if b := other.Next(10); b.Reset {
		t.Error("a reader of other kinds is reset")
	}
	put(l, "young", Findings, 503)
	if b := young.Next(10); b.Reset || len(b.Changes) != 1 {
		t.Errorf("where the feed begins, ahead of what was reported, comes %+v, want the change 503", b)
	}
}
