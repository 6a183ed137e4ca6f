package faults

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
)

// audit checks the complete history of etcd.
type audit struct {
	s        *trial
	revision int64

	subjects map[string]*subject // by UID
	uids     map[string]string   // of each finding and scan, by resource and name
	// sent maps a transition to the names of its deliveries.
	sent map[occurrence][]string
	// many audits operations and policies.
	many *manyAudit
	// completed are the scans that ended successfully.
	completed map[string]bool
}

// subject is the known state of a finding or a scan.
type subject struct {
	kind, name string
	// stored counts how often each comment became the stored one; last is the current one.
	stored map[string]int
	last   string
	// ledger holds the transition recorded under each number.
	ledger  map[int64]v1alpha1.Transition
	emitted int64
}

// occurrence identifies a transition of an object.
type occurrence struct {
	uid string
	seq int64
}

func newAudit(s *trial) *audit {
	return &audit{
		s: s, subjects: map[string]*subject{}, uids: map[string]string{}, sent: map[occurrence][]string{}, completed: map[string]bool{},
		many: newManyAudit(s),
	}
}

// read processes the history since the last call.
func (a *audit) read(ctx context.Context) error {
	upTo, err := a.s.History(ctx, a.revision, a.take)
	if err != nil {
		return err
	}
	a.revision = upTo
	return nil
}

// take processes one state of an object of the organization.
func (a *audit) take(stored rig.Stored) error {
	if stored.Namespace != namespace {
		return nil
	}
	switch stored.Resource {
	case "findings":
		return a.readFinding(stored)
	case "scans":
		return a.readScan(stored)
	case "triageoperations", "triageoperationparts":
		return a.many.readOperation(stored)
	case "webhookdeliveries":
		return a.readDelivery(stored)
	}
	return nil
}

func (a *audit) readFinding(stored rig.Stored) error {
	if stored.Deleted {
		a.s.verdict.lose("finding %s was deleted", stored.Name)
		return nil
	}
	var f v1alpha1.Finding
	if err := json.Unmarshal(stored.Object, &f); err != nil {
		return fmt.Errorf("finding %s at revision %d: %w", stored.Name, stored.Revision, err)
	}
	if stored.Created && a.uids["Finding "+f.Name] != "" {
		a.s.verdict.double("finding %s was made twice", f.Name)
	}
	known := a.subject("Finding", f.Name, string(f.UID))
	if value := f.Spec.Triage.Comments; value != known.last || stored.Created {
		known.stored[value]++
		known.last = value
		if known.stored[value] > 1 && value != "" {
			a.s.verdict.double("comment %q of %s was stored %d times", value, f.Name, known.stored[value])
		}
	}
	a.many.readFinding(&f)
	a.readLedger(known, f.Status.Transitions, f.Status.EmittedSeq)
	return nil
}

func (a *audit) readScan(stored rig.Stored) error {
	if stored.Deleted {
		return nil // retention
	}
	var scan v1alpha1.Scan
	if err := json.Unmarshal(stored.Object, &scan); err != nil {
		return fmt.Errorf("scan %s: %w", stored.Name, err)
	}
	if scan.Spec.CompletedAt != nil && scan.Spec.Outcome == v1alpha1.ScanSucceeded {
		a.completed[scan.Name] = true
	}
	a.readLedger(a.subject("Scan", scan.Name, string(scan.UID)), scan.Status.Transitions, scan.Status.EmittedSeq)
	return nil
}

func (a *audit) subject(kind, name, uid string) *subject {
	known := a.subjects[uid]
	if known == nil {
		known = &subject{kind: kind, name: name, stored: map[string]int{}, ledger: map[int64]v1alpha1.Transition{}}
		a.subjects[uid] = known
		a.uids[kind+" "+name] = uid
	}
	return known
}

