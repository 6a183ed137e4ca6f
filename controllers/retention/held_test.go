package retention

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestOwedScansOf(t *testing.T) {
	transitions := []v1alpha1.Transition{{Seq: 1, Scan: "s-1"}, {Seq: 2, Scan: "s-2"}, {Seq: 3}, {Seq: 4, Scan: "s-2"}, {Seq: 5, Scan: "s-3"}}
	cases := []struct {
		reason  string
		finding *v1alpha1.Finding
		want    []string
	}{
		{"everything is sent", finding(func(f *v1alpha1.Finding) { f.Status.Transitions, f.Status.EmittedSeq = transitions, 5 }), nil},
		{"what is not told, each scan once", finding(func(f *v1alpha1.Finding) { f.Status.Transitions, f.Status.EmittedSeq = transitions, 1 }), []string{"s-2", "s-3"}},
		{"what its controller has not seen", finding(func(f *v1alpha1.Finding) {
			f.Generation = 3
			f.Spec.Scan = &v1alpha1.FindingScan{ScanID: "s-9"}
		}), []string{"s-9", "s"}},
		{"it is being deleted, however long a finalizer holds it", finding(func(f *v1alpha1.Finding) {
			f.Generation, f.DeletionTimestamp = 3, new(metav1.Now())
			f.Status.Transitions, f.Status.EmittedSeq = transitions, 1
		}), nil},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, owedScansOf(c.finding))
	}
}

// A finding that gets no status as long as it does not change would hold the scan that created it forever.
func TestAFindingWithoutAStatusHoldsAScanOnlyIfOneIsDue(t *testing.T) {
	finding := builder.Finding("f").Mutate(func(f *v1alpha1.Finding) {
		f.UID, f.Generation, f.Spec.Scan = "f", 1, &v1alpha1.FindingScan{ScanID: "s-1"}
	}).Build()
	changed := finding.DeepCopy()
	changed.Generation = 2
	unseen, left, owing := implied.NewStatuses(), implied.NewStatuses(), implied.NewStatuses()
	left.Leave(finding, false)
	owing.Leave(finding, true)
	for _, c := range []struct {
		reason  string
		finding *v1alpha1.Finding
		implied *implied.Statuses
		want    bool
	}{
		{"all statuses are stored", finding, nil, true},
		{"not seen yet", finding, unseen, true},
		{"left", finding, left, false},
		{"left, and waits for a backlog", finding, owing, true},
		{"changed since", changed, left, true},
	} {
		harness.Same(t, c.reason, c.want, len(owedScansOf(c.finding)) > 0 && holds(c.implied, c.finding))
	}
}

func TestWhichScansOfASeriesAreNeeded(t *testing.T) {
	outcomes := map[rune]v1alpha1.ScanSpec{
		's': {Outcome: v1alpha1.ScanSucceeded},
		'a': {Outcome: v1alpha1.ScanSucceeded}, // by a clock that is a year ahead
		'f': {Outcome: v1alpha1.ScanFailed},
		'w': {Outcome: v1alpha1.ScanFailed, Progress: &v1alpha1.ScanProgress{Done: 3, Total: 7}},
	}
	for _, c := range []struct {
		reason, analysis, outcomes string
		want                       []string
	}{
		{"the last", "", "fssfs", []string{"s-4"}},
		{"the first successful one of an analysis too: the importer takes over findings that are older", "ruby", "fssfs", []string{"s-1", "s-4"}},
		{"the last whatever the clock of another: the importer goes by it", "", "sas", []string{"s-1", "s-2"}},
		{"the last one that wrote findings too: a job that never succeeds has them", "", "wwff", []string{"s-1", "s-3"}},
	} {
		var series []v1alpha1.Scan
		for i, outcome := range c.outcomes {
			began := noon.Add(time.Duration(i) * time.Hour)
			series = append(series, *builder.Scan(fmt.Sprintf("s-%d", i), began).Mutate(func(s *v1alpha1.Scan) {
				s.CreationTimestamp = metav1.NewTime(began)
				if outcome == 'a' {
					s.Spec.StartedAt = v1alpha1.NewTime(began.AddDate(1, 0, 0))
				}
				s.Spec.Analysis, s.Spec.Outcome, s.Spec.Progress = c.analysis, outcomes[outcome].Outcome, outcomes[outcome].Progress
				s.Spec.CompletedAt = new(v1alpha1.NewTime(s.Spec.StartedAt.Add(time.Minute)))
			}).Build())
		}
		var got []string
		for i := range series {
			if seriesNeeds(&series[i], series) {
				got = append(got, series[i].Name)
			}
		}
		harness.Same(t, c.reason, c.want, got)
	}
	failed := builder.Scan("s-failed", noon).Ended(noon, v1alpha1.ScanFailed)
	if got := seriesOf(failed.Build()); len(got) != 1 {
		t.Errorf("a scan that failed is of the series %q", got)
	}
	refused := failed.Mutate(func(s *v1alpha1.Scan) { s.Spec.Upload = &v1alpha1.ScanUpload{} }).Build()
	if got := seriesOf(refused); len(got) != 0 {
		t.Errorf("a refused upload, which scanned nothing, is of the series %q", got)
	}
}

