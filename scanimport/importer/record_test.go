package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestSkipsAreBoundedAndNoneIsLostFromTheCount(t *testing.T) {
	want := []v1alpha1.ScanSkip{{Reason: "b", Count: 2}, {Reason: "a", Count: 1}, {Reason: "c", Count: 1}}
	harness.Same(t, "the most frequent first", want, skips(map[string]int{"a": 1, "b": 2, "c": 1}))
	for _, n := range []int{v1alpha1.MaxScanSkips, v1alpha1.MaxScanSkips + 1, 3 * v1alpha1.MaxScanSkips} {
		because, want := map[string]int{}, 0
		for i := range n {
			because[fmt.Sprintf("%03d %s", i, strings.Repeat("ü", 200))] = i + 1
			want += i + 1
		}
		got, sum := skips(because), 0
		for _, s := range got {
			sum += int(s.Count)
			if utf8.RuneCountInString(s.Reason) > v1alpha1.MaxScanSkipReason {
				t.Errorf("%d reasons: %q is too long", n, s.Reason)
			}
		}
		last := got[len(got)-1].Reason
		if len(got) != v1alpha1.MaxScanSkips || sum != want || (last == otherReasons) != (n > v1alpha1.MaxScanSkips) {
			t.Errorf("%d reasons: %d kept, of %d results of %d, the last is %q", n, len(got), sum, want, last)
		}
	}
}

// By the clock of its machine, a scan that failed could count as unfinished after later ones have succeeded.
func TestAScanEndsByTheAPIServersClock(t *testing.T) {
	server := time.Now().Add(-48 * time.Hour)
	testenv.SetServerTime(t, server)
	var scan v1alpha1.Scan // as it was written last
	c := answering(t, func(r *http.Request) (code int, object any) {
		scan = v1alpha1.Scan{}
		harness.NoError(t, "decode the scan", json.NewDecoder(r.Body).Decode(&scan))
		return http.StatusOK, scan
	})
	im := New(c, Target{Namespace: "org-acme", Repository: "shop", Project: "web"}, Options{})
	harness.Must(t, im.Refuse(t.Context(), &Batch{Tool: "lint"}, errors.New("no such project")))
	if end := scan.Spec.CompletedAt; end == nil || end.Sub(server).Abs() > time.Minute {
		t.Errorf("it ended at %v, want about %v", end, server)
	}

	// An import that may have lost its Lease must not end after those that replaced it.
	leases := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, lease client.Object, o ...client.CreateOption) error {
			err := c.Create(ctx, lease, o...)
			testenv.SetServerTime(t, server.Add(time.Hour)) // it may be suspended before it gets the answer
			return err
		},
	})
	for _, c := range []struct {
		reason  string
		failure error
		silent  time.Duration
		want    time.Time
	}{
		{"it holds its Lease", errors.New("no answer"), 0, server.Add(time.Hour)},
		{"somebody took its Lease", fmt.Errorf("stopped: %w", errLeaseLost), 0, server},
		{"it was suspended", errors.New("no answer"), time.Hour, server},
		{"it was suspended when it had done everything", nil, time.Hour, server},
		{"it has done everything", nil, 0, server.Add(time.Hour)},
	} {
		testenv.SetServerTime(t, server)
		held := lockBy(leases, strings.ReplaceAll(c.reason, " ", "-"))
		harness.Must(t, held.acquire(t.Context()))
		held.renewedAt.Store(new(held.renewedAt.Load().Add(-c.silent)))
		j := &job{Batch: &Batch{Tool: "lint"}, summary: &Summary{}, lock: held, scan: scanContext{scanID: "s-1"}}
		j.record = im.scanRecord(j)
		harness.Must(t, im.end(t.Context(), j, c.failure))
		if end := scan.Spec.CompletedAt; end == nil || end.Sub(c.want).Abs() > time.Minute {
			t.Errorf("%s: it ended at %v, want about %v", c.reason, end, c.want)
		}
	}
}

// The Scan of a removed project went with it. Any other Scan without an end counts as running until it is abandoned.
func TestAnEndThatIsNotRecordedIsReportedUnlessTheProjectIsGone(t *testing.T) {
	project := metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "org-acme", Name: "web", UID: "there"},
	}
	c := answering(t, func(r *http.Request) (code int, object any) {
		if r.Method == http.MethodGet {
			return http.StatusOK, project
		}
		return harness.Refusal(apierrors.NewConflict(schema.GroupResource{Resource: "scans"}, "s-1", errors.New("it is gone")))
	})
	im := New(c, Target{Namespace: "org-acme", Repository: "shop", Project: "web"}, Options{})
	for uid, want := range map[types.UID]string{
		"deleted": "the cause", "there": "the cause\nrecord the end of scan s-1: Operation cannot be fulfilled on scans \"s-1\": it is gone",
	} {
		j := &job{Batch: &Batch{Tool: "lint"}, summary: &Summary{}, scan: scanContext{scanID: "s-1"}, recorded: true,
			parent: &parent{client: c, key: client.ObjectKeyFromObject(&project), uid: uid}}
		j.record = im.scanRecord(j)
		j.record.uid = "u-1"
		err := im.fail(t.Context(), []*job{j}, errors.New("the cause"))
		harness.Same(t, fmt.Sprintf("the error of an import into the project %q", uid), want, fmt.Sprint(err))
	}
}

func TestALostLeaseCutsOffAWriteAtOnce(t *testing.T) {
	for cause, want := range map[error]time.Duration{errLeaseLost: 0, errors.New("stopped"): FinishTimeout} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			begun := time.Now()
			write := func(ctx context.Context) error {
				stop(cause)
				<-ctx.Done()
				return context.Cause(ctx)
			}
			if err := FinishWrite(ctx, write); !errors.Is(err, cause) {
				t.Errorf("%v: error %v", cause, err)
			}
			harness.Same(t, cause.Error()+": how long the write goes on", want, time.Since(begun))
			never := func(context.Context) error { return errors.New("a write that begins too late") }
			if err := FinishWrite(ctx, never); !errors.Is(err, cause) {
				t.Errorf("%v: error %v", cause, err)
			}
		})
	}
}

// Otherwise nobody would learn why a scan's progress stands still.
func TestAPanicWhileReportingIsToldAtTheEnd(t *testing.T) {
	progress, reports := &Progress{}, 0
	progress.Begin(1)
	panicked := make(chan struct{})
	err := Reporting(t.Context(), time.Millisecond, progress, func() error {
		<-panicked
		return nil
	}, func(context.Context) error {
		reports++
		close(panicked)
		panic("no such scan")
	})
	if safely.Stack(err) == "" || reports != 1 {
		t.Errorf("got %v after %d reports, want the panic of the only one", err, reports)
	}
}
