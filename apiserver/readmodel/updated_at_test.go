package readmodel

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// datedKinds create an object of each kind that shows the time of its last change, with an empty spec if the
// API server accepts one.
var datedKinds = map[kind]func() kube.Object{
	findings:     func() kube.Object { return finding("x", 0) },
	repositories: func() kube.Object { return &v1alpha1.Repository{ObjectMeta: meta(acmeNamespace, "x", 0)} },
	projects:     func() kube.Object { return project("x", 0) },
	reviews:      func() kube.Object { return review("x", 0) },
	reviewIssues: func() kube.Object { return issue("x", 0) },
}

func copyOf(object kube.Object) kube.Object { return object.DeepCopyObject().(kube.Object) }

// recordedAt returns the time of the last change in an object's status.
func recordedAt(object metav1.Object) *v1alpha1.Time {
	observed, _ := observedOf(object)
	return observed.UpdatedAt
}

// reconcile updates an object's status as its controller does.
func reconcile(object kube.Object, now time.Time) {
	observed, _ := observedOf(object)
	at := lastwrite.UpdatedAt(object, observed, now)
	switch o := object.(type) {
	case *v1alpha1.Finding:
		o.Status = findingstate.Observe(o, nil, now)
	case *v1alpha1.Repository:
		o.Status.ObservedGeneration, o.Status.UpdatedAt = o.Generation, &at
	case *v1alpha1.Project:
		o.Status.ObservedGeneration, o.Status.UpdatedAt = o.Generation, &at
	case *v1alpha1.Review:
		o.Status = reviewstate.ReviewStatus(o, reviewstate.Counts{}, now)
	case *v1alpha1.ReviewIssue:
		o.Status = reviewstate.IssueStatus(o, nil, now)
	}
}

// server is the API server with one object and all its past states.
type server struct {
	kind   kind
	now    time.Time
	states []kube.Object
	// seen holds, for each state, the managedFields from which the controllers recorded its time.
	seen [][]metav1.ManagedFieldsEntry
	// known are the times of the creation and of all states.
	known map[string]bool
	// forged is set if somebody replaced managedFields; they may contain anything since.
	forged bool
	// controllers is how far the controllers' clock is ahead of the API server's.
	controllers time.Duration
}

func newServer(t *rapid.T) *server {
	begun := time.Duration(rapid.IntRange(0, 999).Draw(t, "ms")) * time.Millisecond
	s := &server{now: epoch.Add(begun), known: map[string]bool{}}
	s.kind = rapid.SampledFrom(slices.Sorted(maps.Keys(datedKinds))).Draw(t, "kind")
	object := datedKinds[s.kind]()
	object.SetCreationTimestamp(metav1.NewTime(s.now.Truncate(time.Second)))
	if rapid.Bool().Draw(t, "fields owned") {
		object.SetManagedFields([]metav1.ManagedFieldsEntry{s.entry("scanner/x")})
	}
	s.store(object, nil)
	return s
}

func (s *server) latest() kube.Object { return s.states[len(s.states)-1] }

func (s *server) store(object kube.Object, seen []metav1.ManagedFieldsEntry) {
	object.SetResourceVersion(fmt.Sprint(len(s.states) + 10))
	s.states = append(s.states, object)
	s.seen = append(s.seen, seen)
	s.known[timeShown(object.GetCreationTimestamp().Time)] = true
	for _, entry := range object.GetManagedFields() {
		s.known[timeShown(entry.Time.Time)] = true
	}
	if at := recordedAt(object); at != nil {
		s.known[timeShown(at.Time)] = true
	}
}

