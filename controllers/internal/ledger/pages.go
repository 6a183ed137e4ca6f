package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

const (
	// PageDelay is how long after a cause's end, or a finding's change, a page waits for more findings.
	PageDelay = 2 * time.Second
	// pagePatience is how long after a cause's end its pages may wait to become full.
	pagePatience = 10 * time.Minute
	// quietPatience is how long a change may wait for others of a cause without an end.
	quietPatience = time.Minute
	// fewEntries fit into one page, unless their names are very long.
	fewEntries = webhooks.MaxPageEntries / 2
)

// Pager puts the changes that a scan, an operation or a policy made to findings into pages, for the endpoints that
// subscribe to pages.
//
// Which transitions are in a page is recorded only by the existing pages. A transition counts as emitted once it is in
// one, and a page is retired only after all its findings have recorded that. The findings' Ledger, in the same manager,
// indexes them.
type Pager struct {
	// kind is that of the causes.
	kind string
	store
}

// NewScanPager returns the pager of scans. It indexes the manager's findings, so there must be one per manager.
func NewScanPager(ctx context.Context, mgr ctrl.Manager) (*Pager, error) {
	p, err := newPager(ctx, mgr, scanKind)
	return p, errors.Join(err, index.Add(ctx, mgr, &v1alpha1.Finding{}, p.coming(), ScansToCome))
}

// NewOperationPager returns the pager of operations. There must be one per manager.
func NewOperationPager(ctx context.Context, mgr ctrl.Manager) (*Pager, error) {
	p, err := newPager(ctx, mgr, operationKind)
	return p, errors.Join(err, index.Add(ctx, mgr, &v1alpha1.Finding{}, p.coming(), operationsToCome))
}

// NewPolicyPager returns the pager of policies. There must be one per manager.
func NewPolicyPager(ctx context.Context, mgr ctrl.Manager) (*Pager, error) {
	return newPager(ctx, mgr, policyKind)
}

func newPager(ctx context.Context, mgr ctrl.Manager, kind string) (*Pager, error) {
	has, err := newStore(mgr)
	p := &Pager{kind: kind, store: has}
	return p, errors.Join(err, index.Add(ctx, mgr, &v1alpha1.Finding{}, p.owing(), p.indexed))
}

// owing is the cache index of findings by indexed. coming is the index of findings that a cause has changed and that
// are not reconciled yet, so that it is unknown what they will owe.
func (p *Pager) owing() string  { return "owes-of-" + p.kind }
func (p *Pager) coming() string { return "coming-of-" + p.kind }

// ofAny is the index value of findings that owe transitions of any cause. It is not a valid object
// name.
const ofAny = "/"

// indexed returns the names of the causes of owed transitions, and ofAny if there are any.
func (p *Pager) indexed(finding *v1alpha1.Finding) []string {
	names := p.owed(finding)
	if len(names) > 0 {
		names = append(names, ofAny)
	}
	return names
}

// owed returns the names of the pager's causes whose transitions the finding owes.
func (p *Pager) owed(finding *v1alpha1.Finding) []string {
	var names []string
	for _, c := range causesOf(owedOf(finding)) {
		if c.kind == p.kind {
			names = append(names, c.name)
		}
	}
	return names
}

// ScansToCome returns the scans that changed the finding since its last stored status.
func ScansToCome(finding *v1alpha1.Finding) []string {
	if !toBeObserved(finding) {
		return nil
	}
	var scans []string
	if scan := finding.Spec.Scan; scan != nil {
		scans = append(scans, scan.ScanID)
	}
	if closed := finding.Spec.Closed; closed != nil && !slices.Contains(scans, closed.ScanID) {
		scans = append(scans, closed.ScanID)
	}
	return scans
}

func operationsToCome(finding *v1alpha1.Finding) []string {
	operation, is := strings.CutPrefix(finding.Spec.Triage.By, v1alpha1.OperationAuthorPrefix)
	if !is || !toBeObserved(finding) {
		return nil
	}
	return []string{operation}
}

// toBeObserved reports whether the finding's status has yet to follow its spec. A finding that is being deleted gets no
// further status, however long a finalizer holds it.
func toBeObserved(finding *v1alpha1.Finding) bool {
	return finding.DeletionTimestamp.IsZero() && finding.Status.ObservedGeneration != finding.Generation
}

func owedOf(finding *v1alpha1.Finding) []v1alpha1.Transition {
	return findingstate.History(&finding.Status).Owed()
}

// Findings enqueues the causes that have changed a finding, after a delay so that pages become full. At startup it
// enqueues all causes of owed transitions, because a policy may have been deleted meanwhile.
func (p *Pager) Findings() handler.EventHandler {
	return watch.Changes(func(_ context.Context, change watch.Change, q watch.Queue) {
		if change.After != nil {
			watch.AddAfter(q, PageDelay, p.causes(change.After.(*v1alpha1.Finding)))
		}
	})
}

