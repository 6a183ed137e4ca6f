package retention

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/scans"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// Cache indexes.
const (
	// scanSeries indexes scans by their series, see seriesOf.
	scanSeries = "retention.series"
	// owedScans indexes findings by the scans whose transitions they have yet to emit or record, and those without a
	// status by the scan that found them: see holds.
	owedScans = "retention.owed"
	// scanFindings indexes findings by the scan that created or last changed them, and by their category: see
	// scanAndCategory.
	scanFindings = "retention.findings"
)

// seriesOf returns the repository, project, category, tool and analysis of a scan, which distinguish series for the
// importer. Scans of pull requests and refused uploads belong to no series.
func seriesOf(scan *v1alpha1.Scan) []string {
	spec := &scan.Spec
	if scan.Uncounted() != "" {
		return nil
	}
	// The tool may contain any character, so it is quoted; the analysis comes last.
	return []string{strings.Join([]string{
		string(spec.RepositoryRef.Name), string(spec.ProjectRef.Name), string(spec.Category),
		strconv.Quote(spec.Tool), spec.Analysis,
	}, "/")}
}

// owedScansOf returns the scans whose transitions the finding has not emitted yet, and those whose changes its
// controller has not recorded yet. The status of a finding that is being deleted does not change any more.
func owedScansOf(finding *v1alpha1.Finding) []string {
	if !finding.DeletionTimestamp.IsZero() {
		return nil
	}
	var out []string
	add := func(scan string) {
		if scan != "" && !slices.Contains(out, scan) {
			out = append(out, scan)
		}
	}
	for _, t := range findingstate.History(&finding.Status).Owed() {
		add(t.Scan)
	}
	for _, scan := range ledger.ScansToCome(finding) {
		add(scan)
	}
	return out
}

// scanFindingsOf returns the key of the finding in scanFindings. A finding that is being deleted has none.
func scanFindingsOf(finding *v1alpha1.Finding) []string {
	if finding.Spec.Scan == nil || !finding.DeletionTimestamp.IsZero() {
		return nil
	}
	return []string{scanAndCategory(finding.Spec.Scan.ScanID, finding.Spec.Category)}
}

func scanAndCategory(scan string, category v1alpha1.FindingCategory) string {
	return scan + "/" + string(category)
}

// holds reports whether a finding that owedScans returns for a scan needs the scan. A finding that is left without a
// status needs it only while its creation waits for the backlog of an endpoint.
func holds(left *implied.Statuses, finding *v1alpha1.Finding) bool {
	return finding.Status.UpdatedAt != nil || !left.Suffice(finding) || left.Owes(finding)
}

// held reports whether another object still needs this one, which finished at the cutoff or before.
func (r *Reconciler) held(ctx context.Context, object client.Object, cutoff time.Time) (bool, error) {
	switch o := object.(type) {
	case *v1alpha1.Scan:
		return r.scanHeld(ctx, o)
	case *v1alpha1.Review:
		return r.reviewHeld(ctx, o, cutoff)
	case *v1alpha1.WebhookDelivery:
		return r.deliveryHeld(ctx, o)
	case *v1alpha1.TriageOperation:
		return r.operationHeld(ctx, o)
	}
	return false, nil
}

// scanHeld reports whether the scan is needed by its series or by findings of another category, or whether findings
// still owe its transitions.
func (r *Reconciler) scanHeld(ctx context.Context, scan *v1alpha1.Scan) (bool, error) {
	name := seriesOf(scan)
	if len(name) == 0 {
		return false, nil
	}
	// Check first what does not grow with the series: thousands of its scans may be held for this reason, in each pass.
	if owns, err := r.ownsOther(ctx, scan); owns || err != nil {
		return owns, err
	}
	series := &v1alpha1.ScanList{}
	if err := index.List(ctx, r.Client, series, scan.Namespace, scanSeries, name[0]); err != nil {
		return false, err
	}
	if seriesNeeds(scan, series.Items) {
		return true, nil
	}
	owing := &v1alpha1.FindingList{}
	err := index.List(ctx, r.Client, owing, scan.Namespace, owedScans, scan.Name)
	return slices.ContainsFunc(owing.Items, func(f v1alpha1.Finding) bool { return holds(r.implied, &f) }), err
}

// ownsOther reports whether findings of another category than the scan's name it. Without the scan, the importer would
// assign them to a job of their category, if there is one, and create them again without their triage.
func (r *Reconciler) ownsOther(ctx context.Context, scan *v1alpha1.Scan) (bool, error) {
	for _, category := range append(v1alpha1.FindingCategories(), "") {
		if category == scan.Spec.Category {
			continue
		}
		owns, err := index.Any(ctx, r.Client, &v1alpha1.FindingList{}, scan.Namespace, scanFindings,
			scanAndCategory(scan.Name, category))
		if owns || err != nil {
			return owns, err
		}
	}
	return false, nil
}

