package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// sorting is an order of findings: by a key, then by name.
type sorting struct {
	key        func(*v1alpha1.Finding) string
	descending bool
}

var sortings = map[string]sorting{
	"name":       {key: func(f *v1alpha1.Finding) string { return f.Name }},
	"title":      {key: func(f *v1alpha1.Finding) string { return strings.ToLower(f.Spec.Details.Title) }},
	"repository": {key: func(f *v1alpha1.Finding) string { return string(f.Spec.RepositoryRef.Name) }},
	"project":    {key: func(f *v1alpha1.Finding) string { return string(f.Spec.ProjectRef.Name) }},
	"state":      {key: func(f *v1alpha1.Finding) string { return string(findingquery.StateOf(f)) }},
	"tool":       {key: func(f *v1alpha1.Finding) string { return f.Spec.Tool }},
	"severity": {key: func(f *v1alpha1.Finding) string {
		return strconv.Itoa(slices.Index(severityChoice.values, string(f.Spec.Details.Severity))) +
			worstFirst(f.Spec.Details.Score)
	}},
	"age":      {key: func(f *v1alpha1.Finding) string { return instant(madeAt(f)) }, descending: true},
	"detected": {key: func(f *v1alpha1.Finding) string { return instant(detectedAt(f)) }, descending: true},
	"updated": {key: func(f *v1alpha1.Finding) string {
		return instant(findingstate.Recorded(f).Status.UpdatedAt)
	}, descending: true},
}

// worstFirst returns a key that sorts higher scores first, and findings without a score last.
func worstFirst(score string) string {
	number, err := strconv.ParseFloat(score, 64)
	if err != nil {
		return "z"
	}
	return fmt.Sprintf("%05.1f", 100-number)
}

func sortNames() []string { return slices.Sorted(maps.Keys(sortings)) }

// madeAt returns when the object was created, which its age refers to, as in every kubectl table.
func madeAt(object metav1.Object) *v1alpha1.Time {
	return &v1alpha1.Time{Time: object.GetCreationTimestamp().Time}
}

// detectedAt returns when the problem was first seen.
func detectedAt(f *v1alpha1.Finding) *v1alpha1.Time {
	at := findingstate.CreatedAt(f)
	return &at
}

// entry is the stored part of a finding: its row or the object itself.
type entry struct {
	key    string
	row    row
	object unstructured.Unstructured
}

// listing collects the findings to show.
type listing struct {
	output *output
	// namespaces means that the table shows them.
	namespaces bool
	order      sorting
	// matches filters by criteria that the API server does not support; may be nil.
	matches func(*v1alpha1.Finding) bool
	// limit is how many entries to show; 0: all. Without an order, add returns errEnough once it has read one more.
	limit   int64
	now     time.Time
	entries []entry
}

// add processes a page, and keeps only the parts of each finding that will be printed.
func (l *listing) add(s *session, items []unstructured.Unstructured) error {
	if !l.output.tables() && l.order.key == nil && l.matches == nil { // it need not be read
		for _, item := range items {
			l.entries = append(l.entries, entry{object: l.kept(item)})
		}
		return nil
	}
	for item, finding := range readable[v1alpha1.Finding](s, items) {
		if l.matches != nil && !l.matches(finding) {
			continue
		}
		e := entry{}
		if l.order.key != nil {
			e.key = l.order.key(finding)
		}
		if l.output.tables() {
			e.row = findingRow(finding, l.now, l.output.wide(), l.namespaces)
		} else {
			e.object = l.kept(item)
		}
		l.entries = append(l.entries, e)
		if l.order.key == nil && l.limit > 0 && int64(len(l.entries)) > l.limit {
			return errEnough
		}
	}
	return nil
}

// kept returns the part of an object that will be printed.
func (l *listing) kept(item unstructured.Unstructured) unstructured.Unstructured {
	if !l.output.names() {
		return item
	}
	named := unstructured.Unstructured{}
	named.SetGroupVersionKind(item.GroupVersionKind())
	named.SetName(item.GetName())
	return named
}

// sortAndLimit sorts the entries and keeps the first ones. It reports whether any were left out.
func (l *listing) sortAndLimit() bool {
	if l.order.key != nil {
		// The API server already returns findings sorted by name.
		slices.SortStableFunc(l.entries, func(a, b entry) int {
			if l.order.descending {
				a, b = b, a
			}
			return cmp.Compare(a.key, b.key)
		})
	}
	if l.limit > 0 && int64(len(l.entries)) > l.limit {
		l.entries = l.entries[:l.limit]
		return true
	}
	return false
}

func (l *listing) rows() []row {
	rows := make([]row, len(l.entries))
	for i, e := range l.entries {
		rows[i] = e.row
	}
	return rows
}

func (l *listing) objects() []unstructured.Unstructured {
	objects := make([]unstructured.Unstructured, len(l.entries))
	for i, e := range l.entries {
		objects[i] = e.object
	}
	return objects
}
