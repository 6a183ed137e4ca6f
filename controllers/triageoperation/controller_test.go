package triageoperation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// admin is the name of the user that writes in these tests.
const admin = "admin"

// room is a namespace in which operations can run.
type room struct {
	t         *testing.T
	namespace string
}

func newRoom(t *testing.T) room {
	t.Helper()
	r := room{t, controllertest.Places(t, env)}
	harness.Must(t, env.LetOperate(t.Context(), r.namespace))
	return r
}

// running returns a room in which both controllers run. The test is parallel to others.
func running(t *testing.T) room {
	t.Helper()
	shared.Start(t, env)
	return newRoom(t)
}

// finds creates findings with that rule, and waits for their status.
func (r room) finds(rule string, names ...string) {
	r.t.Helper()
	findings := make([]client.Object, len(names))
	for i, name := range names {
		findings[i] = builder.Finding(name).In(r.namespace).Mutate(func(f *v1alpha1.Finding) { f.Spec.RuleID = rule }).Build()
	}
	env.CreateAtOnce(r.t, findings...)
	env.AwaitFindings(r.t, r.namespace)
}

func (r room) finding(name string) *v1alpha1.Finding {
	r.t.Helper()
	return env.Finding(r.t, r.namespace, name)
}

// decides writes spec.triage like a user, and waits until it is recorded.
func (r room) decides(name, triage string) {
	r.t.Helper()
	env.Patch(r.t, r.finding(name), `{"spec":{"triage":`+triage+`}}`)
	env.AwaitFindings(r.t, r.namespace)
}

// sets returns a committed operation that sets the status of the findings with the rule G1.
func (r room) sets(name string, status v1alpha1.UserStatus) *v1alpha1.TriageOperation {
	return builder.TriageOperation(name, "G1").In(r.namespace).Committed().Spec(func(s *v1alpha1.TriageOperationSpec) {
		s.Set = &v1alpha1.OperationDecision{UserStatus: status}
	}).Build()
}

func (r room) makes(operation *v1alpha1.TriageOperation, until v1alpha1.OperationPhase) *v1alpha1.TriageOperation {
	r.t.Helper()
	env.Create(r.t, operation)
	return r.awaits(operation.Name, until)
}

func (r room) awaits(name string, until v1alpha1.OperationPhase) *v1alpha1.TriageOperation {
	r.t.Helper()
	o := builder.TriageOperation(name, "").In(r.namespace).Build()
	harness.Eventually(r.t, func(g Gomega) {
		testenv.Get(r.t, g, env, o)
		g.Expect(o.Status.Phase).To(Equal(until), "%+v", o.Status)
	})
	return o
}

func (r room) commits(name string) *v1alpha1.TriageOperation {
	r.t.Helper()
	env.Patch(r.t, builder.TriageOperation(name, "").In(r.namespace).Build(), `{"spec":{"commit":true}}`)
	return r.awaits(name, v1alpha1.OperationCompleted)
}

// counts returns the numbers: matched, would change; changed, unchanged, conflicted, failed.
func counts(o *v1alpha1.TriageOperation) string {
	s := o.Status
	return fmt.Sprintf("%d %d; %d %d %d %d", s.Matched, s.WouldChange, s.Changed, s.Unchanged, s.Conflicted, s.Failed)
}

