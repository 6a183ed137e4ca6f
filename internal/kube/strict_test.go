package kube

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// What an unknown member of the spec narrows would be decided about more findings than its author selected.
func TestADecisionThatANewerVersionNarrowedIsNotRead(t *testing.T) {
	for _, test := range []struct {
		object       Object
		known, newer string
	}{
		{&v1alpha1.TriageOperation{}, `{"select":{"severity":["low"]}}`, `{"select":{"severity":["low"],"tomorrow":"x"}}`},
		{&v1alpha1.TriageOperation{}, `{"set":{"userStatus":"muted"}}`, `{"set":{"userStatus":"muted","tomorrow":"x"}}`},
		{&v1alpha1.TriagePolicy{}, `{"match":"true"}`, `{"match":"true","tomorrow":"x"}`},
		{&v1alpha1.Finding{}, `{"tool":"gosec","tomorrow":"x"}`, ""}, // any other kind
	} {
		kind, _ := KindOf(test.object)
		read, skipped := specsRead(t, kind, test.known, test.newer)
		wantSkipped := []string{}
		if test.newer != "" {
			wantSkipped = []string{"newer"}
		}
		harness.Same(t, kind.Name+" "+test.newer+": read from the list, the watch, and by its name, twice",
			[]string{"known", "known", "known", "known"}, read)
		harness.Same(t, kind.Name+" "+test.newer+": skipped", wantSkipped, skipped)
	}
}

// The API server would add it to each object, and controllers of before would read none.
func TestNoMemberOfAStrictSpecHasADefault(t *testing.T) {
	for kind := range strictSpecs {
		crd := harness.RepositoryFile(t, "config", "crd", "bases", "appsec.dev_"+Resource(kind)+".yaml")
		_, spec, found := strings.Cut(crd, "\n          spec:\n")
		if spec, _, _ = strings.Cut(spec, "\n          status:\n"); !found || strings.Contains(spec, " default:") {
			t.Errorf("%s: found a spec: %t; want one without a default", kind, found)
		}
	}
}

// specsRead lists and watches objects with these specs, named known and newer, reads each by its name, and returns the
// names of those that are read and those that the list or the watch skips. Each has a member outside of its spec that no
// version knows.
func specsRead(t *testing.T, kind Kind, known, newer string) (read, skipped []string) {
	t.Helper()
	object := func(name, spec string) string {
		const form = `{"apiVersion":"appsec.dev/v1alpha1","kind":%q,` +
			`"metadata":{"name":%q,"resourceVersion":"1","tomorrow":1},"spec":%s,"status":{"tomorrow":1}}`
		return fmt.Sprintf(form, kind.Name, name, spec)
	}
	objects := []string{object("known", known)}
	if newer != "" {
		objects = append(objects, object("newer", newer))
	}
	url := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if i := slices.Index([]string{"known", "newer"}, path.Base(r.URL.Path)); i >= 0 {
			fmt.Fprint(w, objects[i])
			return
		}
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprintf(w, `{"metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(objects, ","))
			return
		}
		bookmark := `{"apiVersion":"appsec.dev/v1alpha1","kind":"` + kind.Name + `","metadata":{"resourceVersion":"2"}}`
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":%s}`, bookmark)
		for _, object := range objects {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`, object)
		}
	}))
	reader, err := NewReader(&rest.Config{Host: url})
	harness.Must(t, err)
	skipped = []string{}
	unreadables := NewUnreadables(logr.Discard(), func(u *Unreadable) { skipped = append(skipped, u.Name) })
	lw := NewListWatch(ListWatchOptions{Kind: kind, From: reader.Source(kind), Unreadables: unreadables})
	listed, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	for _, item := range listed.(*List).Items {
		read = append(read, item.(metav1.Object).GetName())
	}
	begun, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	for event := range begun.ResultChan() {
		if event.Type == "ADDED" {
			read = append(read, event.Object.(metav1.Object).GetName())
		}
	}
	for _, name := range []string{"known", "newer"}[:len(objects)] {
		found, err := reader.Read(t.Context(), "org-acme", name, kind)
		harness.Must(t, err)
		if u, is := found.(*Unreadable); is {
			harness.ErrorContains(t, "why "+kind.Name+" cannot be read", u.Err, "do not remove the member")
		} else {
			read = append(read, name)
		}
		if err := Get(t.Context(), reader.client, "org-acme", name, kind.New()); !apierrors.IsNotFound(err) {
			harness.Must(t, err)
			read = append(read, name)
		}
	}
	return read, skipped
}
