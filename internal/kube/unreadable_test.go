package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// odd holds findings that kube-apiserver can serve and that the Go type cannot hold, by what is
// wrong.
var odd = map[string]string{
	"a time that names no instant": `"spec":{"detectedAt":"2026-01-01T00:00:00+99:99"}`,
	"a number in place of a text":  `"spec":{"tool":7}`,
	"a text in place of an object": `"spec":"x"`,
	"a number beyond int32":        `"spec":{"details":{"location":{"lineNumber":4294967296}}}`,
	"a number with an exponent":    `"status":{"observedGeneration":1e+21}`,
	"a list in place of an object": `"status":[]`,
}

func oddFinding(name, part string, version int) string {
	return fmt.Sprintf(`{"apiVersion":"appsec.dev/v1alpha1","kind":"Finding","metadata":{"name":%q,"namespace":"org-acme","uid":"u-%s","resourceVersion":"%d"},%s}`,
		name, name, version, part)
}

func TestAnObjectThatCannotBeReadCostsItselfInALists(t *testing.T) {
	parts := []string{`"spec":{"tool":"gosec"}`}
	for _, part := range odd {
		parts = append(parts, part, `"spec":{"tool":"gosec"}`)
	}
	// The time of a manager's write, which clients cannot read either.
	parts = append(parts, `"spec":{}`)
	items := make([]string, len(parts))
	for i, part := range parts {
		items[i] = oddFinding(fmt.Sprintf("f-%d", i), part, i+1)
	}
	items[len(items)-1] = strings.Replace(items[len(items)-1], `"name"`, `"managedFields":[{"time":"10000-01-01T00:00:00Z"}],"name"`, 1)
	text := `{"items":[` + strings.Join(items, ", ") + `],"metadata":{"resourceVersion":"77"}}`
	var read, passedOver []string
	meta, err := decodeList(strings.NewReader(text), findings(), func(object runtime.Object) error {
		switch object := object.(type) {
		case *v1alpha1.Finding:
			read = append(read, object.Name+object.Spec.Tool)
		case *Unreadable:
			passedOver = append(passedOver, object.Name)
			if object.Namespace != "org-acme" || string(object.UID) != "u-"+object.Name || object.ResourceVersion == "" || object.Err == nil {
				t.Errorf("got %+v", object)
			}
		}
		return nil
	})
	if err != nil || meta.ResourceVersion != "77" {
		t.Fatalf("got %+v, %v", meta, err)
	}
	if len(read) != len(odd)+1 || len(passedOver) != len(odd)+1 || slices.ContainsFunc(read, func(s string) bool { return !strings.HasSuffix(s, "gosec") }) {
		t.Errorf("read %v, passed over %v", read, passedOver)
	}
}

