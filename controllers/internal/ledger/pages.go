package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/transitions"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// covers is the cache index of deliveries by the transitions that are in them, for pages.
const covers = "covers"

func coveredBy(delivery *v1alpha1.WebhookDelivery) []string {
	entries := webhooks.Covered(delivery)
	values := make([]string, len(entries))
	for i := range entries {
		values[i] = coverage(entries[i].UID, entries[i].Seq, delivery.Spec.EndpointRef.UID)
	}
	return values
}

func coverage(finding string, seq int64, endpoint string) string {
	return strings.Join([]string{finding, strconv.FormatInt(seq, 10), endpoint}, "/")
}

// isCovered reports whether the transition is in a page for the endpoint.
func isCovered(ctx context.Context, c client.Reader, object client.Object, t v1alpha1.Transition,
	endpoint *v1alpha1.WebhookEndpoint) (bool, error) {
	return index.Any(ctx, c, &v1alpha1.WebhookDeliveryList{}, object.GetNamespace(),
		covers, coverage(string(object.GetUID()), t.Seq, string(endpoint.UID)))
}

// byScan reports whether the transition is a scan's: triage is a person's, whatever scan was last.
func byScan(t v1alpha1.Transition) bool { return t.Scan != "" && t.Type != v1alpha1.TransitionTriaged }

// scansOf are the scans that made any of the transitions, each once.
func scansOf(list []v1alpha1.Transition) []string {
	var out []string
	for _, t := range list {
		if byScan(t) && !slices.Contains(out, t.Scan) {
			out = append(out, t.Scan)
		}
	}
	return out
}

// goesInPage reports whether the endpoint gets the transition in a page of its scan.
func (l *Ledger) goesInPage(ctx context.Context, object client.Object, t v1alpha1.Transition,
	endpoint *v1alpha1.WebhookEndpoint) (bool, error) {
	if !l.kind.paged || endpoint.Spec.Batch != v1alpha1.WebhookBatchPerScan || !byScan(t) {
		return false, nil
	}
	// The watch of scans may be behind that of findings, and a scan is there before its findings.
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: t.Scan}
	err := l.client.Get(ctx, key, &v1alpha1.Scan{}, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		err = kube.Get(ctx, l.own, key.Namespace, key.Name, &v1alpha1.Scan{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look up scan %q: %w", t.Scan, err)
	}
	return true, nil
}

// ofScan is the cache index of findings by the scans that made what they owe.
const ofScan = "owes-of-scan"

// comingOf is the cache index of findings that a scan has changed and whose controller has not
// looked at yet: what they will owe is not known.
const comingOf = "coming-of-scan"

// PageDelay is how long to wait after a scan's end, or a finding's change, for more findings to
// join in a page.
const PageDelay = 2 * time.Second

// Pager puts what a scan has done to findings into pages, for the endpoints that want it so.
//
// The pages that are there say what is in a page; a finding counts as emitted once it is, and
// no page is retired before all its findings are.
type Pager struct {
	client client.Client
	// live asks the API server itself.
	live *kube.Reader
}

// NewPager returns a pager. It indexes the manager's findings, so there must be one per manager.
func NewPager(ctx context.Context, mgr ctrl.Manager) (*Pager, error) {
	live, err := kube.NewReader(mgr.GetConfig())
	return &Pager{client: mgr.GetClient(), live: live}, errors.Join(err,
		index.Add(ctx, mgr, &v1alpha1.Finding{}, ofScan, scansOwed),
		index.Add(ctx, mgr, &v1alpha1.Finding{}, comingOf, scansToCome))
}

func scansOwed(finding *v1alpha1.Finding) []string { return scansOf(owedOf(finding)) }

func scansToCome(finding *v1alpha1.Finding) []string {
	if finding.Status.ObservedGeneration == finding.Generation {
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

func owedOf(finding *v1alpha1.Finding) []v1alpha1.Transition {
	return transitions.History{
		Transitions: finding.Status.Transitions, EmittedSeq: finding.Status.EmittedSeq,
	}.Owed()
}

// Findings wakes the scan that has changed a finding, a while later: pages are to be full.
func (p *Pager) Findings() handler.EventHandler {
	return watch.Changes(func(_ context.Context, change watch.Change, q watch.Queue) {
		if change.Initial || change.After == nil { // At the start every scan is reconciled on its own account.
			return
		}
		for _, scan := range scansOwed(change.After.(*v1alpha1.Finding)) {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: change.After.GetNamespace(), Name: scan}},
				PageDelay)
		}
	})
}