// Endpoints enqueues the causes of owed transitions when an endpoint is created, deleted or changed, or has caught up
// with its backlog.
func (p *Pager) Endpoints() handler.EventHandler {
	return onEndpoints(func(ctx context.Context, namespace string, what unblocked) []reconcile.Request {
		if what == decisions {
			return nil // a decision about a single finding is not in a page
		}
		findings, err := p.findings(ctx, namespace, ofAny)
		watch.LogError(ctx, err, "list the findings that owe transitions of a "+p.kind)
		causes := sets.Set[reconcile.Request]{} // thousands may owe transitions of the same cause
		for i := range findings {
			causes.Insert(p.causes(&findings[i])...)
		}
		return causes.UnsortedList()
	})
}

// causes returns requests for the causes of the transitions that the finding owes.
func (p *Pager) causes(finding *v1alpha1.Finding) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range p.owed(finding) {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: finding.Namespace, Name: name}})
	}
	return out
}

// Make makes pages of the changes that the cause made to findings of the namespace and that are in no page yet. The
// cause must have ended, since later changes would need another page.
//
// Until pagePatience after the end, Make makes only full pages while some findings are not reconciled yet; end is nil
// if it was not recorded. It returns after which time it must be called again, such as while a quota has no room for
// pages; 0 for never.
func (p *Pager) Make(ctx context.Context, namespace string, cause webhooks.Cause, end *v1alpha1.Time,
	now time.Time) (again time.Duration, err error) {
	waits := end != nil && now.Before(end.Add(pagePatience))
	if waits {
		if waits, err = p.MoreToCome(ctx, namespace, cause); err != nil {
			return 0, err
		}
	}
	return p.makePages(ctx, namespace, cause, func([]webhooks.PageEntry) bool { return waits })
}

// MakeOnceQuiet is Make for a cause without an end. It makes only full pages until no finding has changed for
// PageDelay. No change waits longer than quietPatience.
func (p *Pager) MakeOnceQuiet(ctx context.Context, namespace string, cause webhooks.Cause,
	now time.Time) (again time.Duration, err error) {
	return p.makePages(ctx, namespace, cause, func(entries []webhooks.PageEntry) bool {
		return changing(entries, now)
	})
}

// changing reports whether more entries are expected after these. It does not wait for a time ahead of this clock,
// which comes from another machine's clock.
func changing(entries []webhooks.PageEntry, now time.Time) bool {
	oldest, newest := webhooks.Span(entries)
	return now.Sub(newest).Abs() < PageDelay && now.Sub(oldest) < quietPatience
}

// makePages makes pages for each endpoint that subscribes to pages. If waits returns true for the endpoint's entries,
// it leaves out a page that is not full, and returns when to make it.
func (p *Pager) makePages(ctx context.Context, namespace string, cause webhooks.Cause,
	waits func([]webhooks.PageEntry) bool) (again time.Duration, err error) {
	findings, err := p.findings(ctx, namespace, cause.Name())
	if err != nil || len(findings) == 0 {
		return 0, err
	}
	endpoints, err := p.endpointsOf(ctx, namespace)
	if err != nil {
		return 0, err
	}
	// Listed at most once for all endpoints: the API server has no index, and goes through all deliveries.
	hidden := sync.OnceValues(func() (map[string]bool, error) { return p.hidden(ctx, namespace, cause) })
	for i := range endpoints {
		endpoint := &endpoints[i]
		if endpoint.Spec.Batch != v1alpha1.WebhookBatchPerScan || webhooks.Backlogged(endpoint) {
			continue
		}
		waiting, err := p.makeFor(ctx, cause, endpoint, findings, waits, hidden)
		var full *FullError
		switch {
		case errors.As(err, &full):
			return full.After, nil // no error, because this may last for days
		case err != nil:
			return 0, err
		case waiting:
			again = PageDelay
		}
	}
	return again, nil
}

// MoreToCome reports whether the cause has changed findings that are not reconciled yet.
func (p *Pager) MoreToCome(ctx context.Context, namespace string, cause webhooks.Cause) (bool, error) {
	list := &v1alpha1.FindingList{}
	if p.Implied == nil {
		return index.Any(ctx, p.client, list, namespace, p.coming(), cause.Name())
	}
	err := index.List(ctx, p.client, list, namespace, p.coming(), cause.Name())
	return slices.ContainsFunc(list.Items, func(f v1alpha1.Finding) bool { return !p.Implied.Suffice(&f) }), err
}

