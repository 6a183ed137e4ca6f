package retention

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	reviews "github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/controllers/reviewissue"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// issue returns an undecided issue of the review "review" that owes nothing.
func issue(change func(*v1alpha1.ReviewIssue)) *v1alpha1.ReviewIssue {
	return builder.ReviewIssue("i").In("org-x").Mutate(func(i *v1alpha1.ReviewIssue) {
		i.Generation, i.Status.ObservedGeneration, i.Status.UpdatedAt = 2, 2, new(v1alpha1.NewTime(noon))
		i.Status.Transitions, i.Status.EmittedSeq = []v1alpha1.Transition{{Seq: 1, Type: "opened"}}, 1
		change(i)
	}).Build()
}

func TestWhichIssuesKeepTheirReview(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(*v1alpha1.ReviewIssue)
		want   bool
	}{
		{"nobody has decided", func(*v1alpha1.ReviewIssue) {}, false},
		{"a policy has decided", func(i *v1alpha1.ReviewIssue) { i.Status.Verdict = &v1alpha1.FindingVerdict{UserStatus: "muted"} }, false},
		{"a person muted it", func(i *v1alpha1.ReviewIssue) { i.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted }, true},
		{"a person confirmed it, which the finding shows", func(i *v1alpha1.ReviewIssue) {
			i.Spec.Triage.UserStatus = v1alpha1.UserStatusActive
		}, true},
		{"the decision has ended", func(i *v1alpha1.ReviewIssue) {
			i.Spec.Triage.UserStatus, i.Spec.Triage.ExpiresAt = v1alpha1.UserStatusMuted, new(v1alpha1.NewTime(noon))
			i.Status.EndedAt = i.Spec.Triage.ExpiresAt
		}, true},
		{"a person commented on it", func(i *v1alpha1.ReviewIssue) { i.Spec.Triage.Comments = "see #4" }, true},
		{"a decision was withdrawn since the cutoff", func(i *v1alpha1.ReviewIssue) {
			i.Status.UpdatedAt = new(v1alpha1.NewTime(noon.Add(time.Second)))
		}, true},
		{"an import has written it since", func(i *v1alpha1.ReviewIssue) { i.Generation = 3 }, true},
		{"it was resolved, and that is still to be told", func(i *v1alpha1.ReviewIssue) {
			i.Status.Transitions = append(i.Status.Transitions, v1alpha1.Transition{Seq: 2, Type: "resolved"})
		}, true},
		{"something waits for its removal", func(i *v1alpha1.ReviewIssue) { i.DeletionTimestamp = new(metav1.NewTime(noon)) }, true},
	} {
		harness.Same(t, c.reason, c.want, keeps(issue(c.change), noon))
	}
}

// pullRequest creates a review and its issues, NAME-1 and so on.
func pullRequest(t *testing.T, ns, name string, issues int, change func(*v1alpha1.ReviewIssue)) (*v1alpha1.Review,
	[]*v1alpha1.ReviewIssue) {
	t.Helper()
	review := testenv.Create(t, env, builder.Review(name).In(ns).Build())
	var all []*v1alpha1.ReviewIssue
	for i := range issues {
		issue := builder.ReviewIssue(fmt.Sprintf("%s-%d", name, i+1)).In(ns).Review(name).Mutate(change)
		all = append(all, testenv.Create(t, env, issue.Build()))
	}
	return review, all
}

func undecided(*v1alpha1.ReviewIssue) {}