// Endpoints wakes the scans of which findings owe, when an endpoint comes, changes, or has
// caught up with its backlog.
func (p *Pager) Endpoints() handler.EventHandler {
	return onEndpoints(func(ctx context.Context, namespace string) []reconcile.Request {
		return watch.List(ctx, p.client, &v1alpha1.ScanList{}, client.InNamespace(namespace))
	})
}

// Make makes the pages of what the scan has done to findings and is in none yet. The scan must
// have ended: what is still to come would be a page of its own.
//
// Where patient, while findings are still to be recorded full pages alone are made, and Make
// reports that it is to be called again.
func (p *Pager) Make(ctx context.Context, scan *v1alpha1.Scan, patient bool) (again bool, err error) {
	findings, err := p.findings(ctx, scan)
	if err != nil || len(findings) == 0 {
		return false, err
	}
	endpoints, err := endpointsOf(ctx, p.client, scan.Namespace)
	if err != nil {
		return false, err
	}
	waits := patient
	if waits {
		if waits, err = p.moreToCome(ctx, scan); err != nil {
			return false, err
		}
	}
	for i := range endpoints {
		endpoint := &endpoints[i]
		if endpoint.Spec.Batch != v1alpha1.WebhookBatchPerScan || webhooks.Backlogged(endpoint) {
			continue
		}
		again = again || waits
		if err := p.makeFor(ctx, scan, endpoint, findings, waits); err != nil {
			return false, err
		}
	}
	return again, nil
}

// moreToCome reports whether the scan has changed findings that are not looked at yet.
func (p *Pager) moreToCome(ctx context.Context, scan *v1alpha1.Scan) (bool, error) {
	return index.Any(ctx, p.client, &v1alpha1.FindingList{}, scan.Namespace, comingOf, scan.Name)
}

// findings that owe anything that the scan has done, by name.
func (p *Pager) findings(ctx context.Context, scan *v1alpha1.Scan) ([]v1alpha1.Finding, error) {
	list := &v1alpha1.FindingList{}
	if err := index.List(ctx, p.client, list, scan.Namespace, ofScan, scan.Name); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Finding) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

func (p *Pager) makeFor(ctx context.Context, scan *v1alpha1.Scan, endpoint *v1alpha1.WebhookEndpoint,
	findings []v1alpha1.Finding, fullOnly bool) error {
	entries, err := p.entries(ctx, scan, endpoint, findings)
	if err != nil || len(entries) == 0 {
		return err
	}
	// The cache may not show yet a page that was made a moment ago.
	covered, err := p.covered(ctx, scan, endpoint)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e webhooks.PageEntry) bool {
		return covered[coverage(e.UID, e.Seq, string(endpoint.UID))]
	})
	pages, err := webhooks.Pages(scan, endpoint, entries)
	if err != nil {
		return err
	}
	if fullOnly && len(pages) > 0 {
		pages = pages[:len(pages)-1] // the last may have room
	}
	for _, page := range pages {
		if err := makeDelivery(ctx, p.client, page); err != nil {
			return err
		}
	}
	return nil
}

// entries are what the endpoint is to get of the scan, as far as the cache knows.
func (p *Pager) entries(ctx context.Context, scan *v1alpha1.Scan, endpoint *v1alpha1.WebhookEndpoint,
	findings []v1alpha1.Finding) ([]webhooks.PageEntry, error) {
	var out []webhooks.PageEntry
	for i := range findings {
		for _, t := range owedOf(&findings[i]) {
			if !byScan(t) || t.Scan != scan.Name || !webhooks.Subscribes(endpoint, webhooks.FindingEvent(t.Type), t.At.Time) {
				continue
			}
			// A finding whose status was full has not waited for a page.
			made, err := isMade(ctx, p.client, &findings[i], t, endpoint)
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

// covered is what is in the scan's pages for the endpoint, as the API server has them.
func (p *Pager) covered(ctx context.Context, scan *v1alpha1.Scan,
	endpoint *v1alpha1.WebhookEndpoint) (map[string]bool, error) {
	kind, _ := kube.KindOf(&v1alpha1.WebhookDelivery{})
	selected := fields.Set{
		"spec.event.type": webhooks.EventFindingBatch, "spec.event.subject.name": scan.Name,
		"spec.endpointRef.name": endpoint.Name,
	}
	out := map[string]bool{}
	_, err := p.live.In(scan.Namespace, kind).List(ctx, metav1.ListOptions{FieldSelector: selected.String()},
		func(page runtime.Object) error {
			// A page that cannot be read is as if it were not there: its endpoint gets another.
			if page, ok := page.(*v1alpha1.WebhookDelivery); ok {
				for _, key := range coveredBy(page) {
					out[key] = true
				}
			}
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("list the scan's pages: %w", err)
	}
	return out, nil
}
