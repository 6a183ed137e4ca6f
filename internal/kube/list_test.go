package kube

import (
	"errors"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func findings() Kind {
	kind, _ := KindOf(&v1alpha1.Finding{})
	return kind
}

// decoded returns the result of decodeList.
func decoded(text string) (meta metav1.ListMeta, names []string, err error) {
	meta, err = decodeList(strings.NewReader(text), findings(), func(object runtime.Object) error {
		names = append(names, object.(metav1.Object).GetName())
		return nil
	})
	return meta, names, err
}

// The streaming decoder yields the same as the decoder of a whole list.
func TestAStreamedListIsTheList(t *testing.T) {
	whole := &v1alpha1.FindingList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FindingList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "77", Continue: "more"},
	}
	for _, name := range []string{"f-1", "f-2", "f-3"} {
		whole.Items = append(whole.Items, *finding(name))
	}
	text := harness.JSON(t, whole)
	want := harness.Decoded[v1alpha1.FindingList](t, text)
	var got []v1alpha1.Finding
	meta, err := decodeList(strings.NewReader(string(text)), findings(), func(object runtime.Object) error {
		got = append(got, *object.(*v1alpha1.Finding))
		return nil
	})
	harness.Must(t, err)
	harness.Same(t, "objects", want.Items, got)
	harness.Same(t, "metadata", want.ListMeta, meta)
}

// The API server sorts the members by name, and may add others.
func TestMembersOfAListComeInAnyOrder(t *testing.T) {
	for _, text := range []string{
		`{"items":[{"metadata":{"name":"f"}}],"metadata":{"resourceVersion":"7"},"more":[{"items":1}]}`,
		`{"more":{"metadata":{"resourceVersion":"8"}},"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"f"}}]}`,
	} {
		meta, names, err := decoded(text)
		if err != nil || meta.ResourceVersion != "7" || len(names) != 1 || names[0] != "f" {
			t.Errorf("%s: got %+v %v, %v", text, meta, names, err)
		}
	}
}

// A truncated list must not be taken for a shorter list.
func TestAListThatIsCutOffIsAnError(t *testing.T) {
	const text = `{"kind":"FindingList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`
	for end := range len(text) {
		if _, _, err := decoded(text[:end]); err == nil {
			t.Errorf("%s is said to be whole", text[:end])
		}
	}
	if _, _, err := decoded(""); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v for no answer", err)
	}
}

func TestWhatIsNoListIsAnError(t *testing.T) {
	for _, text := range []string{`[]`, `null`, `{"items":{}}`, `{"items":[1]}`, `{"metadata":[]}`, `<html>`} {
		if _, _, err := decoded(text); err == nil {
			t.Errorf("%s is taken for a list", text)
		}
	}
}

func FuzzDecodeList(f *testing.F) {
	f.Add(`{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`)
	f.Add(`{"items":[],"metadata":{}}`)
	f.Add(`{"items":[{}],"items":[{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, names, err := decoded(text)
		if err == nil && len(names) > strings.Count(text, "{") {
			t.Errorf("%d objects in %q", len(names), text)
		}
	})
}