func TestAPreviewWritesNothingAndCommittingDecides(t *testing.T) {
	r, g := running(t), NewWithT(t)
	r.finds("G1", "f-1", "f-2", "f-3")
	r.finds("G2", "other")
	r.decides("f-2", `{"userStatus":"muted","reason":"used-in-tests"}`)
	r.decides("f-3", `{"userStatus":"active"}`)

	o := r.makes(builder.TriageOperation("mute", "G1").In(r.namespace).Spec(func(s *v1alpha1.TriageOperationSpec) {
		s.By, s.CommittedBy = "somebody else", "somebody else"
	}).Build(), v1alpha1.OperationPreview)
	g.Expect(counts(o)).To(Equal("3 2; 0 0 0 0"))
	g.Expect(o.Spec.By).To(Equal(admin), "it is stamped")
	g.Expect(o.Spec.CommittedBy).To(BeEmpty())
	g.Expect(o.Status.Samples).To(Equal([]v1alpha1.ResourceName{"f-1", "f-2", "f-3"}))
	g.Expect(o.Status.Decided).To(Equal([]v1alpha1.OperationDecider{{By: admin, Count: 2}}))
	g.Expect(v1alpha1.IsConditionTrue(o.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	g.Expect(r.finding("f-1").Spec.Triage.UserStatus).To(Equal(v1alpha1.UserStatusOpen))

	r.finds("G1", "f-4") // created after the set was made
	o = r.commits("mute")
	g.Expect(counts(o)).To(Equal("3 2; 2 1 0 0"))
	g.Expect(o.Spec.CommittedBy).To(Equal(admin))
	env.AwaitFindings(r.t, r.namespace)
	f := r.finding("f-1")
	g.Expect(f.Spec.Triage.By).To(Equal("operation/mute"))
	g.Expect(f.Spec.Triage.Reason).To(Equal(v1alpha1.DecisionUsedInTests))
	g.Expect(f.Spec.Triage.Basis).NotTo(BeEmpty(), "what it rests on")
	g.Expect(f.Status.State).To(Equal(v1alpha1.FindingStateOpenMuted))
	g.Expect(r.finding("f-2").Spec.Triage.By).To(Equal(admin), "it was muted already")
	g.Expect(r.finding("f-4").Spec.Triage.By).To(BeEmpty())
	g.Expect(r.finding("other").Spec.Triage.By).To(BeEmpty())
}

func TestTheHistoryNamesWhoCommittedTheOperation(t *testing.T) {
	r, g := running(t), NewWithT(t)
	r.finds("G1", "f-1")
	r.makes(r.sets("mute", v1alpha1.UserStatusMuted), v1alpha1.OperationCompleted)
	env.AwaitFindings(r.t, r.namespace)
	history := r.finding("f-1").Status.Transitions
	last := history[len(history)-1]
	g.Expect([]string{last.By, last.Author}).To(Equal([]string{"operation/mute", admin}))
}

func TestWhatSomebodyDecidesMeanwhileIsLeftAlone(t *testing.T) {
	r, g := running(t), NewWithT(t)
	r.finds("G1", "f-1", "f-2", "f-3")
	r.makes(builder.TriageOperation("mute", "G1").In(r.namespace).Build(), v1alpha1.OperationPreview)
	r.decides("f-1", `{"userStatus":"active","comments":"it is real"}`)
	// Changed and changed back: a user has decided about it.
	r.decides("f-2", `{"userStatus":"active"}`)
	r.decides("f-2", `{"userStatus":"open"}`)
	harness.Must(t, env.Client.Delete(t.Context(), r.finding("f-3")))

	o := r.commits("mute")
	g.Expect(counts(o)).To(Equal("3 3; 0 0 2 1"))
	g.Expect(o.Status.Conflicts).To(HaveLen(2))
	g.Expect(o.Status.Conflicts[0]).To(Equal(v1alpha1.OperationExample{
		Finding: "f-1", Message: admin + " decided about it in the meantime",
	}))
	g.Expect(o.Status.Failures).To(HaveLen(1))
	g.Expect(r.finding("f-1").Spec.Triage.UserStatus).To(Equal(v1alpha1.UserStatusActive))
}

// decided returns a decision as text, without its author.
func decided(f *v1alpha1.Finding) string {
	t := f.Spec.Triage
	end := ""
	if t.ExpiresAt != nil {
		end = t.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s %q %q %q %q, %s", t.UserStatus, t.Reason, t.Comments, end, t.Basis, f.Status.State)
}

func TestUndoPutsBackExactlyWhatWasThere(t *testing.T) {
	r, g := running(t), NewWithT(t)
	names := []string{"f-1-open", "f-2-muted", "f-3-ended", "f-4-commented", "f-5-later"}
	r.finds("G1", names...)
	r.decides("f-2-muted", `{"userStatus":"muted","reason":"duplicate","comments":"of f-1","expiresAt":"2999-01-01T00:00:00Z"}`)
	r.decides("f-3-ended", `{"userStatus":"muted","reason":"accepted-risk","comments":"until then","expiresAt":"2020-01-01T00:00:00Z"}`)
	r.decides("f-4-commented", `{"comments":"look at it"}`)
	before := map[string]string{}
	for _, name := range names {
		before[name] = decided(r.finding(name))
	}
	g.Expect(before["f-3-ended"]).To(HaveSuffix(", open"), "its decision has ended")

	confirm := builder.TriageOperation("confirm", "G1").In(r.namespace).Committed().Spec(func(s *v1alpha1.TriageOperationSpec) {
		comment := "all of them"
		s.Set = &v1alpha1.OperationDecision{UserStatus: v1alpha1.UserStatusActive, Comments: &comment}
	}).Build()
	g.Expect(counts(r.makes(confirm, v1alpha1.OperationCompleted))).To(Equal("5 5; 5 0 0 0"))
	env.AwaitFindings(r.t, r.namespace)
	g.Expect(decided(r.finding("f-3-ended"))).To(HavePrefix(`active "" "all of them" ""`))
	r.decides("f-5-later", `{"userStatus":"muted","comments":"mine"}`)

	o := r.makes(builder.TriageOperation("undo", "").In(r.namespace).Undoes("confirm").Build(), v1alpha1.OperationPreview)
	g.Expect(counts(o)).To(Equal("5 4; 0 0 0 0"))
	o = r.commits("undo")
	g.Expect(counts(o)).To(Equal("5 4; 4 0 1 0"))
	env.AwaitFindings(r.t, r.namespace)
	for _, name := range names[:4] {
		f := r.finding(name)
		g.Expect(decided(f)).To(Equal(before[name]), name)
		g.Expect(f.Spec.Triage.By).To(Equal("operation/undo"), name)
		last := f.Status.Transitions[len(f.Status.Transitions)-1]
		if name == "f-3-ended" {
			g.Expect(last.Type).To(Equal(v1alpha1.TransitionExpired), "an end that is past is past again")
			last = f.Status.Transitions[len(f.Status.Transitions)-2]
		}
		g.Expect(last.By).To(Equal("operation/undo"), "%s: the history names it", name)
	}
	g.Expect(r.finding("f-5-later").Spec.Triage.Comments).To(Equal("mine"))

	// An undo is an operation, and can be undone itself.
	o = r.makes(builder.TriageOperation("redo", "").In(r.namespace).Undoes("undo").Committed().Build(), v1alpha1.OperationCompleted)
	g.Expect(counts(o)).To(Equal("4 4; 4 0 0 0"))
	g.Expect(r.finding("f-2-muted").Spec.Triage.Comments).To(Equal("all of them"))
}

func TestOperationsAreUndoneInReverseOrder(t *testing.T) {
	r, g := running(t), NewWithT(t)
	r.finds("G1", "f-1", "f-2", "f-3")
	r.decides("f-1", `{"comments":"look at it"}`)
	undoes := func(name string) *v1alpha1.TriageOperation {
		return r.makes(builder.TriageOperation("undo-"+name, "").In(r.namespace).Undoes(name).Committed().Build(), v1alpha1.OperationCompleted)
	}
	r.makes(r.sets("first", v1alpha1.UserStatusMuted), v1alpha1.OperationCompleted)
	r.makes(r.sets("second", v1alpha1.UserStatusActive), v1alpha1.OperationCompleted)
	g.Expect(counts(undoes("second"))).To(Equal("3 3; 3 0 0 0"))
	r.makes(r.sets("third", v1alpha1.UserStatusActive), v1alpha1.OperationCompleted)
	g.Expect(counts(undoes("third"))).To(Equal("3 3; 3 0 0 0"))
	r.decides("f-3", `{"comments":"mine"}`)
	g.Expect(counts(undoes("first"))).To(Equal("3 2; 2 0 1 0"), "two undos have restored its decision; about f-3 somebody decided since")
	f := r.finding("f-1")
	g.Expect(f.Spec.Triage.UserStatus).To(Equal(v1alpha1.UserStatusOpen))
	g.Expect(f.Spec.Triage.Comments).To(Equal("look at it"))
	g.Expect(r.finding("f-3").Spec.Triage.UserStatus).To(Equal(v1alpha1.UserStatusMuted))

	part := &v1alpha1.TriageOperationPart{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "undo-first-000"}}
	harness.Must(t, errors.Join(
		env.Client.Delete(t.Context(), builder.TriageOperation("undo-first", "").In(r.namespace).Build()),
		env.Client.Delete(t.Context(), part), // no garbage collector runs
	))
	g.Expect(counts(undoes("first"))).To(Equal("3 0; 0 0 3 0"), "what the earlier undo of that name has restored is not its own")
	g.Expect(counts(undoes("undo-first"))).To(Equal("0 0; 0 0 0 0"))
	g.Expect(r.finding("f-1").Spec.Triage.Comments).To(Equal("look at it"))
}

func TestAnOperationThatCannotBeDoneSaysWhy(t *testing.T) {
	r, g := running(t), NewWithT(t)
	r.finds("G1", "f-1")
	r.makes(builder.TriageOperation("preview", "G1").In(r.namespace).Build(), v1alpha1.OperationPreview)
	for name, c := range map[string]struct {
		operation *v1alpha1.TriageOperation
		reason    string
	}{
		"gone":  {builder.TriageOperation("a", "").Undoes("nowhere").Build(), v1alpha1.ReasonNotUndoable},
		"never": {builder.TriageOperation("b", "").Undoes("preview").Build(), v1alpha1.ReasonNotUndoable},
		"wrong": {builder.TriageOperation("c", "").Spec(func(s *v1alpha1.TriageOperationSpec) {
			s.Select = &v1alpha1.FindingSelection{FieldSelector: "spec.colour=red"}
		}).Build(), v1alpha1.ReasonInvalidSelection},
		"ended": {builder.TriageOperation("d", "G1").Spec(func(s *v1alpha1.TriageOperationSpec) {
			past := v1alpha1.NewTime(time.Unix(0, 0))
			s.Set.ExpiresAt = &past
		}).Build(), v1alpha1.ReasonOperationExpired},
	} {
		c.operation.Namespace, c.operation.Spec.Commit = r.namespace, true
		o := r.makes(c.operation, v1alpha1.OperationFailed)
		stalled := v1alpha1.FindCondition(o.Status.Conditions, v1alpha1.ConditionStalled)
		g.Expect(stalled).NotTo(BeNil(), name)
		g.Expect(stalled.Reason).To(Equal(c.reason), name)
	}
	g.Expect(r.finding("f-1").Spec.Triage.By).To(BeEmpty())
}

func TestAClockThatIsAheadEndsNoDecisionForAnOperation(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-48*time.Hour))
	shared.Alone(t, env)
	r, g := newRoom(t), NewWithT(t)
	end := v1alpha1.NewTime(time.Now().Add(-24 * time.Hour)) // only by the local clock it has come
	r.finds("G1", "f-1")
	r.decides("f-1", `{"userStatus":"muted","reason":"accepted-risk","expiresAt":"`+end.Format(time.RFC3339)+`"}`)

	o := r.makes(r.sets("mute", v1alpha1.UserStatusMuted), v1alpha1.OperationCompleted)
	g.Expect(counts(o)).To(Equal("1 0; 0 1 0 0"), "it is muted already")
	g.Expect(r.finding("f-1").Spec.Triage.Reason).To(Equal(v1alpha1.DecisionAcceptedRisk))

	o = r.makes(builder.TriageOperation("confirm", "G1").In(r.namespace).Committed().Spec(func(s *v1alpha1.TriageOperationSpec) {
		s.Set = &v1alpha1.OperationDecision{UserStatus: v1alpha1.UserStatusActive, ExpiresAt: &end}
	}).Build(), v1alpha1.OperationCompleted)
	g.Expect(counts(o)).To(Equal("1 1; 1 0 0 0"), "its end has not come")
}