// Findings of a category that ownsOther does not ask for would not keep their scan.
func TestFindingCategoriesAreThoseOfTheSchema(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	text := harness.RepositoryFile(t, "config", "crd", "bases", "appsec.dev_findings.yaml")
	harness.Must(t, yaml.Unmarshal([]byte(text), crd))
	var want []v1alpha1.FindingCategory
	for _, value := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["category"].Enum {
		want = append(want, v1alpha1.FindingCategory(strings.Trim(string(value.Raw), `"`)))
	}
	harness.Same(t, "categories", want, v1alpha1.FindingCategories())
}

// If another job scans for the category of a finding, only the finding's scan tells whose it is.
func TestAScanIsHeldForFindingsOfAnotherCategory(t *testing.T) {
	scan := func(name string, at time.Duration) *v1alpha1.Scan {
		return builder.Scan(name, noon.Add(at)).Ended(noon.Add(at), v1alpha1.ScanSucceeded).Build()
	}
	of := func(name, scan string, category v1alpha1.FindingCategory) *v1alpha1.Finding {
		return builder.Finding(name).Mutate(func(f *v1alpha1.Finding) {
			f.Spec.Category, f.Spec.Scan = category, &v1alpha1.FindingScan{ScanID: scan}
		}).Build()
	}
	deleted := of("f-5", "s-deleted", v1alpha1.CategorySecret)
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Now()), []string{"test/held"}
	objects := []client.Object{
		scan("s-same", 0), of("f-1", "s-same", v1alpha1.CategoryCode),
		scan("s-none", 0),
		scan("s-mixed", 0), of("f-2", "s-mixed", v1alpha1.CategoryCode), of("f-3", "s-mixed", v1alpha1.CategorySecret),
		scan("s-without", 0), of("f-4", "s-without", ""),
		scan("s-deleted", 0), deleted,
		scan("s-last", time.Hour),
	}
	series := 0
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(objects...).
		WithIndex(&v1alpha1.Scan{}, scanSeries, func(o client.Object) []string { return seriesOf(o.(*v1alpha1.Scan)) }).
		WithIndex(&v1alpha1.Finding{}, owedScans, func(client.Object) []string { return nil }).
		WithIndex(&v1alpha1.Finding{}, scanFindings, func(o client.Object) []string {
			return scanFindingsOf(o.(*v1alpha1.Finding))
		}).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*v1alpha1.ScanList); is {
				series++
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	r := &Reconciler{Base: reconcile.Base{Client: c}}
	got := map[string]bool{}
	for _, object := range objects {
		if scan, is := object.(*v1alpha1.Scan); is {
			held, err := r.scanHeld(t.Context(), scan)
			harness.Must(t, err)
			got[scan.Name] = held
		}
	}
	harness.Same(t, "held scans", map[string]bool{"s-same": false, "s-none": false, "s-mixed": true, "s-without": true,
		"s-deleted": false, "s-last": true}, got)
	harness.Same(t, "lists of a whole series: none for what is held by then", 4, series)
}