func timeShown(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (s *server) entry(manager string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(s.now.Truncate(time.Second))
	return metav1.ManagedFieldsEntry{Manager: manager, Time: &at}
}

// stamp sets the time of a manager's entry to now, like a write that sets a field.
func (s *server) stamp(object kube.Object, manager string) {
	object.SetManagedFields(append(without(object, manager), s.entry(manager)))
}

// without returns the entries of all managers but one.
func without(object kube.Object, manager string) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

// write changes the object in one of the possible ways.
func (s *server) write(t *rapid.T) {
	object := copyOf(s.latest())
	manager := rapid.SampledFrom([]string{"kubectl", "findings-api", "scanner/x"}).Draw(t, "manager")
	how := rapid.SampledFrom([]string{"set", "set", "remove", "remove the last", "label", "replace"}).Draw(t, "how")
	if how != "label" {
		object.SetGeneration(object.GetGeneration() + 1)
	}
	switch how {
	case "set", "label":
		s.stamp(object, manager)
	case "remove the last": // field of a manager: no trace of the manager remains
		object.SetManagedFields(without(object, manager))
	case "replace":
		s.forged = true
		var fields []metav1.ManagedFieldsEntry
		for range rapid.IntRange(0, 2).Draw(t, "entries") {
			ahead := rapid.SampledFrom([]int{-86400, -3, -1, 1, 3, 60, 290, 310, 86400, 2_000_000_000}).Draw(t, "ahead")
			forged := metav1.NewTime(s.now.Truncate(time.Second).Add(time.Duration(ahead) * time.Second))
			fields = append(fields, metav1.ManagedFieldsEntry{Manager: fmt.Sprint(manager, len(fields)), Time: &forged})
		}
		object.SetManagedFields(fields)
	}
	s.store(object, s.seen[len(s.seen)-1])
}

// reconcile does the work of the controllers, with their own clock. The API server refuses writes based on an
// older state.
func (s *server) reconcile(t *rapid.T) {
	before := s.latest()
	after := copyOf(before)
	reconcile(after, s.now.Add(s.controllers))
	if was, is := recordedAt(before), recordedAt(after); was != nil && is.Before(was) {
		t.Fatalf("status went back from %s to %s", was, is)
	}
	seen := before.GetManagedFields()
	if observed, _ := observedOf(before); observed.Covers(before) {
		seen = s.seen[len(s.seen)-1]
	}
	s.store(after, seen)
}

// replica is a facade with its own clock.
type replica struct {
	name  string
	model *Model
	clock *testingclock.FakeClock
	// offset is how far its clock is ahead of the API server's.
	offset time.Duration
	// at is the newest state that it has received; -1 at first.
	at int
	// last is the time that it showed last.
	last string
}

func newReplica(t *rapid.T, name string, offset time.Duration) *replica {
	r := &replica{name: name, offset: offset}
	r.restart(t)
	return r
}

func (r *replica) restart(t *rapid.T) {
	r.clock = testingclock.NewFakeClock(epoch)
	model, err := New(Options{Source: byHand, Log: logr.Discard(), Clock: r.clock})
	harness.Must(t, err)
	r.model, r.at, r.last = model, -1, ""
	feed(t, r.model, organizations, organization(acme, acmeNamespace, 1))
}

// get delivers a state to the replica in one of the possible ways: by a watch, by a list, or as the result of a
// patch; it may be late or a repetition.
func (r *replica) get(t *rapid.T, s *server, n int) {
	r.clock.SetTime(s.now.Add(r.offset))
	object := copyOf(s.states[n])
	how := rapid.SampledFrom([]string{"watch", "list", "patch"}).Draw(t, "by")
	finding, isFinding := object.(*v1alpha1.Finding)
	issue, isIssue := object.(*v1alpha1.ReviewIssue)
	switch {
	case how == "patch" && isFinding:
		_, err := r.model.Apply(finding)
		harness.Must(t, err)
	case how == "patch" && isIssue:
		_, err := r.model.ApplyIssue(issue)
		harness.Must(t, err)
	case how == "list":
		harness.Must(t, r.model.replace(s.kind, []metav1.Object{object}, object.GetResourceVersion()))
	default:
		feed(t, r.model, s.kind, object)
	}
	settle(r.model)
	r.at = max(r.at, n)
	r.check(t, s)
}

// check compares the time that the replica shows with those that it may show.
func (r *replica) check(t *rapid.T, s *server) {
	state, got := s.states[r.at], r.shown(t, s.kind)
	observed, _ := observedOf(state)
	recorded := observed.Covers(state)
	switch {
	case recorded && got != timeShown(observed.UpdatedAt.Time):
		t.Fatalf("replica %s shows %s where the controllers have recorded %s", r.name, got, observed.UpdatedAt)
	case !s.known[got]:
		t.Fatalf("replica %s shows %s, which is nobody's but its clock's", r.name, got)
	case got < r.last && !recorded:
		t.Fatalf("replica %s went back from %s to %s", r.name, r.last, got)
	case got < r.last && !r.mayGoBack(s):
		t.Fatalf("replica %s went back from %s to the recorded %s", r.name, r.last, got)
	}
	r.last = got
}

// mayGoBack reports whether it cannot be avoided that the shown time is later than the recorded one: the time
// was gone from managedFields before the controllers read them, because the field of that write was removed, or
// the entry was replaced; or it was forged, and only this replica's clock is so far ahead that it accepted the
// time.
func (r *replica) mayGoBack(s *server) bool {
	recorded := slices.ContainsFunc(s.seen[r.at], func(e metav1.ManagedFieldsEntry) bool {
		return timeShown(e.Time.Time) == r.last
	})
	return !recorded || s.forged && r.offset > 2*time.Minute
}

func (r *replica) shown(t *rapid.T, k kind) string {
	var row struct {
		UpdatedAt string `json:"updated_at"`
	}
	var content []byte
	switch k {
	case findings:
		item, ok := r.model.Finding(acme, "x")
		if !ok {
			t.Fatal("the finding is not shown")
		}
		content = jsonOf(item.V2())
	case repositories:
		page, err := r.model.ListRepositories(acme, first(1))
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("the repository is not shown: %v", err)
		}
		content = jsonOf(page.Items[0])
	case projects:
		content, _ = r.model.Project(acme, "shop", "x")
	case reviews:
		page, err := r.model.ListReviews(acme, ReviewQuery{Request: first(1)})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("the review is not shown: %v", err)
		}
		content = jsonOf(page.Items[0])
	case reviewIssues:
		issue, _ := r.model.ReviewIssue(acme, "x")
		content = issue.JSON()
	}
	harness.Must(t, json.Unmarshal(content, &row))
	return row.UpdatedAt
}