// The bytes of an object are found even if much data precedes it.
func TestAnObjectThatCannotBeReadIsNamedInALongList(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"items":[`)
	filler := strings.Repeat("x", 4000)
	const every, count = 100, 1000
	for i := range count {
		part := `"spec":{"tool":"` + filler + `"}`
		if i%every == 0 {
			part = `"spec":{"tool":7}`
		}
		text.WriteString(strings.Repeat(",", min(i, 1)) + oddFinding(fmt.Sprintf("f-%d", i), part, i+1))
	}
	text.WriteString(`]}`)
	decoder := newListDecoder(strings.NewReader(text.String()), findings())
	for range 3 { // to the list
		_, err := decoder.Token()
		harness.Must(t, err)
	}
	for i := range count {
		object, err := decoder.item()
		harness.Must(t, err)
		_, passedOver := object.(*Unreadable)
		if name := object.(metav1.Object).GetName(); name != fmt.Sprintf("f-%d", i) || passedOver != (i%every == 0) {
			t.Fatalf("object %d is %q, passed over %t", i, name, passedOver)
		}
		if len(decoder.read.kept) > 3*forgetAt {
			t.Fatalf("%d bytes are kept", len(decoder.read.kept))
		}
	}
}

func TestAnObjectThatCannotBeReadCostsItselfInAWatch(t *testing.T) {
	good := `"spec":{"tool":"gosec"}`
	var events []string
	send := func(event, part string, version int) {
		events = append(events, fmt.Sprintf(`{"type":%q,"object":%s}`, event, oddFinding("f", part, version)))
	}
	var want []string
	version := 0
	for _, part := range odd {
		send("ADDED", good, version+1)
		send("MODIFIED", part, version+2)
		send("MODIFIED", good, version+3)
		send("MODIFIED", part, version+4)
		send("DELETED", part, version+5)
		want = append(want, fmt.Sprintf("ADDED %d, DELETED %d, MODIFIED %d, DELETED %d, DELETED %d", version+1, version+2, version+3, version+4, version+5))
		version += 5
	}
	url := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, strings.Join(events, "\n"))
	}))
	reader, err := NewReader(&rest.Config{Host: url})
	harness.Must(t, err)
	var named []*Unreadable
	unreadables := NewUnreadables(logr.Discard(), func(u *Unreadable) { named = append(named, u) })
	last := func(name types.NamespacedName) Object {
		return &v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: name.Name, UID: "u"}, Spec: v1alpha1.FindingSpec{Tool: "as it was"}}
	}
	options := ListWatchOptions{Kind: findings(), From: reader.Source(findings()), Unreadables: unreadables, Last: last}
	begun, err := NewListWatch(options).WatchWithContext(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	var got []string
	for event := range begun.ResultChan() {
		object := event.Object.(*v1alpha1.Finding)
		got = append(got, fmt.Sprintf("%s %s", event.Type, object.ResourceVersion))
		if event.Type == watch.Deleted && object.UID != "" {
			t.Errorf("what cannot be read is deleted for good: %+v", object.ObjectMeta)
		}
		if event.Type == watch.Deleted && object.Spec.Tool != "as it was" {
			t.Errorf("what is deleted is not as it was last read: %+v", object.Spec)
		}
	}
	harness.Same(t, "events", strings.Join(want, ", "), strings.Join(got, ", "))
	harness.Same(t, "times named, anew each time that it was read in between", 2*len(odd), len(named))
	if slices.ContainsFunc(named, unreadables.Knows) {
		t.Error("what was deleted is still known as unreadable")
	}
	harness.Same(t, "named after all were deleted", 0, testutil.CollectAndCount(unreadables, "findings_unreadable_object_info"))
}

func TestUnreadableObjectsAreCountedAndNamedWithinBounds(t *testing.T) {
	found := map[string]int{}
	var one *Unreadable
	unreadables := NewUnreadables(logr.Discard(), func(u *Unreadable) { found[u.Namespace]++; one = u })
	list := &fakeOdd{}
	for i := range maxNamed + 50 {
		list.names = append(list.names, fmt.Sprintf("org-loud/f-%d", i))
	}
	list.names = append(list.names, "org-quiet/f-1")
	l := NewListWatch(ListWatchOptions{Kind: findings(), From: list, Unreadables: unreadables})
	for range 2 {
		_, err := l.ListWithContext(t.Context(), metav1.ListOptions{})
		harness.Must(t, err)
	}
	if one.Kind = "Finding"; !unreadables.Knows(one) {
		t.Errorf("%s is not known any more", one.Name)
	}
	if found["org-loud"] != maxNamed || found["org-quiet"] != 1 {
		t.Errorf("named %v", found)
	}
	harness.Same(t, "counted", float64(maxNamed+51), gauge(t, unreadables))
	list.names = list.names[50:] // makes room for the names of others
	for range 2 {
		_, err := l.ListWithContext(t.Context(), metav1.ListOptions{})
		harness.Must(t, err)
	}
	if found["org-loud"] != maxNamed+50 {
		t.Errorf("named %v after others were mended", found)
	}
	list.names = list.names[:1]
	_, err := l.ListWithContext(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	harness.Same(t, "counted after all but one were deleted", 1.0, gauge(t, unreadables))
}

// gauge returns how many findings are counted.
func gauge(t *testing.T, of prometheus.Collector) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(of)
	families, err := registry.Gather()
	harness.Must(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "findings_unreadable_objects" && metric.GetLabel()[0].GetValue() == "findings" {
				return metric.GetGauge().GetValue()
			}
		}
	}
	t.Fatal("no gauge of findings")
	return 0
}

// fakeOdd lists objects none of which can be read.
type fakeOdd struct {
	Source
	names []string
}

func (f *fakeOdd) List(_ context.Context, _ metav1.ListOptions, each func(runtime.Object) error) (metav1.ListMeta, error) {
	for _, full := range f.names {
		u := &Unreadable{Err: json.Unmarshal([]byte(`""`), new(int))}
		u.Namespace, u.Name, _ = strings.Cut(full, "/")
		if err := each(u); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: "7"}, nil
}

// The plural in paths is the CRD's.
func TestEveryKindIsKnown(t *testing.T) {
	scheme, _, err := decoding()
	harness.Must(t, err)
	known := map[string]bool{}
	for _, kind := range kinds {
		known[kind.Name] = true
		if of, ok := KindOf(kind.New()); !ok || of.Name != kind.Name {
			t.Errorf("a %s is taken for a %s", kind.Name, of.Name)
		}
	}
	for name, object := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if _, listed := object.FieldByName("Items"); !listed && object.PkgPath() == "github.com/appsec-dev/findings-operator/api/v1alpha1" && !known[name] {
			t.Errorf("kinds in internal/kube/kinds.go has no %s", name)
		}
	}
}