// The earlier decisions would be lost: they are in the parts of the operation.
func TestAnOperationIsHeldUntilItsUndoHasSelected(t *testing.T) {
	asIs := func(*v1alpha1.TriageOperation) {}
	undoes := func(name v1alpha1.ResourceName) func(*v1alpha1.TriageOperation) {
		return func(o *v1alpha1.TriageOperation) { o.Spec.Undo = name }
	}
	for _, c := range []struct {
		reason    string
		due, undo func(*v1alpha1.TriageOperation)
		want      bool
	}{
		{"it waits for its turn", asIs, asIs, true},
		{"nobody has committed it", asIs, func(o *v1alpha1.TriageOperation) { o.Spec.Commit = false }, true},
		{"it undoes another operation", asIs, undoes("another"), false},
		{"it undoes another, and this one is an undo too: it may need to know whose decision that restored",
			undoes("a-later-one"), undoes("an-earlier-one"), true},
		{"and this one is the preview of an undo, which has restored nothing", func(o *v1alpha1.TriageOperation) {
			o.Spec.Undo, o.Status.CompletedAt = "a-later-one", nil
		}, undoes("an-earlier-one"), false},
		{"another organization's", asIs, func(o *v1alpha1.TriageOperation) { o.Namespace = "org-y" }, false},
		{"it has selected", asIs, func(o *v1alpha1.TriageOperation) { o.Status.SelectedAt = new(v1alpha1.NewTime(noon)) }, false},
		{"it has failed", asIs, func(o *v1alpha1.TriageOperation) { o.Status.CompletedAt = new(v1alpha1.NewTime(noon)) }, false},
		{"it is being deleted", asIs, func(o *v1alpha1.TriageOperation) {
			o.DeletionTimestamp, o.Finalizers = new(metav1.Now()), []string{"test/held"}
		}, false},
		{"there is nothing to undo", func(o *v1alpha1.TriageOperation) { o.Status.SelectedAt = nil }, asIs, false},
	} {
		due := operation(func(o *v1alpha1.TriageOperation) { o.Status.CompletedAt = new(v1alpha1.NewTime(noon)) })
		undo := builder.TriageOperation("undo", "").In("org-x").Undoes(due.Name).Committed().Build()
		c.due(due)
		c.undo(undo)
		r := &Reconciler{Base: reconcile.Base{
			Client: fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithObjects(due, undo).Build(),
		}}
		held, err := r.held(t.Context(), due, noon)
		harness.Must(t, err)
		harness.Same(t, c.reason, c.want, held)
	}
}

// A page contains many findings, and each of them holds it.
func TestSubjectsOfAPage(t *testing.T) {
	endpoint := builder.WebhookEndpoint("e").In("org-x").Build()
	var entries []webhooks.PageEntry
	for _, name := range []string{"f-1", "f-2"} {
		f := finding(func(f *v1alpha1.Finding) { f.Name = name })
		entries = append(entries, webhooks.PageEntryOf(f, f.Status.Transitions[1]))
	}
	pages, err := webhooks.Pages(webhooks.CauseOfScan(builder.Scan("s-1", noon).In("org-x").Build()), endpoint, entries)
	if err != nil || len(pages) != 1 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	want := []v1alpha1.WebhookEventSubject{{Kind: "Scan", Name: "s-1"}, {Kind: "Finding", Name: "f-1"}, {Kind: "Finding", Name: "f-2"}}
	harness.Same(t, "subjects", want, subjectsOf(pages[0], webhooks.Covered(pages[0])))
}

// Events that a used-up quota of deliveries refuses would wait forever if their findings held all older deliveries.
func TestADeliveryIsHeldOnlyIfItRecordsWhatIsOwed(t *testing.T) {
	endpoint := builder.WebhookEndpoint("e").In("org-x").Mutate(func(e *v1alpha1.WebhookEndpoint) { e.UID = "e" }).Build()
	told := finding(func(f *v1alpha1.Finding) { f.Name, f.UID = "f-told", "f-told" })
	owing := finding(func(f *v1alpha1.Finding) { f.UID, f.Status.EmittedSeq = "f", 1 }) // seq 2
	namesake := finding(func(f *v1alpha1.Finding) { f.UID = "removed" })
	single := func(f *v1alpha1.Finding, seq int64) *v1alpha1.WebhookDelivery {
		d, err := webhooks.NewDelivery(webhooks.Event{SubjectUID: f.UID, Sequence: seq}, endpoint)
		harness.Must(t, err)
		return d
	}
	page := func(entries ...webhooks.PageEntry) *v1alpha1.WebhookDelivery {
		pages, err := webhooks.Pages(webhooks.CauseOfPolicy("p"), endpoint, entries)
		if err != nil || len(pages) != 1 {
			t.Fatalf("%d pages, %v", len(pages), err)
		}
		return pages[0]
	}
	entry := func(f *v1alpha1.Finding, n int) webhooks.PageEntry {
		return webhooks.PageEntryOf(f, f.Status.Transitions[n])
	}
	for _, c := range []struct {
		reason   string
		delivery *v1alpha1.WebhookDelivery
		want     bool
	}{
		{"of what is owed", single(owing, 2), true},
		{"of an earlier change", single(owing, 1), false},
		{"of a removed finding of the same name", single(namesake, 2), false},
		{"a page with what is owed", page(entry(told, 1), entry(owing, 1)), true},
		{"a page with an earlier change", page(entry(told, 1), entry(owing, 0)), false},
		{"a page with a removed finding of the same name", page(entry(told, 1), entry(namesake, 1)), false},
	} {
		harness.Same(t, c.reason, c.want, recordsOwed(c.delivery, webhooks.Covered(c.delivery), owing))
	}
}
