package readmodel

import (
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// FindingFilter matches findings that have everything asked for. A nil member, and one without
// words, matches all; an empty Class matches findings without one.
type FindingFilter struct {
	Status     *string
	UserStatus *string
	Severity   *string
	RepoID     *string
	ProjectID  *string
	Class      *string

	// Tool, Category and Rule are compared byte by byte, and so is Owner, the project's.
	Tool, Category, Rule, Owner *string
	// Vulnerability is an id or an alias, whatever its case.
	Vulnerability *string
	// Package is a name, whatever its case, or a package URL.
	Package *string
	// File is a path, or a folder with a slash at its end.
	File *string
	// Policy is the one by which the verdict in force is.
	Policy *string
	// MinScore is in tenths; a finding without a score has none that is enough.
	MinScore *int
	// Created and Updated bound the times shown.
	Created, Updated Period
	// Words are all in the title or the path; they are folded.
	Words []string
	// Stale is whether the decision rests on facts that have changed, Suppressed whether the source
	// suppresses the finding.
	Stale, Suppressed *bool
}

// Period bounds a time: Since is included, Until is not. nil is no bound; an Until that is not
// after Since matches nothing.
type Period struct{ Since, Until *time.Time }

func (p Period) span() index.Span { return spanOf(p.Since, p.Until) }

// condition is what a filter asks in one respect, times and words apart.
type condition struct {
	// selected holds all that meet it.
	selected index.Selection[*Item]
	meets    func(*Item) bool
}

// choose picks what is to be looked at for a filter, in a list that is sorted by a field: the rows of the condition
// that the fewest meet, within the filter's times. What else is asked is looked up in each of them.
func (f FindingFilter) choose(x *index.Index[*Item], by int) index.Selection[*Item] {
	conditions := f.conditions(x)
	among := x.Pick(anyValue, "", f.matchesFacet)
	chosen, rest := everything(x), conditions
	if by == findingSeverity {
		chosen = among
	}
	if best := fewest(conditions); best >= 0 {
		chosen, rest = conditions[best].selected, slices.Delete(slices.Clone(conditions), best, best+1)
		chosen.Meets = conditions[best].meets
	}
	chosen.Among(among)
	f.within(x, by, &chosen)
	for _, c := range rest {
		chosen.Also(c.meets)
	}
	chosen.Words = f.Words
	if !chosen.Looks() {
		return chosen
	}
	for _, sort := range []int{findingCreatedAt, findingUpdatedAt} {
		if other, ok := f.withinAlone(x, sort); ok && other.Count < chosen.Count {
			for _, c := range conditions {
				other.Also(c.meets)
			}
			chosen, chosen.Words = other, f.Words
		}
	}
	return chosen
}

// fewest is the condition that the fewest rows meet, -1 where there is none.
func fewest(conditions []condition) int {
	best := -1
	for i, c := range conditions {
		if best < 0 || c.selected.Count < conditions[best].selected.Count {
			best = i
		}
	}
	return best
}

// within bounds the chosen rows by the filter's times: by one of them as a tree is sorted, by the list's own if
// possible, and by the other row by row.
func (f FindingFilter) within(x *index.Index[*Item], by int, chosen *index.Selection[*Item]) {
	switch {
	case chosen.FirstSortOnly(), f.Updated.span().Unbounded():
		by = findingCreatedAt
	case f.Created.span().Unbounded():
		by = findingUpdatedAt
	case by == findingSeverity:
		by = findingCreatedAt
	}
	x.Within(chosen, by, f.spanOf(by))
	if other := findingUpdatedAt - by; !f.spanOf(other).Unbounded() {
		chosen.Also(f.inTime(other))
	}
}

// withinAlone is all that is within one of the filter's times, and within the other.
func (f FindingFilter) withinAlone(x *index.Index[*Item], by int) (s index.Selection[*Item], ok bool) {
	if f.spanOf(by).Unbounded() {
		return s, false
	}
	s = everything(x)
	f.within(x, by, &s)
	return s, true
}

// spanOf are the bounds of the times of a sort.
func (f FindingFilter) spanOf(sort int) index.Span {
	if sort == findingUpdatedAt {
		return f.Updated.span()
	}
	return f.Created.span()
}

func (f FindingFilter) inTime(sort int) func(*Item) bool {
	within := f.spanOf(sort)
	return func(i *Item) bool { return within.Holds(findingLayout.Values(i)[sort]) }
}

// conditions are what the filter asks, times and words apart.
func (f FindingFilter) conditions(x *index.Index[*Item]) []condition {
	var all []condition
	if f.asksDocumented() {
		selected := f.chooseDocumented(x)
		all = append(all, condition{selected, f.meetsDocumented})
	}
	indexed := func(field index.Field, asked *string, meets func(*Item) bool) {
		if asked != nil {
			selected := x.PickFirst(field, *asked)
			all = append(all, condition{selected, meets})
		}
	}
	if f.Tool != nil {
		selected := pick(x, toolField, *f.Tool, index.AnyFacet)
		all = append(all, condition{selected, func(i *Item) bool { return i.traits.Value().tool == *f.Tool }})
	}
	if f.Owner != nil {
		selected := pick(x, ownerField, *f.Owner, index.AnyFacet)
		all = append(all, condition{selected, func(i *Item) bool { return i.Project.Owner() == *f.Owner }})
	}
	indexed(categoryField, f.Category, func(i *Item) bool { return i.traits.Value().category == *f.Category })
	indexed(ruleField, f.Rule, func(i *Item) bool { return i.traits.Value().rule == *f.Rule })
	if f.Vulnerability != nil {
		key := findingquery.VulnerabilityKey(*f.Vulnerability)
		indexed(vulnerabilityField, &key, func(i *Item) bool {
			t := i.traits.Value()
			return t.hasVulnerability(key)
		})
	}
	if f.Package != nil {
		all = append(all, f.packageCondition(x))
	}
	indexed(policyField, f.Policy, func(i *Item) bool { return i.Policy() == *f.Policy })
	if f.Stale != nil {
		all = append(all, isCondition(x, staleField, *f.Stale, func(i *Item) bool { return i.Stale }))
	}
	if f.Suppressed != nil {
		all = append(all, isCondition(x, suppressedField, *f.Suppressed, func(i *Item) bool { return i.Suppressed }))
	}
	if f.File != nil {
		all = append(all, unindexed(x, func(i *Item) bool { return findingquery.IsIn(i.path, *f.File) }))
	}
	if f.MinScore != nil {
		selected := x.PickFrom(scoreField, scoreKey(*f.MinScore))
		all = append(all, condition{selected, func(i *Item) bool { return int(i.traits.Value().score) >= *f.MinScore }})
	}
	return all
}

// isCondition has the bucket of what is so; what is not so is to be looked up in each row.
func isCondition(x *index.Index[*Item], field index.Field, want bool, is func(*Item) bool) condition {
	if want {
		return condition{x.PickFirst(field, ""), is}
	}
	return unindexed(x, func(i *Item) bool { return !is(i) })
}

// unindexed is a condition that is looked up in each row.
func unindexed(x *index.Index[*Item], meets func(*Item) bool) condition {
	selected := everything(x)
	selected.Also(meets)
	return condition{selected, meets}
}

// packageCondition has the buckets of the package, of which a package URL with a version leaves rows out.
func (f FindingFilter) packageCondition(x *index.Index[*Item]) condition {
	key := findingquery.PackageKey(*f.Package)
	selected := x.PickFirst(packageField, key)
	meets := func(i *Item) bool {
		t := i.traits.Value()
		return findingquery.IsPackageOf(t.packageName, t.purl, *f.Package)
	}
	if *f.Package != key {
		selected.Also(meets)
	}
	return condition{selected, meets}
}

// asksDocumented reports whether one of the filters with buckets for each combination is given.
func (f FindingFilter) asksDocumented() bool {
	return f.Status != nil || f.UserStatus != nil || f.Severity != nil || f.RepoID != nil || f.ProjectID != nil ||
		f.Class != nil
}

func (f FindingFilter) meetsDocumented(i *Item) bool {
	return f.matchesFacet(index.Facet{i.Status, i.UserStatus, i.Severity}) &&
		matches(f.RepoID, i.RepoID) && matches(f.ProjectID, i.ProjectID) && matches(f.Class, i.Class)
}