// seriesNeeds reports whether the scan is one that must be kept for its series. The importer needs the last scan to
// recognise an older one, and projects and repositories report when they were last scanned. The last scan that wrote
// findings shows the importer that a job without a success has findings. The first success of an analysis shows whether
// it still takes over findings without an analysis, and whether another analysis has been imported beside it. A first
// success without an analysis is not kept for the latter alone.
func seriesNeeds(scan *v1alpha1.Scan, series []v1alpha1.Scan) bool {
	return scans.IsLast(scan, series) || scans.IsLastToWrite(scan, series) ||
		scan.Spec.Analysis != "" && scans.IsFirstSuccess(scan, series)
}

// deliveryHeld reports whether the delivery records the emission of a transition that a subject's status still lists as
// owed, so that it would be made again. Other deliveries of the subject are not kept, or an exhausted quota would leave
// no room for those that are owed.
func (r *Reconciler) deliveryHeld(ctx context.Context, delivery *v1alpha1.WebhookDelivery) (bool, error) {
	entries := webhooks.Covered(delivery)
	for _, subject := range subjectsOf(delivery, entries) {
		object := ledger.NewSubject(subject.Kind)
		if object == nil {
			continue
		}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: delivery.Namespace, Name: string(subject.Name)}, object,
			client.UnsafeDisableDeepCopy)
		switch {
		case kube.IgnoreNotFound(err) != nil:
			return false, fmt.Errorf("get %s %s of delivery %s: %w", subject.Kind, subject.Name, delivery.Name, err)
		case err == nil && (recordsOwed(delivery, entries, object) || r.implied.Owes(object)):
			return true, nil
		}
	}
	return false, nil
}

// recordsOwed reports whether the delivery, a page if it has entries, contains a transition that the object owes.
func recordsOwed(delivery *v1alpha1.WebhookDelivery, entries []webhooks.EntryKey, object client.Object) bool {
	history, uid, endpoint := ledger.HistoryOf(object), object.GetUID(), types.UID(delivery.Spec.EndpointRef.UID)
	return slices.ContainsFunc(entries, func(e webhooks.EntryKey) bool {
		return e.UID == string(uid) && e.Seq > history.EmittedSeq
	}) || slices.ContainsFunc(history.Owed(), func(t v1alpha1.Transition) bool {
		return delivery.Name == webhooks.DeliveryName(uid, t.Seq, endpoint)
	})
}

// operationHeld reports whether an undo of the operation has yet to select what the operation has changed, perhaps
// because others come first. An ended undo is held by any undo that has yet to select: that one may need it to know
// whose decision was restored. Without a set, there is nothing to undo, and any number of such operations may exist.
func (r *Reconciler) operationHeld(ctx context.Context, operation *v1alpha1.TriageOperation) (bool, error) {
	if triageoperation.Setless(operation) {
		return false, nil
	}
	all := &v1alpha1.TriageOperationList{}
	err := r.Client.List(ctx, all, client.InNamespace(operation.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("list the triage operations: %w", err)
	}
	endedUndo := operation.Spec.Undo != "" && operation.Status.CompletedAt != nil
	return slices.ContainsFunc(all.Items, func(o v1alpha1.TriageOperation) bool {
		return (string(o.Spec.Undo) == operation.Name || endedUndo && o.Spec.Undo != "") &&
			o.DeletionTimestamp.IsZero() && o.Status.SelectedAt == nil && o.Status.CompletedAt == nil
	}), nil
}

// unrecorded returns the finding whose creation is recorded only by this object, a delivery; nil if there is none.
// Without the delivery, the finding's controller would make it again.
func (r *Reconciler) unrecorded(ctx context.Context, object client.Object) (*v1alpha1.Finding, error) {
	delivery, isDelivery := object.(*v1alpha1.WebhookDelivery)
	if !isDelivery || delivery.Spec.Event.Type != webhooks.FindingEvent(v1alpha1.TransitionCreated) {
		return nil, nil
	}
	finding := &v1alpha1.Finding{}
	key := client.ObjectKey{Namespace: delivery.Namespace, Name: string(delivery.Spec.Event.Subject.Name)}
	err := r.Client.Get(ctx, key, finding, client.UnsafeDisableDeepCopy)
	if err == nil && webhooks.RecordsCreation(delivery, finding) {
		return finding, nil
	}
	return nil, kube.IgnoreNotFound(err)
}

// subjectsOf returns the delivery's subject and, for a page, each finding in it.
func subjectsOf(delivery *v1alpha1.WebhookDelivery, entries []webhooks.EntryKey) []v1alpha1.WebhookEventSubject {
	out := []v1alpha1.WebhookEventSubject{delivery.Spec.Event.Subject}
	for _, entry := range entries {
		out = append(out, v1alpha1.WebhookEventSubject{Kind: "Finding", Name: v1alpha1.ResourceName(entry.FindingID)})
	}
	return out
}