// readLedger compares a stored ledger with all earlier ones: numbers have no gaps and are never
// reused, and no transition disappears before it is emitted.
func (a *audit) readLedger(known *subject, transitions []v1alpha1.Transition, emitted int64) {
	if emitted < known.emitted {
		a.s.verdict.wrong("%s %s: emittedSeq went back from %d to %d", known.kind, known.name, known.emitted, emitted)
	}
	known.emitted = emitted
	before := int64(len(known.ledger))
	next := before + 1
	for i, t := range transitions {
		if i > 0 && t.Seq != transitions[i-1].Seq+1 {
			a.s.verdict.lose("%s %s: transition %d comes after %d", known.kind, known.name, t.Seq, transitions[i-1].Seq)
		}
		if have, ok := known.ledger[t.Seq]; ok {
			if !have.At.Equal(&t.At) || have.Type != t.Type || have.From != t.From || have.To != t.To || have.Comment != t.Comment {
				a.s.verdict.double("%s %s: transition %d is %+v and was %+v", known.kind, known.name, t.Seq, t, have)
			}
			continue
		}
		if t.Seq != next {
			a.s.verdict.lose("%s %s: transition %d is recorded after %d", known.kind, known.name, t.Seq, next-1)
		}
		known.ledger[t.Seq] = t
		next = t.Seq + 1
	}
	if n := len(transitions); n > 0 && transitions[0].Seq > emitted+1 || n == 0 && before > emitted {
		a.s.verdict.lose("%s %s: a transition after %d left before it was emitted", known.kind, known.name, emitted)
	} else if n > 0 && transitions[n-1].Seq < before {
		a.s.verdict.lose("%s %s: transition %d is recorded no longer", known.kind, known.name, before)
	}
}

func (a *audit) readDelivery(stored rig.Stored) error {
	if !stored.Created {
		return nil
	}
	var d v1alpha1.WebhookDelivery
	if err := json.Unmarshal(stored.Object, &d); err != nil {
		return fmt.Errorf("delivery %s: %w", stored.Name, err)
	}
	if d.Spec.Event.Type == "webhook.ping" {
		return nil
	}
	var payload struct {
		Data struct {
			UID string
			Seq int64
		}
	}
	if err := json.Unmarshal([]byte(d.Spec.Payload), &payload); err != nil {
		return fmt.Errorf("the payload of delivery %s: %w", stored.Name, err)
	}
	of := occurrence{payload.Data.UID, payload.Data.Seq}
	if a.sent[of] = append(a.sent[of], d.Name); len(a.sent[of]) > 1 {
		a.s.verdict.double("%s of %s: the deliveries %v are of one transition", d.Spec.Event.Type, d.Spec.Event.Subject.Name, a.sent[of])
	}
	return nil
}

// announced are the transition types that the endpoint subscribes to, by kind.
var announced = map[string][]v1alpha1.TransitionType{
	"Finding": {v1alpha1.TransitionClosed, v1alpha1.TransitionReopened},
	"Scan":    {v1alpha1.TransitionCompleted},
}

// checkDeliveries checks that each transition that the endpoint subscribes to has a delivery: the
// endpoint is older than all of them, and no delivery is outstanding.
func (a *audit) checkDeliveries() {
	for uid, known := range a.subjects {
		for seq, t := range known.ledger {
			for _, wanted := range announced[known.kind] {
				if t.Type == wanted && len(a.sent[occurrence{uid, seq}]) == 0 {
					a.s.verdict.lose("no delivery of transition %d, %s, of %s %s", seq, t.Type, known.kind, known.name)
				}
			}
		}
	}
}

// checkWrites checks that each acknowledged write was stored.
func (a *audit) checkWrites(writes []write) {
	for _, w := range writes {
		if w.acknowledged && !a.stored(w.id, w.value) {
			a.s.verdict.lose("%s write %q of %s was acknowledged and never stored", w.door, w.value, w.id)
		}
	}
}

// stored reports whether a finding ever had the comment.
func (a *audit) stored(id, value string) bool {
	known := a.subjects[a.uids["Finding "+id]]
	return known != nil && known.stored[value] > 0
}

// last returns the stored comment of a finding.
func (a *audit) last(id string) string {
	if known := a.subjects[a.uids["Finding "+id]]; known != nil {
		return known.last
	}
	return ""
}

// transitions counts the recorded transitions of all objects.
func (a *audit) transitions() int {
	sum := 0
	for _, known := range a.subjects {
		sum += len(known.ledger)
	}
	return sum
}