// What decides about findings of the base branch, or is shown to people, does not go with an old pull request.
func TestAReviewGoesWithItsIssuesUnlessAPersonHasDecided(t *testing.T) {
	ns := env.Organization(t, "reviews")
	settings := quick
	settings.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(2 * time.Hour))
	start(t, settings, reviews.Settings{}.SetupWithManager, reviewissue.SetupWithManager)
	env.Create(t, builder.Repository("repo").In(ns).Build())
	var stays []client.Object
	for name, change := range map[string]func(*v1alpha1.ReviewIssue){
		"muted":     func(i *v1alpha1.ReviewIssue) { i.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted },
		"confirmed": func(i *v1alpha1.ReviewIssue) { i.Spec.Triage.UserStatus = v1alpha1.UserStatusActive },
		"commented": func(i *v1alpha1.ReviewIssue) { i.Spec.Triage.Comments = "see #4" },
	} {
		review, issues := pullRequest(t, ns, name, 1, change)
		stays = append(stays, review, issues[0], testenv.Create(t, env, builder.ReviewIssue(name+"-2").In(ns).Review(name).Build()))
	}
	empty, _ := pullRequest(t, ns, "without-issues", 0, nil)
	old, issues := pullRequest(t, ns, "z-old", 3, undecided) // the last to be checked
	issuesOf := map[string]int{"muted": 2, "confirmed": 2, "commented": 2, empty.Name: 0, old.Name: len(issues)}
	harness.Eventually(t, func(g Gomega) {
		for _, review := range testenv.List(t, g, env, &v1alpha1.ReviewList{}, client.InNamespace(ns)).Items {
			_, _, ok := finished(&review)
			g.Expect(ok).To(BeTrue())
			g.Expect(review.Status.OpenIssueCount).To(BeEquivalentTo(issuesOf[review.Name]), review.Name)
		}
		for _, issue := range testenv.List(t, g, env, &v1alpha1.ReviewIssueList{}, client.InNamespace(ns)).Items {
			g.Expect(issue.Status.ObservedGeneration).To(Equal(issue.Generation))
		}
	})
	setRetention(t, "reviews", v1alpha1.Retention{IdleReviews: duration(time.Hour)})
	env.AwaitGone(t, empty, old, issues[0], issues[1], issues[2])
	announced(t, "reviews", "with issues 3.")
	for _, object := range stays {
		if env.Gone(t, object) {
			t.Errorf("%T %s is gone", object, object.GetName())
		}
	}
}

