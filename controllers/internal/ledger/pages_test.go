package ledger

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestWhatCausesATransition(t *testing.T) {
	const (
		created, triaged = v1alpha1.TransitionCreated, v1alpha1.TransitionTriaged
		judged, expired  = v1alpha1.TransitionJudged, v1alpha1.TransitionExpired
	)
	transition := func(kind v1alpha1.TransitionType, scan, by string) v1alpha1.Transition {
		return v1alpha1.Transition{Type: kind, Scan: scan, By: by}
	}
	for _, c := range []struct {
		reason     string
		transition v1alpha1.Transition
		want       string
	}{
		{"a scan reports it", transition(created, "s-1", "scanner/gosec"), "Scan/s-1"},
		{"somebody made it by hand", transition(created, "", "scanner/gosec"), ""},
		{"a person decides after a scan", transition(triaged, "s-1", "ann"), ""},
		{"an operation decides", transition(triaged, "", "operation/mute"), "TriageOperation/mute"},
		{"a policy decides", transition(judged, "", "policy/mute"), "TriagePolicy/mute"},
		{"a policy decides about what a scan brought", transition(judged, "s-1", "policy/mute"), "Scan/s-1"},
		{"somebody decided in a pull request", transition(judged, "", "review-issue/i-1"), ""},
		{"the decision of a person of such a name ends", transition(expired, "", "policy/mute"), ""},
	} {
		got, is := causeOf(c.transition)
		if is != (c.want != "") || is && got.String() != c.want {
			t.Errorf("%s: got %s, %t, want %q", c.reason, got, is, c.want)
		}
	}
}

// What waits for a finding that a finalizer holds would wait for as long.
func TestWhoseChangesAreStillToBeObserved(t *testing.T) {
	finding := builder.Finding("f").Mutate(func(f *v1alpha1.Finding) {
		f.Generation, f.Status.ObservedGeneration = 3, 2
		f.Spec.Scan = &v1alpha1.FindingScan{ScanID: "s-2"}
		f.Spec.Closed = &v1alpha1.FindingClosure{ScanID: "s-3"}
		f.Spec.Triage.By = "operation/mute"
	}).Build()
	observed, deleted := finding.DeepCopy(), finding.DeepCopy()
	observed.Status.ObservedGeneration = 3
	deleted.DeletionTimestamp = new(metav1.Now())
	for _, c := range []struct {
		reason            string
		finding           *v1alpha1.Finding
		scans, operations []string
	}{
		{"it has changed", finding, []string{"s-2", "s-3"}, []string{"mute"}},
		{"its status has followed", observed, nil, nil},
		{"it is being deleted", deleted, nil, nil},
	} {
		harness.Same(t, c.reason, c.scans, ScansToCome(c.finding))
		harness.Same(t, c.reason, c.operations, operationsToCome(c.finding))
	}
}

// The ID of a scan may be any text. An error would keep all events of the finding from all endpoints for good.
func TestAScanOfANameThatNoObjectCanHaveHasNoPages(t *testing.T) {
	own, err := kube.NewClient(&rest.Config{Host: "http://nowhere.invalid"})
	harness.Must(t, err)
	paged, single := builder.WebhookEndpoint("paged").In("org-a").Batched().Build(), builder.WebhookEndpoint("single").In("org-a").Build()
	paged.UID, single.UID = "paged", "single"
	for _, scan := range []string{"ci/1", "100%", ".."} {
		cache := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(paged, single).
			WithIndex(&v1alpha1.WebhookDelivery{}, covers, func(client.Object) []string { return nil }).Build()
		l := &Ledger{kind: Finding, store: store{client: cache, live: cache, own: own, quotas: newQuotaBackoff(clock.RealClock{})}}
		finding := builder.Finding("f").In("org-a").Build()
		finding.UID = "f"
		finding.Status.Transitions = []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionCreated, Scan: scan, At: v1alpha1.Now()}}
		_, err := l.StoreAndEmit(t.Context(), finding, func(context.Context) (bool, error) { return true, nil })
		harness.NoError(t, "settle", err)
		made := &v1alpha1.WebhookDeliveryList{}
		harness.Must(t, cache.List(t.Context(), made))
		harness.Same(t, "deliveries of what the scan "+scan+" reports", 2, len(made.Items))
		harness.Same(t, "emitted", int64(1), finding.Status.EmittedSeq)
	}
}

