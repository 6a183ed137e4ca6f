package importer

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAListWhoseTokenHasExpiredBeginsAnew(t *testing.T) {
	page := func(token string, names ...string) v1alpha1.FindingList {
		list := v1alpha1.FindingList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FindingList"}}
		list.Continue = token
		for _, name := range names {
			finding := v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: name}}
			finding.TypeMeta = metav1.TypeMeta{APIVersion: list.APIVersion, Kind: "Finding"}
			list.Items = append(list.Items, finding)
		}
		return list
	}
	first := page("expired", "f-1", "f-2")
	c := answering(t, func(r *http.Request) (code int, object any) {
		switch r.URL.Query().Get("continue") {
		case "expired":
			first = page("next", "f-2")
			return harness.Refusal(apierrors.NewResourceExpired("the list is too old"))
		case "next":
			return http.StatusOK, page("", "f-3")
		default:
			return http.StatusOK, first
		}
	})
	findings, _, err := List[v1alpha1.Finding](t.Context(), c, "org-acme", fields.Everything())
	harness.Must(t, err)
	var names []string
	for i := range findings {
		names = append(names, findings[i].Name)
	}
	harness.Same(t, "findings", []string{"f-2", "f-3"}, names)
}

// Whoever may write a finding can make its metadata larger than all that an import reads of it.
func TestListedObjectsAreTrimmed(t *testing.T) {
	finding := v1alpha1.Finding{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Finding"}}
	finding.Name = "f-1"
	large := finding
	large.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	large.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "scanner/old"}}
	c := answering(t, func(*http.Request) (code int, object any) {
		return http.StatusOK, v1alpha1.FindingList{Items: []v1alpha1.Finding{large}}
	})
	findings, _, err := List[v1alpha1.Finding](t.Context(), c, "org-acme", fields.Everything())
	harness.Must(t, err)
	harness.Same(t, "findings", []v1alpha1.Finding{finding}, findings)
}

func TestScansOfPullRequestsAreNotKept(t *testing.T) {
	const pages = 8
	review := v1alpha1.Scan{ObjectMeta: metav1.ObjectMeta{Name: "s-review"}}
	review.Spec.Review = &v1alpha1.ScanReview{Name: "r-1"}
	review.Spec.Message = strings.Repeat("x", 1<<20)
	ofBranch := v1alpha1.Scan{ObjectMeta: metav1.ObjectMeta{Name: "s-1"}}
	var first, last int64
	c := answering(t, func(r *http.Request) (code int, object any) {
		token := r.URL.Query().Get("continue")
		list := v1alpha1.ScanList{Items: []v1alpha1.Scan{review}}
		switch token {
		case "":
			first, list.Continue = harness.Heap(), "x"
		case strings.Repeat("x", pages):
			last, list.Items = harness.Heap(), []v1alpha1.Scan{ofBranch}
		default:
			list.Continue = token + "x"
		}
		return http.StatusOK, list
	})
	scans, _, err := New(c, Target{Namespace: "org-acme"}, Options{}).scans(t.Context(), &job{Batch: &Batch{Tool: "lint"}})
	harness.Must(t, err)
	harness.Same(t, "scans", []string{"s-1"}, slices.Collect(maps.Keys(scans)))
	if last > first+pages<<19 {
		t.Errorf("%d bytes are in use at first, and %d with the last of %d pages", first, last, pages)
	}
}

// A file of a few kilobytes may hold 32 scans, each of which may take over the findings without an analysis.
func TestScansOfAToolAreComparedWithOneListOfItsFindings(t *testing.T) {
	var mu sync.Mutex
	listed := map[string]int{}
	c := listing(t, func(kind, project, tool string) []v1alpha1.Finding {
		mu.Lock()
		defer mu.Unlock()
		listed[kind+" "+project+" "+tool]++
		if tool == "scan" {
			return nil
		}
		f := v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: "f-1"}, Spec: v1alpha1.FindingSpec{Tool: tool, Analysis: "of none"}}
		f.Spec.Scan = &v1alpha1.FindingScan{ScanID: "removed"} // so that the scans are read once more
		return []v1alpha1.Finding{f}
	})
	batches := []*Batch{
		{Tool: "lint", Analysis: "a"}, {Tool: "lint", Analysis: "b"}, {Tool: "lint", Analysis: "a", Project: "api"},
		{Tool: "lint", Analysis: "c"}, {Tool: "scan", Analysis: "a"},
	}
	im := New(c, Target{Namespace: "org-acme", Repository: "shop", Project: "web"}, Options{DryRun: true})
	_, err := im.Import(t.Context(), batches)
	harness.Must(t, err)
	harness.Same(t, "lists by project and tool", map[string]int{
		"findings web lint": 1, "findings api lint": 1, "findings web scan": 1,
		"scans web lint": 2, "scans api lint": 2, "scans web scan": 1,
	}, listed)
	turns := 0
	c.WaitForTurn = func(context.Context) (Turn, error) {
		turns++
		return over{}, nil
	}
	clear(listed)
	_, err = im.Import(t.Context(), batches)
	harness.Must(t, err)
	harness.Same(t, "lists if others wait", map[string]int{
		"findings web lint": 3, "findings api lint": 1, "findings web scan": 1,
		"scans web lint": 4, "scans api lint": 2, "scans web scan": 1,
	}, listed)
	harness.Same(t, "turns", 5, turns)
}

