package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The facade imports for all organizations in one process.
func TestAPanicWhileWritingFailsTheImportAlone(t *testing.T) {
	panics := interceptor.NewClient(nil, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			panic("no such finding")
		},
	})
	held, there := &lock{}, &parent{}
	held.renewedAt.Store(new(time.Now()))
	there.checkedAt.Store(new(time.Now()))
	w := &writer{im: New(&Client{Client: panics}, Target{}, Options{}), lock: held, parent: there}
	err := w.all(t.Context(), []change{{action: ActionCreate, name: "f-1", spec: v1alpha1.FindingSpec{}}})
	if safely.Stack(err) == "" {
		t.Errorf("got %v, want the panic", err)
	}
}

// A stage may take minutes, and creating findings shows no error.
func TestAnImportThatWritesChecksFromTimeToTimeThatItsProjectExists(t *testing.T) {
	project := metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "org-acme", Name: "web", UID: "created-anew"},
	}
	c := answering(t, func(r *http.Request) (code int, object any) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		return http.StatusOK, project
	})
	p := &parent{client: c, key: client.ObjectKeyFromObject(&project), uid: "deleted"}
	p.checkedAt.Store(new(time.Now()))
	harness.NoError(t, "a recent check", p.sure(t.Context()))
	p.checkedAt.Store(new(time.Now().Add(-2 * parentInterval)))
	held := &lock{}
	held.renewedAt.Store(new(time.Now()))
	w := &writer{im: New(c, Target{Namespace: "org-acme"}, Options{}), lock: held, parent: p}
	err := w.all(t.Context(), []change{{action: ActionCreate, name: "f-1"}})
	harness.ErrorContains(t, "an old check", err, `project "web" was deleted during the import`)
}

// free is a Lease that nobody holds.
var free = coordinationv1.Lease{
	TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
	ObjectMeta: metav1.ObjectMeta{Namespace: "org-acme", Name: "free", ResourceVersion: "1"},
}

// It is that of a proxy, and ends the import: a finding that counted as deleted would be created again.
func TestA404OfAnotherServerIsNoDeletion(t *testing.T) {
	c := answering(t, func(r *http.Request) (code int, object any) {
		if r.Method == http.MethodGet && path.Base(r.URL.Path) == free.Name {
			return http.StatusOK, free
		}
		return http.StatusNotFound, "404 page not found"
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease := func(name string) *lock {
		return leaseLock(c, client.ObjectKey{Namespace: "org-acme", Name: name}, nil)
	}
	w := &writer{im: New(c, Target{Namespace: "org-acme"}, Options{}), summary: &Summary{}, progress: &Progress{}}
	_, _, readErr := Read[v1alpha1.Finding](ctx, c, "org-acme", "f-1")
	_, leaseErr := lease("l-1").read(ctx)
	for what, err := range map[string]error{
		"read a finding":    readErr,
		"close a finding":   w.change(ctx, &change{action: ActionClose, name: "f-1", before: &v1alpha1.Finding{}}),
		"read a Lease":      leaseErr,
		"take a free Lease": lease(free.Name).acquire(ctx),
	} {
		if !kube.IsUnknownKind(err) {
			t.Errorf("%s: error %v, want the server's 404", what, err)
		}
	}
}

// It would be repeated, for a Lease without an end.
func TestADenialWithTheCodeOfAConflictIsNone(t *testing.T) {
	var enough context.CancelFunc
	denied := 0
	c := answering(t, func(r *http.Request) (code int, object any) {
		switch {
		case r.Method != http.MethodGet:
			if denied++; denied == 2 {
				enough()
			}
			return harness.Refusal(webhookerrors.ToStatusErr("hold.example.com", &metav1.Status{Code: http.StatusConflict}))
		case path.Base(r.URL.Path) == free.Name:
			return http.StatusOK, free
		}
		return harness.Refusal(apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "findings"}, "f-1"))
	})
	w := &writer{im: New(c, Target{Namespace: "org-acme"}, Options{}), summary: &Summary{}, progress: &Progress{}}
	lease := leaseLock(c, client.ObjectKey{Namespace: "org-acme", Name: free.Name}, nil)
	for what, write := range map[string]func(context.Context) error{
		"create a finding": func(ctx context.Context) error {
			return w.create(ctx, &change{action: ActionCreate, name: "f-1"})
		},
		"close a finding": func(ctx context.Context) error {
			return w.change(ctx, &change{action: ActionClose, name: "f-1", before: &v1alpha1.Finding{}})
		},
		"take a free Lease": lease.acquire,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		denied, enough = 0, cancel
		if err := write(ctx); err == nil || !RefusesObject(err) || denied != 1 {
			t.Errorf("%s: error %v after %d denials, want that of the first", what, err, denied)
		}
	}
}

