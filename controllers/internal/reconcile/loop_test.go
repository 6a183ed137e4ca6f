package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

type (
	scope       = reconcile.Scope[*v1alpha1.Project, *v1alpha1.ProjectStatus]
	phase       = reconcile.Phase[*scope]
	projectLoop = reconcile.Loop[*scope]
)

func newScope() *scope { return reconcile.NewScope(&v1alpha1.Project{}) }

// observe is a phase that changes the status.
func observe(_ context.Context, s *scope) error {
	s.Status.ObservedGeneration, s.Status.Summary = s.Object.Generation, "observed"
	s.Judge(conditions.Ready("Done."))
	return nil
}

// again is a phase that asks for another reconcile.
func again(wait time.Duration) phase {
	return func(_ context.Context, s *scope) error { s.RequeueAfter(wait); return nil }
}

func fails(err error) phase { return func(context.Context, *scope) error { return err } }

func stops(_ context.Context, s *scope) error { s.Stop(); return nil }

func reconcileOnce(t *testing.T, project *v1alpha1.Project, loop projectLoop) (ctrl.Result, error) {
	t.Helper()
	loop.Client, loop.Clock, loop.New = env.AsController(t), clock.RealClock{}, newScope
	return loop.Run(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(project)})
}

func newProject(t *testing.T) *v1alpha1.Project {
	t.Helper()
	return testenv.Create(t, env, builder.Project("p").In(env.Namespace(t)).Build())
}

// stored returns the project as stored; nil if it does not exist.
func stored(t *testing.T, project *v1alpha1.Project) *v1alpha1.Project {
	t.Helper()
	got := &v1alpha1.Project{}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(project), got); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTheShortestWaitThatAnyPhaseAsksForCounts(t *testing.T) {
	const short, long = time.Minute, time.Hour
	for _, c := range []struct {
		reason string
		asked  []time.Duration
		want   time.Duration
	}{
		{"none asks", []time.Duration{0, 0}, 0},
		{"a later phase asks for more", []time.Duration{short, long}, short},
		{"a later phase asks for less", []time.Duration{long, short}, short},
		{"a later phase asks for nothing", []time.Duration{short, 0}, short},
		{"time that is over asks for nothing", []time.Duration{short, -time.Second}, short},
	} {
		var phases []phase
		for _, wait := range c.asked {
			phases = append(phases, again(wait))
		}
		result, err := reconcileOnce(t, newProject(t), projectLoop{Phases: phases})
		if err != nil || result.RequeueAfter != c.want {
			t.Errorf("%s: got %v, %v, want %v", c.reason, result, err, c.want)
		}
	}
}

func TestWhatWasObservedIsStoredThoughALaterPhaseFails(t *testing.T) {
	project, broken := newProject(t), errors.New("broken")
	var reported []string
	_, err := reconcileOnce(t, project, projectLoop{
		Phases: []phase{observe, fails(broken), func(context.Context, *scope) error {
			t.Error("a phase ran after one that failed")
			return nil
		}},
		Stored: func(s *scope) { reported = append(reported, s.Before.Summary+" -> "+s.Status.Summary) },
	})
	if !errors.Is(err, broken) {
		t.Errorf("the failure is not reported: %v", err)
	}
	harness.Same(t, "the stored summary", "observed", stored(t, project).Status.Summary)
	harness.Same(t, "reported as stored", []string{" -> observed"}, reported)
}

func TestAPhaseEndsAReconcileAndKeepsTheStatusFromBeingStored(t *testing.T) {
	project := newProject(t)
	_, err := reconcileOnce(t, project, projectLoop{Phases: []phase{stops, observe}})
	harness.Must(t, err)
	before := stored(t, project)
	leave := func(_ context.Context, s *scope) error { s.LeaveStatus(); return nil }
	_, err = reconcileOnce(t, project, projectLoop{Phases: []phase{leave, observe}})
	harness.Must(t, err)
	if got := stored(t, project); got.Status.Summary != "" || got.ResourceVersion != before.ResourceVersion {
		t.Errorf("stored %q", got.Status.Summary)
	}
}