// Each of 32 scans would otherwise keep and write a change of each finding under the former name.
func TestOneScanOfAnImportRenamesAFinding(t *testing.T) {
	c := listing(t, func(_, _, tool string) (findings []v1alpha1.Finding) {
		for name, analysis := range map[string]string{"f-1": "of none", "f-2": "of none", "f-3": "a", "f-4": "b"} {
			f := v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.FindingSpec{Tool: tool, Analysis: analysis}}
			if tool == "oldlint" {
				findings = append(findings, f)
			}
		}
		return findings
	})
	var batches []*Batch
	for _, analysis := range []string{"a", "b"} {
		batches = append(batches, &Batch{Tool: "lint", GivenFormer: "oldlint", Analysis: analysis})
	}
	im := New(c, Target{Namespace: "org-acme", Repository: "shop", Project: "web"}, Options{DryRun: true})
	summaries, err := im.Import(t.Context(), batches)
	harness.Must(t, err)
	harness.Same(t, "renamed", []map[string]int{{"oldlint": 1}, {"oldlint": 3}}, []map[string]int{summaries[0].Renamed, summaries[1].Renamed})
	harness.Same(t, "changes", []int{1, 3}, []int{len(summaries[0].Changes), len(summaries[1].Changes)})
}

// Most findings have it, and of all names only the last one is listed once.
func TestABatchsOwnNameIsTheLastOneOfItsTool(t *testing.T) {
	for _, tc := range []struct {
		reason, tool, former string
		want                 []string
	}{
		{"an unknown tool", "lint", "", []string{"lint"}},
		{"a former name is given", "lint", "oldlint", []string{"oldlint", "lint"}},
		{"its own name is given", "lint", "lint", []string{"lint"}},
		{"known names", "CodeQL", "", []string{"CodeQL command-line toolchain", "CodeQL"}},
		{"another job may have a newer name", "bandit", "", []string{"Security audit for python by bandit", "Bandit", "bandit"}},
		{"one of the known names is given", "Bandit", "bandit", []string{"Security audit for python by bandit", "bandit", "Bandit"}},
		{"another name is given", "gosec", "golint", []string{"Golang security checks by gosec", "golint", "gosec"}},
	} {
		harness.Same(t, tc.reason, tc.want, (&Batch{Tool: tc.tool, GivenFormer: tc.former}).names())
	}
}

// An import of another job renames it between two lists: each scan gives the findings that it reports its own name,
// whether that is newer or older.
func TestAFindingThatIsRenamedWhileFindingsAreListedIsKnownOnce(t *testing.T) {
	for _, batch := range []*Batch{
		{Tool: "lint", GivenFormer: "oldlint"}, {Tool: "Semgrep OSS"}, {Tool: "bandit"},
	} {
		names := batch.names()
		for reader, read := range readers(batch, Base{}) {
			for _, from := range names {
				for _, to := range slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == from }) {
					for after := 1; after < 2*len(names)-1; after++ {
						lists, listed := renamedAfter(t, after, read, from, func(f *v1alpha1.Finding) { f.Spec.Tool = to })
						doing := fmt.Sprintf("%s of %s; %q becomes %q after %d lists", reader, batch.Tool, from, to, after)
						harness.Same(t, doing+": findings", lists.last, listed)
						harness.Same(t, doing+": number of findings", 1, len(listed))
						harness.Same(t, doing+": lists of its own name", 1, lists.of[batch.Tool])
					}
				}
			}
		}
	}
}

func TestAFindingThatIsClosedWhileTheBaseIsListedIsNotKnown(t *testing.T) {
	base := Base{Since: time.Now()}
	_, listed := renamedAfter(t, 1, readers(&Batch{Tool: "lint", GivenFormer: "oldlint"}, base)["a review"], "oldlint", func(f *v1alpha1.Finding) {
		f.Spec.Tool = "lint"
		f.Spec.Closed = &v1alpha1.FindingClosure{At: v1alpha1.NewTime(base.Since.Add(-time.Minute))}
	})
	harness.Same(t, "number of findings", 0, len(listed))
}

type reading func(c *Client) ([]v1alpha1.Finding, error)