// cut is a manager whose operations' writes fail after some have reached the API server: the response to the last one
// is lost.
type cut struct {
	ctrl.Manager
	left *atomic.Int32
	dead chan struct{}
	once *sync.Once
}

func (c cut) GetConfig() *rest.Config {
	config := rest.CopyConfig(c.Manager.GetConfig())
	harness.Between(config, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodPatch {
			return next.RoundTrip(request)
		}
		left := c.left.Add(-1)
		if left < 0 {
			<-request.Context().Done()
			return nil, request.Context().Err()
		}
		response, err := next.RoundTrip(request)
		if left == 0 {
			if err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			c.once.Do(func() { close(c.dead) })
			<-request.Context().Done()
			return nil, request.Context().Err()
		}
		return response, err
	})
	return config
}

func TestAnOperationThatIsKilledDoesNothingTwice(t *testing.T) {
	const all = 12
	const overruledAt = maxAtOnce - 1 // where a user also decides before the next controller starts
	r, g := newRoom(t), NewWithT(t)
	stop := controllertest.Start(t, env, finding.Settings{}.SetupWithManager)
	names := controllertest.Names(all)
	r.finds("G1", names...)
	stop()
	status := []v1alpha1.UserStatus{v1alpha1.UserStatusMuted, v1alpha1.UserStatusActive}
	// The first write, one of those that are under way together, the last of these, and a later one.
	for i, moment := range []int{1, overruledAt, maxAtOnce, all - 2} {
		name := fmt.Sprintf("mute-%d", moment)
		env.Create(t, r.sets(name, status[i%2]))
		left := &atomic.Int32{}
		left.Store(int32(moment)) //nolint:gosec // at most ten
		dead, once := make(chan struct{}), &sync.Once{}
		var killed controllertest.Setup = func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
			return SetupWithManager(ctx, cut{mgr, left, dead, once}, options)
		}
		stop := controllertest.Start(t, env, finding.Settings{}.SetupWithManager, killed)
		harness.Eventually(t, func(g Gomega) { g.Expect(dead).To(BeClosed()) })
		env.AwaitFindings(r.t, r.namespace)
		done := map[string]int64{}
		for _, f := range names {
			if found := r.finding(f); found.Spec.Triage.By == "operation/"+name {
				done[f] = found.Generation
			}
		}
		g.Expect(len(done)).To(BeNumerically(">=", moment))
		if moment == overruledAt {
			overruled := slices.Sorted(maps.Keys(done))[0]
			r.decides(overruled, `{"userStatus":"open"}`)
			done[overruled] = r.finding(overruled).Generation
		}
		stop()
		stop = shared.Alone(t, env)
		o := r.awaits(name, v1alpha1.OperationCompleted)
		g.Expect(counts(o)).To(Equal(fmt.Sprintf("%d %d; %d 0 0 0", all, all, all)), name)
		env.AwaitFindings(r.t, r.namespace)
		for _, f := range names {
			found := r.finding(f)
			if known, was := done[f]; was {
				g.Expect(found.Generation).To(Equal(known), "%s wrote %s twice", name, f)
			}
			by := 0
			for _, transition := range found.Status.Transitions {
				if strings.HasSuffix(transition.By, "/"+name) {
					by++
				}
			}
			g.Expect(by).To(Equal(1), "%s of %s", name, f)
		}
		stop()
	}
}

