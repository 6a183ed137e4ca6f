package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// said returns the verdict with the comment "old" about a finding of low severity.
func said(status v1alpha1.UserStatus, stale bool) verdict {
	return verdict{findingstate.Standing{
		UserStatus: status, Triage: v1alpha1.FindingTriage{UserStatus: status, Comments: "old"}, Stale: stale, Facts: "severity=low",
	}}
}

func TestADecisionNamesOnlyWhatDiffers(t *testing.T) {
	for reason, tc := range map[string]struct {
		mute    bool
		comment *string
		from    verdict
		changes bool
		becomes string
		patch   string
	}{
		"a decision":             {true, nil, said("open", false), true, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"basis":"severity=low","userStatus":"muted"}}}`},
		"with a comment":         {true, new("new"), said("open", false), true, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"basis":"severity=low","comments":"new","userStatus":"muted"}}}`},
		"the comment alone":      {true, new("new"), said("muted", false), true, "muted, commented", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"comments":"new"}}}`},
		"a comment taken back":   {false, new(""), said("active", false), true, "active, commented", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"comments":""}}}`},
		"nothing that is new":    {true, new("old"), said("muted", false), false, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{}}}`},
		"stale, repeated":        {true, nil, said("muted", true), true, "muted again", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"basis":"severity=low"}}}`},
		"stale, commented":       {false, new("new"), said("muted", true), true, "muted, commented", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{"comments":"new"}}}`},
		"no comment, none wiped": {true, nil, said("muted", false), false, "muted", `{"metadata":{"resourceVersion":"7"},"spec":{"triage":{}}}`},
	} {
		d := decision{findingstate.Decision{Comments: tc.comment}}
		if tc.mute {
			d.UserStatus = new(v1alpha1.UserStatusMuted)
		}
		harness.Same(t, reason+": it changes", tc.changes, d.changes(tc.from))
		harness.Same(t, reason+": it becomes", tc.becomes, d.becomes(tc.from))
		patch, err := d.patch(tc.from, "7")
		harness.Must(t, err)
		data, _ := patch.Data(client.Object(&v1alpha1.Finding{}))
		harness.Same(t, reason+": the patch", tc.patch, string(data))
	}
}

func TestRepeatingAStaleDecisionShowsWhatElseItChanges(t *testing.T) {
	for want, d := range map[string]findingstate.Decision{
		"muted again":                   {},
		"muted again, with other terms": {Reason: new(v1alpha1.DecisionFalsePositive)},
		"muted again, commented":        {Comments: new("new")},
	} {
		d.UserStatus = new(v1alpha1.UserStatusMuted)
		harness.Same(t, "it becomes", want, decision{d}.becomes(said("muted", true)))
	}
}

func TestAClockThatIsAheadReplacesNoDecisionInForce(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-4*time.Minute))
	v := said("muted", false)
	v.Triage.Reason = v1alpha1.DecisionAcceptedRisk
	v.Triage.ExpiresAt = new(v1alpha1.NewTime(time.Now().Add(-2 * time.Minute))) // only by the local clock it has come
	d := decision{findingstate.Decision{UserStatus: new(v1alpha1.UserStatusMuted)}}
	if d.changes(v) {
		t.Errorf("it becomes %s", d.becomes(v))
	}
}

// By the clock of this machine, a decision would be over before it is stored, or last for days longer.
func TestTheEndOfADecisionIsByTheTimeOfTheAPIServer(t *testing.T) {
	for clock, ahead := range map[string]time.Duration{"behind": -48 * time.Hour, "ahead": 48 * time.Hour} {
		server := time.Now().Add(-ahead)
		inServerTime := func(in time.Duration) string { return server.Add(in).UTC().Format(time.RFC3339) }
		for flags, want := range map[string]string{
			"--expires-in 24h":                            "",
			"--expires-at " + inServerTime(24*time.Hour):  "",
			"--expires-at " + inServerTime(-24*time.Hour): "which is not in the future",
		} {
			testenv.SetServerTime(t, time.Now()) // until a response contains another
			c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					testenv.SetServerTime(t, server)
					return c.Get(ctx, key, o, options...)
				},
			}).Build()
			given := decisionFlags{}
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			given.add(set, "findings")
			harness.Must(t, set.Parse(append(strings.Fields(flags), "--mute")))
			d, err := given.read()
			harness.Must(t, err)
			err = given.setEnd(t.Context(), &session{client: c, namespace: "org-acme"}, &d)
			if want != "" {
				harness.ErrorContains(t, clock+": "+flags, err, want)
				continue
			}
			harness.Must(t, err)
			if lasts := d.ExpiresAt.Sub(server); (lasts - 24*time.Hour).Abs() > time.Hour {
				t.Errorf("%s: %s: it lasts %s, want 24h", clock, flags, lasts)
			}
		}
	}
}

func TestWithoutAResponseTheEndOfADecisionIsNotGuessed(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return syscall.ECONNREFUSED
		},
	}).Build()
	given := decisionFlags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	given.add(set, "findings")
	harness.Must(t, set.Parse([]string{"--mute", "--expires-in=24h"}))
	d, err := given.read()
	harness.Must(t, err)
	err = given.setEnd(t.Context(), &session{client: c, namespace: "org-acme"}, &d)
	if !errors.Is(err, syscall.ECONNREFUSED) || d.ExpiresAt != nil {
		t.Errorf("got %v, and the end %v", err, d.ExpiresAt)
	}
}

// The answer to the first write is lost. The next attempt, up to a minute later, finds what has been written since.
func TestADecisionWithoutAnAnswerOverrulesNobody(t *testing.T) {
	const (
		ours   = `{"spec":{"triage":{"userStatus":"muted","comments":"noise","basis":"rated=low","by":"me"}}}`
		theirs = `{"spec":{"triage":{"userStatus":"active","by":"ann"}}}`
	)
	for reason, tc := range map[string]struct {
		since     []string
		overruled bool
	}{
		"nothing":                         {nil, false},
		"another part":                    {[]string{`{"metadata":{"labels":{"team":"web"}}}`}, false},
		"this decision":                   {[]string{ours}, false},
		"this decision, then other facts": {[]string{ours, `{"spec":{"details":{"severity":"high"}}}`}, false},
		"another decision":                {[]string{theirs}, true},
		"this decision, then another one": {[]string{ours, theirs}, true},
	} {
		for kind, decideAbout := range map[string]func(*triager, context.Context, string) (bool, error){
			"finding": (*triager).decideAboutFinding, "issue": (*triager).decideAboutIssue,
		} {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
					Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
						if attempts++; attempts > 1 {
							return c.Patch(ctx, o, patch, options...)
						}
						for _, written := range tc.since {
							harness.Must(t, c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(written))))
						}
						return io.ErrUnexpectedEOF
					},
				}).WithObjects(builder.Finding("x").In("org-acme").Build(), builder.ReviewIssue("x").In("org-acme").Build()).Build()
				d := decision{findingstate.Decision{UserStatus: new(v1alpha1.UserStatusMuted), Comments: new("noise")}}
				changed, err := decideAbout(&triager{session: &session{client: c, namespace: "org-acme"}, decision: d, dryRun: dryRunNone}, t.Context(), "x")
				says := fmt.Sprint(err)
				if tc.overruled != strings.HasPrefix(says, "ann has decided about it in the meantime") || !tc.overruled && (err != nil || !changed) {
					t.Errorf("%s, with %s written since: changed %t, error %s", kind, reason, changed, says)
				}
			})
		}
	}
}

// The answer to the write is lost, and the next read does not show what is stored.
func TestADecisionThatMayBeStoredIsNotCalledUntried(t *testing.T) {
	const unknown = "it is not known whether the decision was stored: check with `kubectl get finding x -n org-acme -o yaml` " +
		"at the API server https://acme.test before"
	expired := apierrors.NewUnauthorized("token expired")
	missing := apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "findings"}, "x")
	for reason, tc := range map[string]struct {
		read error
		says string
	}{
		"an interrupt":                             {context.Canceled, unknown},
		"an outage":                                {down, unknown},
		"an error about which there is advice":     {expired, unknown},
		"it is deleted, so it has no decision now": {missing, missing.Error()},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			written := false
			c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if !written {
						return c.Get(ctx, key, o, options...)
					}
					if errors.Is(tc.read, context.Canceled) {
						interrupt()
					}
					return tc.read
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					written = true
					return io.ErrUnexpectedEOF
				},
			}).WithObjects(builder.Finding("x").In("org-acme").Build()).Build()
			s := &session{client: c, namespace: "org-acme", config: &rest.Config{Host: "https://acme.test"}}
			triager := &triager{session: s, dryRun: dryRunNone,
				decision: decision{findingstate.Decision{UserStatus: new(v1alpha1.UserStatusMuted)}}}
			outcomes := forEach(ctx, 1, 1, func(int, int) {}, func(int) (bool, error) { return triager.decideAboutFinding(ctx, "x") })
			if !outcomes[0].tried {
				t.Errorf("%s: it counts as not tried", reason)
			}
			if err := outcomes[0].err; err == nil || !strings.HasPrefix(err.Error(), tc.says) {
				t.Errorf("%s: got %v, want %s", reason, err, tc.says)
			}
			harness.Same(t, reason+": advice about the error applies", !errors.Is(tc.read, context.Canceled), errors.Is(outcomes[0].err, tc.read))
		})
	}
}

func TestOnlyAYesIsAYes(t *testing.T) {
	for line, want := range map[string]bool{"y\n": true, "YES\r\n": true, "  Yes\n": true, "": false, "\n": false, "n\n": false, "yy\n": false, "yesno\n": false} {
		harness.Same(t, line, want, isYes(line))
	}
}