// readers returns what reads the findings of a batch's tool.
func readers(batch *Batch, base Base) map[string]reading {
	base.Namespace = "org-acme"
	return map[string]reading{
		"an import": func(c *Client) ([]v1alpha1.Finding, error) {
			l, err := New(c, Target{Namespace: "org-acme"}, Options{}).listFindings(context.Background(), &job{Batch: batch})
			if err != nil {
				return nil, err
			}
			return l.findings, nil
		},
		"a review": func(c *Client) ([]v1alpha1.Finding, error) {
			comparison := toolComparison{base: base, repository: &v1alpha1.Repository{}, coverage: coverage{batches: []*Batch{batch}}, out: &Compared{}}
			err := comparison.read(context.Background(), c)
			return comparison.findings, err
		},
	}
}

// lists records lists of findings: how many of each tool, and the last one that was not empty.
type lists struct {
	of   map[string]int
	last []v1alpha1.Finding
}

// renamedAfter reads the only finding, of the tool from, which changes after that many lists of findings.
func renamedAfter(t *testing.T, after int, read reading, from string, change func(*v1alpha1.Finding)) (lists, []v1alpha1.Finding) {
	t.Helper()
	var mu sync.Mutex
	done, now := lists{of: map[string]int{}}, v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: "f-1"}, Spec: v1alpha1.FindingSpec{Tool: from}}
	c := listing(t, func(kind, _, tool string) (findings []v1alpha1.Finding) {
		mu.Lock()
		defer mu.Unlock()
		if kind != "findings" {
			return nil
		}
		if after == 0 {
			change(&now)
		}
		after--
		done.of[tool]++
		if now.Spec.Tool == tool {
			done.last = []v1alpha1.Finding{now}
			return done.last
		}
		return nil
	})
	listed, err := read(c)
	harness.Must(t, err)
	return done, listed
}

func TestOfAlikeFindingsADecidedOneComesFirstAndThenTheCurrentName(t *testing.T) {
	finding := func(name, tool string, status v1alpha1.UserStatus) v1alpha1.Finding {
		f := v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		f.Spec.Tool, f.Spec.Triage.UserStatus = tool, status
		return f
	}
	merged := (&Batch{Tool: "lint"}).merged([]v1alpha1.Finding{
		finding("f-1", "oldlint", v1alpha1.UserStatusOpen), finding("f-2", "oldlint", v1alpha1.UserStatusMuted),
		finding("f-3", "lint", v1alpha1.UserStatusOpen), finding("f-4", "lint", ""), finding("f-5", "lint", v1alpha1.UserStatusActive),
	})
	var names []string
	for i := range merged {
		names = append(names, merged[i].Name)
	}
	harness.Same(t, "findings", []string{"f-5", "f-2", "f-3", "f-4", "f-1"}, names)
}

func TestAChangeThatIsDecidedAgainKeepsATrimmedFinding(t *testing.T) {
	now := &v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{
		Name: "f-1", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "scanner/old"}},
	}}
	ch := &change{action: ActionClose}
	(&writer{}).again(ch, now)
	harness.Same(t, "finding", &v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: "f-1"}}, ch.before)
}

// over is a turn that others wait for.
type over struct{ endless }

func (over) Over() bool { return true }

// listing returns a client of an API server that holds the projects web and api of the repository shop, no scans, and
// the findings that the function returns. It is called for each list of scans and findings.
func listing(t *testing.T, findings func(kind, project, tool string) []v1alpha1.Finding) *Client {
	t.Helper()
	return answering(t, func(r *http.Request) (code int, object any) {
		kind := func(kind string) metav1.TypeMeta {
			return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
		}
		name := path.Base(r.URL.Path)
		switch name {
		case "shop":
			return http.StatusOK, v1alpha1.Repository{TypeMeta: kind("Repository")}
		case "web", "api":
			project := v1alpha1.Project{TypeMeta: kind("Project")}
			project.Spec.RepositoryRef.Name = "shop"
			return http.StatusOK, project
		}
		selector := fields.ParseSelectorOrDie(r.URL.Query().Get("fieldSelector"))
		project, _ := selector.RequiresExactMatch("spec.projectRef.name")
		tool, _ := selector.RequiresExactMatch("spec.tool")
		list := v1alpha1.FindingList{TypeMeta: kind("FindingList"), Items: findings(name, project, tool)}
		if name == "scans" {
			return http.StatusOK, v1alpha1.ScanList{}
		}
		return http.StatusOK, list
	})
}

// answering returns a client of an API server that answers each request with what the function returns for it.
func answering(t *testing.T, answer func(*http.Request) (code int, object any)) *Client {
	t.Helper()
	c, err := NewClient(&rest.Config{Host: harness.ServeJSON(t, answer)})
	harness.Must(t, err)
	return c
}