// The issues go first, each only as it was seen, so that no decision is lost that is made meanwhile.
func TestWhatHappensWhileAReviewIsRemoved(t *testing.T) {
	ns := env.Organization(t, "meanwhile")
	setRetention(t, "meanwhile", v1alpha1.Retention{IdleReviews: duration(time.Hour)})
	controllertest.RefuseRemovals(t, env, ns)
	mute := func(i *v1alpha1.ReviewIssue) { i.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted }
	none := func(*v1alpha1.Review, []*v1alpha1.ReviewIssue) {}
	for _, c := range []struct {
		name string
		// before happens before the removal, but the cache does not show it yet; first and last when the first and the last
		// issue is removed.
		before, first, last func(*v1alpha1.Review, []*v1alpha1.ReviewIssue)
		stays               bool
		// left are the issues that stay.
		left int
	}{
		{name: "nothing", before: none, first: none, last: none},
		{name: "decided-before", first: none, last: none, stays: true, left: 3,
			before: func(_ *v1alpha1.Review, issues []*v1alpha1.ReviewIssue) { testenv.Change(t, env, issues[2], mute) }},
		{name: "decided", before: none, last: none, stays: true, left: 2,
			first: func(_ *v1alpha1.Review, issues []*v1alpha1.ReviewIssue) { testenv.Change(t, env, issues[1], mute) }},
		{name: "counted", before: none, last: none,
			first: func(review *v1alpha1.Review, _ []*v1alpha1.ReviewIssue) {
				testenv.ChangeStatus(t, env, review, func(r *v1alpha1.Review) { r.Status.OpenIssueCount = 2 })
			}},
		{name: "new-commit", before: none, last: none, stays: true,
			first: func(review *v1alpha1.Review, _ []*v1alpha1.ReviewIssue) {
				testenv.Change(t, env, review, func(r *v1alpha1.Review) {
					r.Spec.ReviewedCommits = []v1alpha1.ReviewedCommit{{SHA: "a", ReviewedAt: v1alpha1.Now()}}
				})
			}},
		{name: "new-issue", before: none, first: none, stays: true, left: 1,
			last: func(review *v1alpha1.Review, _ []*v1alpha1.ReviewIssue) {
				env.Create(t, builder.ReviewIssue("new").In(ns).Review(review.Name).Build())
			}},
		{name: "legal-hold", first: none, last: none, stays: true, left: 3,
			before: func(review *v1alpha1.Review, _ []*v1alpha1.ReviewIssue) {
				testenv.Change(t, env, review, func(r *v1alpha1.Review) { r.Labels = controllertest.LegalHold })
			}},
		{name: "refused-issue", first: none, last: none, stays: true, left: 2,
			before: func(_ *v1alpha1.Review, issues []*v1alpha1.ReviewIssue) {
				testenv.Change(t, env, issues[1], func(i *v1alpha1.ReviewIssue) { i.Labels = controllertest.LegalHold })
			}},
		{name: "settings-changed", before: none, last: none, stays: true, left: 2,
			first: func(*v1alpha1.Review, []*v1alpha1.ReviewIssue) {
				setRetention(t, "meanwhile", v1alpha1.Retention{IdleReviews: duration(90 * time.Minute)})
			}},
	} {
		review, issues := pullRequest(t, ns, c.name, 3, undecided)
		review.Status.UpdatedAt = new(v1alpha1.NewTime(time.Now().Add(-2 * time.Hour)))
		markObserved(t, review, issues[0], issues[1], issues[2])
		seen := issues[2].DeepCopy()
		c.before(review, issues)
		live, removed := env.AsController(t), 0
		r := newReconciler(interceptor.NewClient(live, interceptor.Funcs{
			Get: func(ctx context.Context, from client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
				if issue, is := into.(*v1alpha1.ReviewIssue); is && key.Name == seen.Name {
					seen.DeepCopyInto(issue)
					return nil
				}
				return from.Get(ctx, key, into, options...)
			},
			List: func(ctx context.Context, from client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				err := from.List(ctx, list, options...)
				if issues, is := list.(*v1alpha1.ReviewIssueList); is {
					for i := range issues.Items {
						if issues.Items[i].Name == seen.Name {
							seen.DeepCopyInto(&issues.Items[i])
						}
					}
				}
				return err
			},
			Delete: func(ctx context.Context, from client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				if _, is := object.(*v1alpha1.ReviewIssue); is {
					if removed++; removed == 1 {
						c.first(review, issues)
					}
					if removed == 3 {
						c.last(review, issues)
					}
				}
				return from.Delete(ctx, object, options...)
			},
		}), nil, quick)
		r.Live = live
		r.agenda.change(nil, testenv.Get(t, NewWithT(t), env, review))
		p := newPass()
		_, err := r.work(t.Context(), testenv.Get(t, NewWithT(t), env, builder.Organization("meanwhile").Build()), p)
		harness.Must(t, err)
		left := testenv.List(t, NewWithT(t), env, &v1alpha1.ReviewIssueList{}, client.InNamespace(ns),
			client.MatchingFields{"spec.reviewRef.name": c.name}).Items
		harness.Same(t, c.name+": issues that stay", c.left, len(left))
		harness.Same(t, c.name+": the review stays", c.stays, !env.Gone(t, review))
		harness.Same(t, c.name+": removed reviews", c.stays, p.retired[idleReviews] == 0)
	}
}

// The rate holds for all organizations, so one with large reviews must not keep the others waiting.
func TestTheIssuesOfAReviewCountTowardsATurn(t *testing.T) {
	ns := env.Organization(t, "turn")
	setRetention(t, "turn", v1alpha1.Retention{IdleReviews: duration(time.Hour)})
	live := env.AsController(t)
	r := newReconciler(live, nil, quick)
	r.Live, r.batch = live, 3
	for _, name := range []string{"a", "b"} {
		review, issues := pullRequest(t, ns, name, 2, undecided)
		review.Status.UpdatedAt = new(v1alpha1.NewTime(time.Now().Add(-2 * time.Hour)))
		markObserved(t, review, issues[0], issues[1])
		r.agenda.change(nil, review)
	}
	p, o := newPass(), testenv.Get(t, NewWithT(t), env, builder.Organization("turn").Build())
	for _, want := range []bool{false, true} {
		done, err := r.work(t.Context(), o, p)
		harness.Must(t, err)
		harness.Same(t, "the pass is complete", want, done)
	}
	harness.Same(t, "removed reviews", 2, p.retired[idleReviews])
}