// It may have been made again with the name of a deleted one, whose changes would wait for as long as nobody commits it.
func TestAnOperationThatNobodyHasCommittedHasNoPages(t *testing.T) {
	preview, committed := builder.TriageOperation("mute", "G1").In("org-a").Build(), builder.TriageOperation("mute", "G1").In("org-a").Committed().Build()
	paged := builder.WebhookEndpoint("paged").In("org-a").Batched().Build()
	for _, c := range []struct {
		reason       string
		cached, live *v1alpha1.TriageOperation
		want         bool
	}{
		{"a preview", preview, preview, false},
		{"one whose commit the cache does not show yet", preview, committed, true},
		{"a committed one", committed, nil, true},
	} {
		url := harness.ServeJSON(t, func(*http.Request) (int, any) { return http.StatusOK, c.live })
		own, err := kube.NewClient(&rest.Config{Host: url})
		harness.Must(t, err)
		cache := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(c.cached.DeepCopy()).Build()
		l := &Ledger{kind: Finding, store: store{client: cache, own: own}}
		triaged := v1alpha1.Transition{Seq: 1, Type: v1alpha1.TransitionTriaged, By: "operation/mute", At: v1alpha1.Now()}
		got, err := l.goesInPage(t.Context(), builder.Finding("f").In("org-a").Build(), triaged, paged)
		harness.NoError(t, c.reason, err)
		harness.Same(t, "a decision signed by "+c.reason+" goes in a page", c.want, got)
	}
}

// A policy may have hundreds of pages, of 64 KiB each.
func TestOnlyPagesThatTheCacheDoesNotShowAreRead(t *testing.T) {
	endpoint := builder.WebhookEndpoint("paged").In("org-acme").Batched().Build()
	cause := webhooks.CauseOfPolicy("mute")
	var findings []v1alpha1.Finding
	var pages []client.Object
	for _, name := range []string{"shown", "hidden", "left"} {
		finding := builder.Finding(name).In("org-acme").Mutate(func(f *v1alpha1.Finding) { f.UID = types.UID(name) }).Build()
		finding.Status.Transitions = []v1alpha1.Transition{
			{Seq: 1, Type: v1alpha1.TransitionJudged, By: "policy/mute", At: v1alpha1.Now()},
		}
		page, err := webhooks.Pages(cause, endpoint, []webhooks.PageEntry{webhooks.PageEntryOf(finding, finding.Status.Transitions[0])})
		harness.Must(t, err)
		findings, pages = append(findings, *finding), append(pages, page[0])
	}
	url := harness.ServeJSON(t, func(request *http.Request) (int, any) {
		harness.Same(t, "what it reads", pages[1].GetName(), path.Base(request.URL.Path))
		return http.StatusOK, pages[1]
	})
	own, err := kube.NewClient(&rest.Config{Host: url})
	harness.Must(t, err)
	cache := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(pages[0]).
		WithIndex(&v1alpha1.WebhookDelivery{}, covers, func(object client.Object) []string {
			return coveredBy(object.(*v1alpha1.WebhookDelivery))
		}).Build()
	live := interceptor.NewClient(nil, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch,
		list client.ObjectList, _ ...client.ListOption) error {
		names := list.(*metav1.PartialObjectMetadataList)
		for _, page := range pages[:2] {
			names.Items = append(names.Items, metav1.PartialObjectMetadata{
				ObjectMeta: metav1.ObjectMeta{Namespace: page.GetNamespace(), Name: page.GetName()},
			})
		}
		return nil
	}})
	p := &Pager{kind: policyKind, store: store{client: cache, live: live, own: own}}
	entries, err := p.known(t.Context(), cause.Name(), endpoint, findings)
	harness.Must(t, err)
	entries, err = p.inNoPage(t.Context(), entries, endpoint, func() (map[string]bool, error) {
		return p.hidden(t.Context(), endpoint.Namespace, cause)
	})
	harness.Must(t, err)
	if len(entries) != 1 || entries[0].FindingID != "left" {
		t.Errorf("%+v are in no page, want left alone", entries)
	}
}

