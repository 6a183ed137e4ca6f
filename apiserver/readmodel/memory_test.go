package readmodel

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// maxMemory is the model's maximum memory relative to a controller-runtime cache of the same objects. The
// model holds each finding in both shapes, in all orders and by all filters.
const maxMemory = 1.25

// The model needs about as much memory per finding as a controller-runtime cache with default settings, which
// is this store of client-go with the objects as the API server sends them.
func TestMemoryOfAFinding(t *testing.T) {
	const count = 2000
	var stored [][]byte
	for i := range count {
		stored = append(stored, storedFinding(t, i))
	}
	received := func(i int) *v1alpha1.Finding { return harness.Decoded[*v1alpha1.Finding](t, stored[i]) }
	before := harness.Heap()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for i := range count {
		harness.Must(t, indexer.Add(received(i)))
	}
	cached := harness.Heap() - before
	runtime.KeepAlive(indexer)

	before = harness.Heap()
	m, err := New(Options{Source: byHand, Log: logr.Discard()})
	harness.Must(t, err)
	feed(t, m, organizations, organization(acme, acmeNamespace, 1))
	for i := range count {
		feed(t, m, findings, metav1.Object(received(i)))
	}
	settle(m)
	modelled := harness.Heap() - before
	runtime.KeepAlive(m)

	ratio := float64(modelled) / float64(cached)
	t.Logf("a finding of %d bytes takes %d bytes in a cache and %d in the model: %.2f",
		len(stored[0]), cached/count, modelled/count, ratio)
	if ratio > maxMemory {
		t.Errorf("a finding takes %.2f times as much as in a cache, %.2f at most is expected", ratio, maxMemory)
	}
}

// An operation writes the same comments into each of thousands of findings.
func TestEqualCommentsAreHeldOnce(t *testing.T) {
	const count = 300
	taken := func(comments string) int64 {
		m, _ := newAcme(t)
		before := harness.Heap()
		for i := range count {
			object := benchFinding(i, 10+i)
			object.Spec.Triage.Comments = strings.Clone(comments)
			feed(t, m, findings, metav1.Object(object))
		}
		settle(m)
		after := harness.Heap()
		runtime.KeepAlive(m)
		return after - before
	}
	short, long := taken("x"), taken(strings.Repeat("x", 10_000))
	if more := (long - short) / count; more > 1000 {
		t.Errorf("10,000 characters of comments take %d bytes per finding, 1,000 at most are expected", more)
	}
}

// A page of a scan's changes takes up to 64 KiB, and tens of thousands of them may be kept.
func TestThePayloadOfADeliveryIsNotHeld(t *testing.T) {
	const count = 300
	m, _ := newAcme(t)
	before := harness.Heap()
	for i := range count {
		sent := delivery(fmt.Sprint("d-", i), 10+i)
		sent.Spec.Payload = strings.Repeat("x", 60_000)
		feed(t, m, webhookDeliveries, metav1.Object(sent))
	}
	settle(m)
	each := (harness.Heap() - before) / count
	runtime.KeepAlive(m)
	if each > 4000 {
		t.Errorf("a delivery with a payload of 60,000 bytes takes %d bytes, 4,000 at most are expected", each)
	}
}

// storedFinding returns a finding of about 3 KB as the API server sends it, reconciled once.
func storedFinding(t *testing.T, i int) []byte {
	t.Helper()
	object := benchFinding(i, 10+i)
	object.TypeMeta = metav1.TypeMeta{Kind: "Finding", APIVersion: v1alpha1.GroupVersion.String()}
	spec := &object.Spec
	spec.Tool, spec.RuleID, spec.CommitHash, spec.Category = "gosec", "G201", strings.Repeat("c0ffee", 6), "Code"
	spec.Details.Remediation, spec.Details.ExploitWalkthrough = strings.Repeat("Bind the value. ", 20), strings.Repeat("Ask for it. ", 20)
	spec.Details.Location = &v1alpha1.FileLocation{FilePath: fmt.Sprintf("src/main_%d.go", i), LineNumber: 7, URL: "https://code.example/acme/shop/blob/c0ffee/src/main.go#L7"}
	spec.Fingerprints = []v1alpha1.Fingerprint{{Name: "primaryLocationLineHash/v1", Value: strings.Repeat("ab", 16)}}
	spec.Scan = &v1alpha1.FindingScan{ScanID: "scan-1", AnalyzedAt: &v1alpha1.Time{Time: epoch}}
	object.Status = v1alpha1.FindingStatus{
		ObservedGeneration: 1, UpdatedAt: spec.DetectedAt, State: "open", UserStatus: "open", EmittedSeq: 1,
		TriageDigest: strings.Repeat("ab", 16), FactsDigest: strings.Repeat("cd", 16),
		Transitions: []v1alpha1.Transition{{Seq: 1, Type: "Created", At: *spec.DetectedAt}},
		Conditions:  []v1alpha1.Condition{{Type: "Ready", Status: "True", Reason: "Reconciled", Message: "The finding is up to date.", LastTransitionTime: *spec.DetectedAt, ObservedGeneration: 1}},
	}
	object.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "scanner/gosec", Operation: "Apply", APIVersion: "appsec.dev/v1alpha1", Time: &metav1.Time{Time: spec.DetectedAt.Time}, FieldsType: "FieldsV1", FieldsV1: ownedBy(t, spec)},
		{Manager: v1alpha1.ControllerFieldManager, Operation: "Update", APIVersion: "appsec.dev/v1alpha1", Time: &metav1.Time{Time: spec.DetectedAt.Time}, FieldsType: "FieldsV1", Subresource: "status", FieldsV1: ownedBy(t, object.Status)},
	}
	return harness.JSON(t, object)
}

// ownedBy returns the fields of a value in the format of managedFields.
func ownedBy(t *testing.T, value any) *metav1.FieldsV1 {
	t.Helper()
	members := harness.Decoded[any](t, harness.JSON(t, value))
	var owned func(any) any
	owned = func(value any) any {
		out := map[string]any{}
		if object, ok := value.(map[string]any); ok {
			for name, member := range object {
				out["f:"+name] = owned(member)
			}
		}
		return out
	}
	fields := &metav1.FieldsV1{}
	harness.Must(t, fields.UnmarshalJSON(harness.JSON(t, owned(members))))
	return fields
}