func TestTheDecisionsOfAnOperationAreItsExecutorsAlone(t *testing.T) {
	r, g := running(t), NewWithT(t)
	r.finds("G1", "f-1")
	r.decides("f-1", `{"userStatus":"muted","by":"operation/mine"}`)
	g.Expect(r.finding("f-1").Spec.Triage.By).To(Equal(admin), "others are stamped")

	config := rest.CopyConfig(env.Config)
	config.Impersonate.UserName = testenv.ServiceAccountUsername(r.namespace, v1alpha1.OperationsServiceAccount)
	executor, err := env.NewClient(config)
	harness.Must(t, err)
	write := func(spec string) error {
		return executor.Patch(t.Context(), r.finding("f-1"), testenv.MergePatch(spec))
	}
	g.Expect(write(`{"spec":{"triage":{"userStatus":"active","by":"ann"}}}`)).To(MatchError(ContainSubstring("must be operation/")))
	g.Expect(write(`{"spec":{"ruleID":"G9"}}`)).To(MatchError(ContainSubstring("needs the verb report")))
	elsewhere := newRoom(t)
	elsewhere.finds("G1", "f-1")
	err = executor.Patch(t.Context(), elsewhere.finding("f-1"), testenv.MergePatch(`{"spec":{"triage":{"userStatus":"active","by":"operation/x"}}}`))
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "another organization's: %v", err)

	part := &v1alpha1.TriageOperationPart{}
	part.Namespace, part.Name, part.Spec.Operation = r.namespace, "forged-000", "forged"
	g.Expect(env.Client.Create(t.Context(), part)).To(MatchError(ContainSubstring("written by the findings-operator controllers alone")))
}

