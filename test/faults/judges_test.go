package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// errorList collects the errors of a judge.
type errorList []string

func (t *errorList) Errorf(format string, arguments ...any) {
	*t = append(*t, fmt.Sprintf(format, arguments...))
}
func (t *errorList) Fail() {}

// judged runs a judge and returns its errors.
func judged(judge func(s *trial)) string {
	var errs errorList
	v := &verdict{t: &errs}
	judge(&trial{verdict: v, journal: newJournal(v), staleness: 20 * time.Second})
	return strings.Join(errs, "\n")
}

// finding returns a state of a finding with these transitions, of which emitted are emitted.
func finding(comment string, emitted int64, seqs ...int64) rig.Stored {
	f := v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "uid"}}
	f.Spec.Triage.Comments = comment
	f.Status.EmittedSeq = emitted
	for _, seq := range seqs {
		f.Status.Transitions = append(f.Status.Transitions, v1alpha1.Transition{Seq: seq, Type: v1alpha1.TransitionClosed, To: strconv.FormatInt(seq, 10)})
	}
	return stored("findings", "f", f)
}

func delivery(name string, uid types.UID, seq int64) rig.Stored {
	d := v1alpha1.WebhookDelivery{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Event.Type = "finding.closed"
	d.Spec.Payload = fmt.Sprintf(`{"data":{"uid":%q,"seq":%d}}`, uid, seq)
	s := stored("webhookdeliveries", name, d)
	s.Created = true
	return s
}

func stored(resource, name string, object any) rig.Stored {
	content, err := json.Marshal(object)
	if err != nil {
		panic(err) // values from this test
	}
	return rig.Stored{Resource: resource, Namespace: namespace, Name: name, Object: content}
}

// A judge that accepts everything would find no bugs in the service either.
func TestTheAuditSeesWhatIsLostAndDoubled(t *testing.T) {
	t.Parallel()
	created := finding("", 0)
	created.Created = true
	gone := rig.Stored{Namespace: namespace, Resource: "findings", Name: "f", Deleted: true}
	other := finding("", 1, 1)
	other.Object = []byte(strings.Replace(string(other.Object), `"to":"1"`, `"to":"2"`, 1))
	for _, c := range []struct {
		reason  string
		history []rig.Stored
		writes  []write
		want    string // in the errors; empty for no error
	}{
		{"all is well", []rig.Stored{created, finding("a", 0, 1), delivery("d", "uid", 1), finding("a", 1, 1)},
			[]write{{id: "f", value: "a", acknowledged: true}}, ""},
		{"what was not acknowledged need not be there", []rig.Stored{created}, []write{{id: "f", value: "a"}}, ""},
		{"old transitions make room", []rig.Stored{created, finding("", 2, 1, 2), delivery("d", "uid", 1), delivery("e", "uid", 2), finding("", 2, 2)}, nil, ""},
		{"an acknowledged write is lost", []rig.Stored{created}, []write{{id: "f", value: "a", acknowledged: true}}, "never stored"},
		{"a write is done twice", []rig.Stored{created, finding("a", 0), finding("b", 0), finding("a", 0)}, nil, "stored 2 times"},
		{"a finding is deleted", []rig.Stored{created, gone}, nil, "was deleted"},
		{"a finding is made twice", []rig.Stored{created, created}, nil, "made twice"},
		{"a number is left out", []rig.Stored{created, finding("", 0, 1), delivery("d", "uid", 1), finding("", 1, 1, 3)}, nil, "comes after"},
		{"a number is left out between two looks", []rig.Stored{created, finding("", 1, 1), delivery("d", "uid", 1), finding("", 2, 3)}, nil, "recorded after"},
		{"a number gets another meaning", []rig.Stored{created, finding("", 1, 1), delivery("d", "uid", 1), other}, nil, "and was"},
		{"one leaves before it is emitted", []rig.Stored{created, finding("", 0, 1, 2), delivery("d", "uid", 1), delivery("e", "uid", 2), finding("", 0, 2)}, nil, "before it was emitted"},
		{"what was emitted no longer is", []rig.Stored{created, finding("", 1, 1), delivery("d", "uid", 1), finding("", 0, 1)}, nil, "went back"},
		{"a delivery is missing", []rig.Stored{created, finding("", 1, 1)}, nil, "no delivery"},
		{"a delivery occurs twice", []rig.Stored{created, finding("", 1, 1), delivery("d", "uid", 1), delivery("e", "uid", 1)}, nil, "of one transition"},
	} {
		wantsSaid(t, c.reason, c.want, audited(t, c.history, func(a *audit) {
			a.checkWrites(c.writes)
			a.checkDeliveries()
		}))
	}
}

// audited returns the errors of an audit that has taken the history in.
func audited(t *testing.T, history []rig.Stored, check func(a *audit)) string {
	t.Helper()
	return judged(func(s *trial) {
		a := newAudit(s)
		for _, stored := range history {
			harness.Must(t, a.take(stored))
		}
		check(a)
	})
}

// wantsSaid expects that the text is in what a judge said, or that it said nothing if the text is empty.
func wantsSaid(t *testing.T, reason, want, said string) {
	t.Helper()
	if (want == "") != (said == "") || !strings.Contains(said, want) {
		t.Errorf("%s: it said %q, want %q", reason, said, want)
	}
}

func TestTheMonitorSeesWhatTheFacadeMayNotSay(t *testing.T) {
	t.Parallel()
	const stale, starting = `{"detail":"authorization data is stale"}`, `{"detail":"the service is starting; try again"}`
	for _, c := range []struct {
		reason  string
		age     time.Duration
		ready   bool
		code    int
		body    string
		told    string // x-data-age
		started bool
		want    string
	}{
		{"all is well", time.Second, true, http.StatusOK, "", "", true, ""},
		{"an outage", 12 * time.Second, true, http.StatusOK, "", "12", true, ""},
		{"a long one", 30 * time.Second, true, http.StatusInternalServerError, stale, "", true, ""},
		{"a start", time.Second, false, http.StatusInternalServerError, starting, "", false, ""},
		{"not ready while stale", 30 * time.Second, false, http.StatusInternalServerError, stale, "", true, "says that it is not ready"},
		{"not ready without need", time.Second, false, http.StatusOK, "", "", true, "says that it is not ready"},
		{"reads while stale", 30 * time.Second, true, http.StatusOK, "", "30", true, "serves a read"},
		{"no reads without need", 12 * time.Second, true, http.StatusInternalServerError, stale, "", true, "a read is answered with 500"},
		{"an age that is not told", 12 * time.Second, true, http.StatusOK, "", "", true, "without x-data-age"},
		{"a wrong age", 12 * time.Second, true, http.StatusOK, "", "3", true, "though the metric says"},
		{"another refusal", 30 * time.Second, true, http.StatusTooManyRequests, stale, "", true, "answered with 429"},
		{"no advice", 30 * time.Second, true, http.StatusInternalServerError, `{"detail":"sorry"}`, "", true, `"sorry"`},
	} {
		wantsSaid(t, c.reason, c.want, judged(func(s *trial) {
			m := &monitor{s: s}
			if c.started {
				m.readyOnce.Store(1)
			}
			header := http.Header{}
			if c.told != "" {
				header.Set("X-Data-Age", c.told)
			}
			m.check(1, c.age, c.age, 10*time.Millisecond, c.ready, c.code, answer{header: header, body: []byte(c.body)})
		}))
	}
}

func TestReadsThatGoBackAreSeen(t *testing.T) {
	t.Parallel()
	said := judged(func(s *trial) {
		s.journal.saw("f", 0, 7)
		s.checkNumber(item{ID: "f", Comments: "6"}, s.journal.floor("f"))
	})
	harness.Contains(t, "it says", said, "went back")
}

func TestWalksThatLoseOrRepeatAreSeen(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i := range total() - 1 {
		seen[strconv.Itoa(i)] = 1
	}
	seen["0"] = 2
	harness.Contains(t, "it says", judged(func(s *trial) { s.checkWalk(seen) }), "2 times", "findings of")
}