// Later imports may know only the tool's current name, and would leave the finding open for good.
func TestAFindingThatIsNotClosedGetsTheCurrentNameOfItsTool(t *testing.T) {
	findings := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "findings"}
	refusal := webhookerrors.ToStatusErr("hold.example.com", nil)
	for why, tc := range map[string]struct {
		first          *apierrors.StatusError
		tool, was, end string
	}{
		"it was decided about": {apierrors.NewConflict(findings, "f-1", errors.New("changed")), "lint", "oldlint", "lint"},
		"a webhook refuses it": {refusal, "lint", "oldlint", "lint"},
		"its name is newer":    {refusal, "semgrep", "Semgrep OSS", "Semgrep OSS"},
	} {
		decided := v1alpha1.Finding{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Finding"},
			ObjectMeta: metav1.ObjectMeta{Name: "f-1"}, Spec: v1alpha1.FindingSpec{Tool: tc.was},
		}
		before := decided
		decided.Spec.Triage.UserStatus = v1alpha1.UserStatusActive
		stored, writes := before.Spec, 0
		c := answering(t, func(r *http.Request) (code int, object any) {
			if r.Method == http.MethodGet {
				return http.StatusOK, decided
			}
			var finding v1alpha1.Finding
			harness.NoError(t, "the body", json.NewDecoder(r.Body).Decode(&finding))
			if writes++; writes == 1 {
				return harness.Refusal(tc.first)
			}
			stored = finding.Spec
			return http.StatusOK, finding
		})
		held, there := &lock{}, &parent{}
		held.renewedAt.Store(new(time.Now()))
		there.checkedAt.Store(new(time.Now()))
		scan := &scanContext{tool: tc.tool, formerly: "oldlint", scanID: "s-1"}
		w := &writer{im: New(c, Target{Namespace: "org-acme"}, Options{}), lock: held, parent: there, scan: scan,
			summary: &Summary{}, progress: &Progress{}}
		harness.Must(t, w.all(t.Context(), []change{closing(scan, &before)}))
		harness.Same(t, why+": the tool and whether it is closed", []any{tc.end, false},
			[]any{stored.Tool, stored.Closed != nil})
		done, _ := w.progress.Add()
		harness.Same(t, why+": left open, and changes that were done", []int{1, 1}, []int{w.summary.LeftOpen, done - 1})
	}
}

// The client library replaces a token that was refused, but does not repeat the request.
func TestARequestThatIsUnauthorizedIsTriedOnceMore(t *testing.T) {
	for reason, tc := range map[string]struct{ refused, tries int }{"another token": {1, 2}, "no other token": {9, 2}} {
		expired, tries := apierrors.NewUnauthorized("expired"), 0
		err := Retry(t.Context(), func(context.Context) error {
			if tries++; tries <= tc.refused {
				return expired
			}
			return nil
		})
		harness.Same(t, reason+": tries", tc.tries, tries)
		harness.Same(t, reason+": it is refused", tc.refused > 1, errors.Is(err, expired))
	}
}

// A suspended process, such as on a sleeping laptop, resumes within a write: its facts are older than those of the
// import that has taken the Lease meanwhile.
func TestAChangeThatConflictsIsNotSentAgainOnceTheLeaseIsLost(t *testing.T) {
	scan := &scanContext{tool: "lint", formerly: "oldlint", scanID: "s-1"}
	before := v1alpha1.Finding{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Finding"},
		ObjectMeta: metav1.ObjectMeta{Name: "f-1"}, Spec: v1alpha1.FindingSpec{Tool: "oldlint"},
	}
	for why, ch := range map[string]change{
		"it reports the finding":                      {action: ActionUpdate, name: "f-1", before: &before, spec: v1alpha1.FindingSpec{Tool: "lint"}},
		"it closes the finding, and renames its tool": closing(scan, &before),
	} {
		newer, taken := before, free
		newer.Spec.Triage.UserStatus = v1alpha1.UserStatusActive
		taken.Spec.HolderIdentity = new("another")
		held, there, writes := &lock{key: client.ObjectKeyFromObject(&free), identity: "me"}, &parent{}, 0
		c := answering(t, func(r *http.Request) (code int, object any) {
			switch {
			case path.Base(r.URL.Path) == free.Name:
				return http.StatusOK, taken
			case r.Method == http.MethodGet:
				return http.StatusOK, newer
			}
			if writes++; writes > 1 {
				return http.StatusOK, newer
			}
			held.renewedAt.Store(new(time.Now().Add(-time.Hour))) // the process was suspended
			return harness.Refusal(apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "findings"}, "f-1",
				errors.New("changed")))
		})
		held.client = c
		held.renewedAt.Store(new(time.Now()))
		there.checkedAt.Store(new(time.Now()))
		w := &writer{im: New(c, Target{Namespace: "org-acme"}, Options{}), lock: held, parent: there, scan: scan,
			summary: &Summary{}, progress: &Progress{}}
		if err := w.all(t.Context(), []change{ch}); !errors.Is(err, errLeaseLost) || writes != 1 {
			t.Errorf("%s: error %v after %d writes, want that the Lease was lost after the first", why, err, writes)
		}
	}
}