func TestAnOperationOverManyIsAFewPagesForEndpointsThatBatch(t *testing.T) {
	const all = 20
	r := running(t)
	endpoint := builder.WebhookEndpoint("paged").In(r.namespace).Events("finding.triaged").Batched().Build()
	env.Create(t, endpoint, builder.WebhookEndpoint("single").In(r.namespace).Events("finding.triaged").Build())
	r.finds("G1", controllertest.Names(all)...)
	r.decides("f-000", `{"userStatus":"active"}`)
	r.makes(builder.TriageOperation("mute", "G1").In(r.namespace).Committed().Build(), v1alpha1.OperationCompleted)
	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, env, &v1alpha1.WebhookDeliveryList{}, client.InNamespace(r.namespace))
		pages, single, covered := 0, 0, map[string]bool{}
		for i := range list.Items {
			switch d := &list.Items[i]; {
			case d.Spec.EndpointRef.Name == "single":
				single++
			case d.Spec.Event.Type == webhooks.EventFindingBatch:
				pages++
				g.Expect(d.Spec.Event.Subject).To(Equal(v1alpha1.WebhookEventSubject{Kind: "TriageOperation", Name: "mute"}))
				g.Expect(d.Spec.Payload).To(ContainSubstring(`"data":{"operation_id":"mute","findings":[`))
				for _, entry := range webhooks.Covered(d) {
					g.Expect(covered[entry.FindingID]).To(BeFalse(), "%s is in two pages", entry.FindingID)
					covered[entry.FindingID] = true
				}
			default: // a user's decision has its own delivery
				g.Expect(d.Spec.Event.Subject.Name).To(BeEquivalentTo("f-000"))
			}
		}
		g.Expect(len(covered)).To(Equal(all))
		g.Expect(pages).To(BeNumerically("<=", 6), "not a page per finding")
		g.Expect(single).To(Equal(all+1), "who does not batch gets each")
	})
}