// A review with many issues is removed over several turns, also if requests fail meanwhile. The controller of Reviews
// counts them only if some stay: subscribers of an open pull request must not see its issues vanish, and a recorded
// change would begin a new period.
func TestAReviewIsEmptiedOverSeveralTurnsWithoutAnUpdate(t *testing.T) {
	g := NewWithT(t)
	ns := env.Organization(t, "emptied")
	setRetention(t, "emptied", v1alpha1.Retention{IdleReviews: duration(time.Hour), ClosedFindings: duration(time.Hour)})
	emptying := reviews.NewEmptying()
	controllertest.Start(t, env, reviews.Settings{Emptying: emptying}.SetupWithManager, reviewissue.SetupWithManager)
	env.Create(t, builder.Repository("repo").In(ns).Build())
	settings, clock := quick, clocktesting.NewFakePassiveClock(time.Now().Add(2*time.Hour))
	settings.Emptying, settings.Clock = emptying, clock
	live, loses, lost := env.AsController(t), client.Object(nil), error(nil)
	fails := func(object client.Object) bool { return lost != nil && reflect.TypeOf(object) == reflect.TypeOf(loses) }
	failing := interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, from client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, is := into.(*v1alpha1.Organization); is && fails(into) {
				return lost
			}
			return from.Get(ctx, key, into, options...)
		},
		Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if fails(object) {
				return lost
			}
			return to.Delete(ctx, object, options...)
		},
	})
	r := newReconciler(failing, nil, settings)
	r.Live, r.batch = failing, 3
	o := testenv.Get(t, g, env, builder.Organization("emptied").Build())
	counted := func(name string, open int) (review *v1alpha1.Review) {
		harness.Eventually(t, func(g Gomega) {
			review = testenv.Get(t, g, env, builder.Review(name).In(ns).Build())
			_, _, ok := finished(review)
			g.Expect(ok).To(BeTrue())
			g.Expect(review.Status.OpenIssueCount).To(BeEquivalentTo(open))
			for _, issue := range testenv.List(t, g, env, &v1alpha1.ReviewIssueList{}, client.InNamespace(ns)).Items {
				g.Expect(issue.Status.ObservedGeneration).To(Equal(issue.Generation))
			}
		})
		return review
	}
	turn := func(p *pass) bool {
		done, err := r.work(t.Context(), o, p)
		harness.Must(t, err)
		return done
	}
	pullRequest(t, ns, "marker", 0, nil)
	pullRequest(t, ns, "decided", 5, undecided)
	pullRequest(t, ns, "removed", 5, undecided)
	removed, decided := counted("removed", 5), counted("decided", 5)

	p := newPass()
	r.agenda.change(nil, removed)
	harness.Same(t, "complete after a turn", false, turn(p))
	harness.Same(t, "removed issues", 3, p.issues)
	// Both reviews are enqueued with the same delay.
	env.Create(t, builder.ReviewIssue("marker-1").In(ns).Review("marker").Build())
	counted("marker", 1)
	harness.Same(t, "status of a review that is being emptied", removed.Status, testenv.Get(t, g, env, removed).Status)

	for _, lost = range []error{
		errors.New("connection reset by peer"), apierrors.NewTooManyRequests("full", 1),
		apierrors.NewInternalError(errors.New("etcdserver: request timed out")),
	} {
		// The dry run of its removal; an issue's; and between them the API server is away for long.
		for _, loses = range []client.Object{
			&v1alpha1.Review{}, &v1alpha1.Organization{}, &v1alpha1.ReviewIssue{}, &v1alpha1.Organization{},
		} {
			clock.SetTime(clock.Now().Add(maxInterrupted))
			_, err := r.work(t.Context(), o, p)
			g.Expect(err).To(MatchError(lost))
			g.Expect(emptying.Has(removed)).To(BeTrue(), "it is still being emptied after a request about a %T: %v", loses, lost)
		}
	}
	lost = nil
	due := testenv.Create(t, env, builder.Finding("f-due").In(ns).Closed(time.Now(), "s").Build())
	markObserved(t, due)
	r.agenda.change(nil, due)
	harness.Same(t, "complete although a finding has become due", false, turn(p))
	env.AwaitGone(t, removed)
	harness.Same(t, "complete after the finding", true, turn(p))
	env.AwaitGone(t, due)

	p = newPass()
	r.agenda.change(nil, decided)
	harness.Same(t, "complete after a turn", false, turn(p))
	rest := testenv.List(t, g, env, &v1alpha1.ReviewIssueList{}, client.InNamespace(ns),
		client.MatchingFields{"spec.reviewRef.name": decided.Name}).Items
	testenv.Change(t, env, &rest[0], func(i *v1alpha1.ReviewIssue) { i.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted })
	harness.Same(t, "complete after a decision", true, turn(p))
	counted("decided", 2)
}