func TestAConflictComesBackAndHidesNoOtherFailure(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "projects"}, "p", errors.New("moved on"))
	project := newProject(t)
	result, err := reconcileOnce(t, project, projectLoop{Phases: []phase{fails(conflict)}})
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("a conflict: %v, %v", result, err)
	}
	outdate := func(_ context.Context, s *scope) error { s.Object.ResourceVersion = "1"; return nil }
	broken := errors.New("broken")
	_, err = reconcileOnce(t, project, projectLoop{Phases: []phase{observe, outdate, fails(broken)}})
	if !errors.Is(err, broken) || !apierrors.IsConflict(err) {
		t.Errorf("a failure, and a conflict of the write after it: %v", err)
	}
}

func TestAnObjectThatIsDeletedGoesThroughItsRemovalFirst(t *testing.T) {
	project := newProject(t)
	waits := true
	loop := projectLoop{
		Phases: []phase{func(_ context.Context, s *scope) error {
			harness.Same(t, "the finalizers at the first phase",
				[]string{v1alpha1.CleanupFinalizer}, s.Object.Finalizers)
			return nil
		}},
		Removal: []phase{func(_ context.Context, s *scope) error {
			if !waits {
				s.Release()
			}
			s.RequeueAfter(time.Minute)
			return nil
		}, observe},
	}
	look := func() ctrl.Result {
		t.Helper()
		result, err := reconcileOnce(t, project, loop)
		harness.Must(t, err)
		return result
	}
	look()
	harness.Must(t, env.Client.Delete(t.Context(), project))
	if result := look(); result.RequeueAfter != time.Minute || stored(t, project).Status.Summary != "observed" {
		t.Errorf("while it waits: %v, %+v", result, stored(t, project).Status)
	}
	waits = false
	look()
	if got := stored(t, project); got != nil {
		t.Errorf("it was released and still exists: %+v", got)
	}
}

// Of several controllers of a kind, one adds the finalizer and releases the object.
func TestAForeignObjectGoesThroughTheRemovalAndGetsNoFinalizer(t *testing.T) {
	project := newProject(t)
	removed := false
	loop := projectLoop{
		Phases: []phase{observe}, Foreign: true,
		Removal: []phase{func(context.Context, *scope) error { removed = true; return nil }},
	}
	_, err := reconcileOnce(t, project, loop)
	harness.Must(t, err)
	held := stored(t, project)
	harness.Same(t, "finalizers", 0, len(held.Finalizers))
	harness.Must(t, patch.AddFinalizer(t.Context(), env.AsController(t), held, v1alpha1.CleanupFinalizer))
	harness.Must(t, env.Client.Delete(t.Context(), project))
	_, err = reconcileOnce(t, project, loop)
	harness.Must(t, err)
	if !removed || stored(t, project) == nil {
		t.Errorf("the removal ran: %t; the project: %v", removed, stored(t, project))
	}
}

func TestNothingIsDoneAboutWhatIsDeletedWithoutOurFinalizer(t *testing.T) {
	project := builder.Project("p").In(env.Namespace(t)).Build()
	project.Finalizers = []string{"example.com/hold"}
	env.Create(t, project)
	harness.Must(t, env.Client.Delete(t.Context(), project))
	for _, removal := range [][]phase{nil, {observe}} {
		_, err := reconcileOnce(t, project, projectLoop{Phases: []phase{observe}, Removal: removal})
		harness.Must(t, err)
	}
	harness.Same(t, "the stored summary", "", stored(t, project).Status.Summary)
}

func TestWhatDoesNotExistIsReportedAsGone(t *testing.T) {
	var gone []types.NamespacedName
	absent := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "absent"}}
	_, err := reconcileOnce(t, absent, projectLoop{
		Phases: []phase{fails(errors.New("a phase ran"))},
		Gone:   func(name types.NamespacedName) { gone = append(gone, name) },
	})
	harness.Must(t, err)
	harness.Same(t, "gone", []types.NamespacedName{{Namespace: "default", Name: "absent"}}, gone)
}