func TestASetThatCouldNotBeKeptAtOnceIsTheSameInTheEnd(t *testing.T) {
	r, g := running(t), NewWithT(t)
	r.finds("G1", controllertest.Names(12)...)
	// A part of an earlier operation of that name, not garbage-collected yet.
	left := &v1alpha1.TriageOperationPart{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.namespace, Name: "mute-000", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "TriageOperation", Name: "mute", UID: "of-another",
		}},
	}, Spec: v1alpha1.TriageOperationPartSpec{Operation: "mute", Count: 0}}
	// One of an operation that was deleted without its parts.
	orphan := &v1alpha1.TriageOperationPart{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "other-000"},
		Spec:       v1alpha1.TriageOperationPartSpec{Operation: "other", Count: 1, Outcomes: "c", Begun: true},
	}
	harness.Must(t, errors.Join(
		env.AsController(t).Create(t.Context(), left.DeepCopy()), env.AsController(t).Create(t.Context(), orphan)))
	env.Create(t, builder.TriageOperation("mute", "G1").In(r.namespace).Build(),
		builder.TriageOperation("other", "G1").In(r.namespace).Build())
	waiting := r.awaits("other", v1alpha1.OperationSelecting)
	ready := v1alpha1.FindCondition(waiting.Status.Conditions, v1alpha1.ConditionReady)
	g.Expect(ready.Message).To(ContainSubstring("goes on after it"), "one operation at a time")
	ready = v1alpha1.FindCondition(r.awaits("mute", v1alpha1.OperationSelecting).Status.Conditions, v1alpha1.ConditionReady)
	g.Expect(ready.Message).To(ContainSubstring("mute-000 of an earlier operation"), "it says what it waits for")
	harness.Must(t, env.Client.Delete(t.Context(), left))
	o := r.awaits("mute", v1alpha1.OperationPreview)
	g.Expect(counts(o)).To(Equal("12 12; 0 0 0 0"))
	g.Expect(o.Status.Samples).To(HaveLen(v1alpha1.MaxOperationSamples))
	other := r.awaits("other", v1alpha1.OperationPreview)
	g.Expect(counts(other)).To(Equal("12 12; 0 0 0 0"))
	harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(orphan), orphan))
	g.Expect(orphan.Spec.Count).To(BeEquivalentTo(12), "it is taken over")
	g.Expect(orphan.Spec.Begun).To(BeFalse())
	g.Expect(orphan.OwnerReferences).To(HaveLen(1))
	g.Expect(orphan.OwnerReferences[0].UID).To(Equal(other.UID))
}