func TestAReviewWhoseRemovalKeepsFailingStopsNoOther(t *testing.T) {
	g := NewWithT(t)
	lost := errors.New("connection reset by peer")
	for name, failing := range map[string]interceptor.Funcs{
		"list-of-issues": {List: func(ctx context.Context, from client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*metav1.PartialObjectMetadataList); is {
				return lost
			}
			return from.List(ctx, list, options...)
		}},
		"dry-run": {Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if _, is := object.(*v1alpha1.Review); is {
				return lost
			}
			return to.Delete(ctx, object, options...)
		}},
		"removal": {Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if _, is := object.(*v1alpha1.ReviewIssue); is {
				return lost
			}
			return to.Delete(ctx, object, options...)
		}},
	} {
		ns := env.Organization(t, name)
		setRetention(t, name, v1alpha1.Retention{IdleReviews: duration(time.Hour), ClosedFindings: duration(0)})
		review, issues := pullRequest(t, ns, "cut-off", 1, undecided)
		second, others := pullRequest(t, ns, "second", 1, undecided)
		long := v1alpha1.NewTime(time.Now().Add(-2 * time.Hour))
		review.Status.UpdatedAt, second.Status.UpdatedAt = &long, &long
		due := testenv.Create(t, env, builder.Finding("f-due").In(ns).Closed(time.Now(), "s").Build())
		markObserved(t, review, second, issues[0], others[0], due)
		clock, settings := clocktesting.NewFakePassiveClock(time.Now()), quick
		settings.Clock, settings.Emptying = clock, reviews.NewEmptying()
		r := newReconciler(interceptor.NewClient(env.AsController(t), failing), nil, settings)
		r.Live = r.Client
		o, p := testenv.Get(t, g, env, builder.Organization(name).Build()), newPass()
		r.agenda.change(nil, review)
		r.agenda.change(nil, second)
		for turn, want := range []struct{ gone, notRemoved int }{{0, 0}, {0, 0}, {0, 1}, {1, 1}, {1, 1}, {1, 2}} {
			if turn == 2 || turn == 5 {
				clock.SetTime(clock.Now().Add(maxInterrupted))
			}
			_, err := r.work(t.Context(), o, p)
			g.Expect(err).To(MatchError(lost), "%s: turn %d", name, turn)
			g.Expect(p.retired[closedFindings]).To(Equal(want.gone), "%s: turn %d: findings that are gone", name, turn)
			g.Expect(p.notRemoved).To(Equal(want.notRemoved), "%s: turn %d: reviews that were tried for long", name, turn)
			if turn == 0 {
				r.agenda.change(nil, due)
			}
		}
		env.AwaitGone(t, due)
		harness.Same(t, name+": a review is gone", false, env.Gone(t, review) || env.Gone(t, second))
	}
}

func TestWhatInterruptsTheRemovalOfAReview(t *testing.T) {
	denied := webhookerrors.ToStatusErr("hold", &metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests})
	for reason, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":           {nil, false},
		"no response":        {errors.New("connection reset by peer"), true},
		"no server":          {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		"etcd took too long": {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), true},
		"overload":           {apierrors.NewTooManyRequests("full", 1), true},
		"a webhook is down":  {apierrors.NewInternalError(errors.New(`failed calling webhook "x": no route`)), false},
		"a webhook denies":   {denied, false},
		"a conflict":         {apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("moved on")), false},
	} {
		harness.Same(t, reason, tc.want, isInterruption(tc.err))
	}
}