// Whatever is written, seen and missed, in whatever order and with whatever clocks: no replica shows a time of
// its own clock, or goes back, and all show the time that the controllers have recorded.
func TestAllReplicasAndTheStatusAgreeOnTheLastChange(t *testing.T) {
	seconds := func(t *rapid.T, name string, from, to int) time.Duration {
		return time.Duration(rapid.IntRange(from*1000, to*1000).Draw(t, name)) * time.Millisecond
	}
	rapid.Check(t, func(t *rapid.T) {
		s := newServer(t)
		s.controllers = seconds(t, "the controllers' clock", -90, 90)
		replicas := []*replica{
			newReplica(t, "a", seconds(t, "the clock of a", -90, 90)),
			newReplica(t, "b", seconds(t, "the clock of b", -100_000, 100_000)),
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			s.now = s.now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms later")) * time.Millisecond)
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				s.write(t)
			case 2:
				s.reconcile(t)
			default:
				r := rapid.SampledFrom(replicas).Draw(t, "replica")
				if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
					r.restart(t)
				}
				n := rapid.IntRange(max(0, r.at-2), len(s.states)-1).Draw(t, "state")
				r.get(t, s, n)
			}
		}
		s.reconcile(t)
		for _, r := range replicas {
			r.get(t, s, len(s.states)-1)
			if want := timeShown(recordedAt(s.latest()).Time); r.last != want {
				t.Fatalf("replica %s shows %s, and %s is recorded", r.name, r.last, want)
			}
		}
	})
}

// The result of a patch may arrive after later states by others: the time in its response is then the least
// that is shown from now on, until a time is recorded.
func TestALateResultOfAPatchIsNotFollowedByAnEarlierTime(t *testing.T) {
	m, clock := newTestModel(t)
	clock.SetTime(epoch.Add(time.Hour))
	at := func(second int) time.Time { return epoch.Add(time.Duration(second) * time.Second) }
	state := func(rv int, generation int64, writes ...metav1.ManagedFieldsEntry) *v1alpha1.Finding {
		return finding("f-1", rv, func(f *v1alpha1.Finding) {
			f.Generation, f.ManagedFields = generation, writes
			f.Status.ObservedGeneration, f.Status.UpdatedAt = 1, new(v1alpha1.NewTime(at(0)))
		})
	}
	feed(t, m, organizations, organization(acme, acmeNamespace, 1))
	feed(t, m, findings, state(12, 3)) // somebody else removed the fields that the patch set
	item, err := m.Apply(state(11, 2, metav1.ManagedFieldsEntry{Manager: "findings-api", Time: new(metav1.NewTime(at(5)))}))
	if err != nil || item.UpdatedAt != timeShown(at(5)) {
		t.Fatalf("the answer has %s, %v", item.UpdatedAt, err)
	}
	if held, _ := m.Finding(acme, "f-1"); held.UpdatedAt != item.UpdatedAt || held.resourceVersion != "12" {
		t.Errorf("then version %s with %s is shown", held.resourceVersion, held.UpdatedAt)
	}
	again := state(13, 3)
	again.UID = types.UID("another")
	show(t, m, findings, again)
	if held, _ := m.Finding(acme, "f-1"); held.UpdatedAt != timeShown(epoch) {
		t.Errorf("another finding of the name is shown with %s", held.UpdatedAt)
	}
}