// findings returns the findings that owe transitions of the named cause, sorted by name.
func (p *Pager) findings(ctx context.Context, namespace, name string) ([]v1alpha1.Finding, error) {
	list := &v1alpha1.FindingList{}
	if err := index.List(ctx, p.client, list, namespace, p.owing(), name); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Finding) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// makeFor makes the endpoint's pages of the findings, and reports whether a page that is not full waits. While a quota
// has no room, it fails with a FullError.
func (p *Pager) makeFor(ctx context.Context, cause webhooks.Cause, endpoint *v1alpha1.WebhookEndpoint,
	findings []v1alpha1.Finding, waits func([]webhooks.PageEntry) bool,
	hidden func() (map[string]bool, error)) (waiting bool, err error) {
	// Check this first, because reading the hidden pages asks the API server.
	if err := p.quotas.paused(endpoint.Namespace); err != nil {
		return false, err
	}
	entries, err := p.known(ctx, cause.Name(), endpoint, findings)
	if err != nil || len(entries) == 0 {
		return false, err
	}
	if len(entries) <= fewEntries && waits(entries) {
		return true, nil // whether some of them are in a hidden page makes no difference
	}
	if entries, err = p.inNoPage(ctx, entries, endpoint, hidden); err != nil {
		return false, err
	}
	pages, err := webhooks.Pages(cause, endpoint, entries)
	if err != nil {
		return false, err
	}
	if len(pages) > 0 && waits(entries) {
		pages, waiting = pages[:len(pages)-1], true // the last page may have room
	}
	if len(pages) == 0 {
		return waiting, nil
	}
	// Take the turn only now: a cause without pages must not take it.
	if err := p.quotas.takeTurn(endpoint.Namespace); err != nil {
		return false, err
	}
	for _, page := range pages {
		if err := p.makeIfRoom(ctx, page); err != nil {
			return false, err
		}
	}
	return waiting, nil
}

// inNoPage returns those of the entries that are in no page for the endpoint yet. hidden returns the transitions in
// pages that the cache does not show.
func (p *Pager) inNoPage(ctx context.Context, entries []webhooks.PageEntry, endpoint *v1alpha1.WebhookEndpoint,
	hidden func() (map[string]bool, error)) ([]webhooks.PageEntry, error) {
	inHidden, err := hidden()
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e webhooks.PageEntry) bool {
		key := coverage(e.UID, e.Seq, string(endpoint.UID))
		shown, failed := p.isShown(ctx, endpoint.Namespace, key)
		err = errors.Join(err, failed)
		return shown || inHidden[key]
	})
	return entries, err
}

// known returns the entries of the cause that the endpoint is to get, according to the cache.
func (p *Pager) known(ctx context.Context, name string, endpoint *v1alpha1.WebhookEndpoint,
	findings []v1alpha1.Finding) ([]webhooks.PageEntry, error) {
	var out []webhooks.PageEntry
	for i := range findings {
		for _, t := range owedOf(&findings[i]) {
			c, _ := causeOf(t)
			if c != (cause{p.kind, name}) || !webhooks.Subscribes(endpoint, webhooks.FindingEvent(t.Type), t.At.Time) {
				continue
			}
			// A finding whose status was full, or that has none, has separate deliveries.
			made, err := p.isMade(ctx, &findings[i], t, endpoint)
			if err != nil {
				return nil, err
			}
			if !made {
				out = append(out, webhooks.PageEntryOf(&findings[i], t))
			}
		}
	}
	return out, nil
}

// hidden returns the transitions in the cause's existing pages that the cache does not show yet, with their endpoints.
// Such pages are recognised by name: a policy may have hundreds of pages, and reading all would happen every few
// seconds while it changes findings.
func (p *Pager) hidden(ctx context.Context, namespace string, cause webhooks.Cause) (map[string]bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WebhookDeliveryList"))
	if err := p.live.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{
		"spec.event.type": webhooks.EventFindingBatch, "spec.event.subject.name": cause.Name(),
	}); err != nil {
		return nil, fmt.Errorf("list the pages of %s: %w", cause.Name(), err)
	}
	out := map[string]bool{}
	for i := range list.Items {
		page, key := &v1alpha1.WebhookDelivery{}, client.ObjectKeyFromObject(&list.Items[i])
		err := p.client.Get(ctx, key, page, client.UnsafeDisableDeepCopy)
		if err == nil {
			continue
		}
		if kube.IsNotFound(err) {
			err = kube.Get(ctx, p.own, key.Namespace, key.Name, page)
		}
		switch {
		case kube.IsNotFound(err):
			continue // an unreadable page counts as missing: its endpoint gets another
		case err != nil:
			return nil, fmt.Errorf("get page %s of %s: %w", key.Name, cause.Name(), err)
		}
		for _, covered := range coveredBy(page) {
			out[covered] = true
		}
	}
	return out, nil
}