// A webhook may have a passing fault of its own, often while the API server restarts.
func TestADenialWithTheCodeOfAnOutageIsTriedAgain(t *testing.T) {
	for _, tc := range []struct{ code, retryAfter, unreachable, denials int32 }{
		{http.StatusInternalServerError, 0, 0, 3}, {http.StatusTooManyRequests, 0, 0, 3},
		{http.StatusInternalServerError, 0, 5, 3},
		{http.StatusServiceUnavailable, 9, 0, 3},
		{http.StatusTooManyRequests, 9, 0, 1}, // the client library has already tried again
		{http.StatusForbidden, 0, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := int32(0)
			var denied time.Time
			err := Retry(t.Context(), func(context.Context) error {
				if tries++; tries <= tc.unreachable {
					return syscall.ECONNREFUSED
				}
				denied = cmp.Or(denied, time.Now())
				return webhookerrors.ToStatusErr("hold.example.com", &metav1.Status{
					Code: tc.code, Details: &metav1.StatusDetails{RetryAfterSeconds: tc.retryAfter},
				})
			})
			if tries != tc.unreachable+tc.denials || !RefusesObject(err) || time.Since(denied) > time.Second {
				t.Errorf("%+v: error %v after %d tries, %s after the first denial", tc, err, tries, time.Since(denied))
			}
		})
	}
}

// It may be meant: with 10,000 findings, the further tries would take half an hour.
func TestDenialsAreTriedAgainOnlyWhileThatMayHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		tries := make([]int, 100) // by finding; a further try helps the sixth
		harness.Must(t, Each(t.Context(), 1, tries, func(ctx context.Context, made *int) error {
			err := Retry(ctx, func(context.Context) error {
				if *made++; made == &tries[5] && *made == 2 {
					return nil
				}
				return webhookerrors.ToStatusErr("hold.example.com", &metav1.Status{Code: http.StatusInternalServerError})
			})
			if err != nil && !RefusesObject(err) {
				return err
			}
			return nil
		}))
		want := slices.Concat(slices.Repeat([]int{3}, 5), []int{2}, slices.Repeat([]int{3}, 10), slices.Repeat([]int{1}, 84))
		if !slices.Equal(tries, want) || time.Since(begun) > 15*time.Second {
			t.Errorf("tries %v in %s, want %v", tries, time.Since(begun), want)
		}
	})
}

func TestWhatIsRefusedBecauseOfTheObject(t *testing.T) {
	findings := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "findings"}
	forbidden := func(why string) error { return apierrors.NewForbidden(findings, "f-1", errors.New(why)) }
	for name, tc := range map[string]struct {
		reason string
		err    error
		object bool
	}{
		"invalid":                {"the schema refuses the object", apierrors.NewInvalid(schema.GroupKind{Kind: "Finding"}, "f-1", nil), true},
		"a cluster's own policy": {"it may accept other objects", forbidden("ValidatingAdmissionPolicy 'hold' with binding 'hold' denied request: a legal hold"), true},
		"a webhook":              {"it may accept other objects", forbidden(`admission webhook "hold.example.com" denied the request: a legal hold`), true},
		"a webhook that sets no code": {"it may accept other objects",
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest, Message: `admission webhook "hold.example.com" denied the request: a legal hold`}}, true},
		"a webhook that chooses the code of an outage": {"it may accept other objects",
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusServiceUnavailable, Message: `admission webhook "hold.example.com" denied the request: no database`}}, true},
		"a webhook that is down": {"it is asked again",
			apierrors.NewInternalError(errors.New(`failed calling webhook "hold.example.com": no answer`)), false},
		"this project's policy": {"the account may write no facts",
			forbidden("ValidatingAdmissionPolicy 'findings-facts.appsec.dev' with binding 'findings-facts.appsec.dev' denied request: me needs the verb report"), false},
		"no role":  {"the account may write nothing", forbidden(`User "me" cannot patch resource "findings"`), false},
		"quota":    {"nothing else can be created either", forbidden("exceeded quota: findings"), false},
		"conflict": {"it is decided again", apierrors.NewConflict(findings, "f-1", errors.New("changed")), false},
	} {
		harness.Same(t, name+", because "+tc.reason, tc.object, RefusesObject(tc.err))
	}
}