// For each list, the API server goes through all deliveries of the organization, and pages are tried every few seconds.
func TestPagesCostOneListForAllEndpointsAndNoneWhileFewEntriesWait(t *testing.T) {
	now := v1alpha1.Now()
	for changed, want := range map[int]struct{ lists, pages int }{5: {0, 0}, webhooks.MaxPageEntries + 1: {1, 3}} {
		lists, p := 0, &Pager{kind: policyKind}
		objects := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).
			WithIndex(&v1alpha1.Finding{}, p.owing(), func(o client.Object) []string { return p.indexed(o.(*v1alpha1.Finding)) }).
			WithIndex(&v1alpha1.WebhookDelivery{}, covers, func(o client.Object) []string { return coveredBy(o.(*v1alpha1.WebhookDelivery)) })
		for i := range changed {
			name := fmt.Sprintf("f-%03d", i)
			objects.WithObjects(builder.Finding(name).In("org-acme").Mutate(func(f *v1alpha1.Finding) {
				f.UID = types.UID(name)
				f.Status.Transitions = []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionJudged, By: "policy/mute", At: now}}
			}).Build())
		}
		for _, name := range []string{"a", "b", "c"} {
			endpoint := builder.WebhookEndpoint(name).In("org-acme").Batched().Build()
			endpoint.UID = types.UID(name)
			objects.WithObjects(endpoint)
		}
		p.store = store{client: objects.Build(), quotas: newQuotaBackoff(clock.RealClock{})}
		p.live = interceptor.NewClient(nil, interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				lists++
				return nil
			},
		})
		again, err := p.MakeOnceQuiet(t.Context(), "org-acme", webhooks.CauseOfPolicy("mute"), now.Time)
		harness.NoError(t, "make pages", err)
		harness.Same(t, fmt.Sprintf("lists for %d changes", changed), want.lists, lists)
		harness.Same(t, "when it is tried again", PageDelay, again)
		made := &v1alpha1.WebhookDeliveryList{}
		harness.Must(t, p.client.List(t.Context(), made))
		harness.Same(t, fmt.Sprintf("pages for %d changes", changed), want.pages, len(made.Items))
	}
}

func TestHowLongChangesWaitForMore(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		reason string
		ages   []time.Duration
		want   bool
	}{
		{"none", nil, false},
		{"one of just now", []time.Duration{time.Second}, true},
		{"one of before", []time.Duration{PageDelay}, false},
		{"an older one with one of just now", []time.Duration{50 * time.Second, time.Second}, true},
		{"the same, the other way about", []time.Duration{time.Second, 50 * time.Second}, true},
		{"one that has waited long enough", []time.Duration{time.Second, quietPatience, time.Second}, false},
		{"by a clock that is ahead", []time.Duration{-time.Hour}, false},
		{"by a clock that is ahead by less than a second or two", []time.Duration{-time.Second}, true},
	} {
		var entries []webhooks.PageEntry
		for _, age := range c.ages {
			entries = append(entries, webhooks.PageEntry{Timestamp: v1alpha1.NewTime(now.Add(-age))})
		}
		harness.Same(t, c.reason, c.want, changing(entries, now))
	}
}
