package readmodel

import (
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// FindingFilter matches findings that meet all its conditions. Nil members and empty Words match all findings;
// an empty Class matches findings without a class.
type FindingFilter struct {
	Status     *string
	UserStatus *string
	Severity   *string
	RepoID     *string
	ProjectID  *string
	Class      *string

	// Tool, Category, Rule and Owner (the project's owner) are compared byte by byte.
	Tool, Category, Rule, Owner *string
	// Vulnerability is an id or an alias, ignoring case.
	Vulnerability *string
	// Package is a name, ignoring case, or a package URL.
	Package *string
	// File is a path, or a folder with a slash at its end.
	File *string
	// Policy is the policy behind the verdict in force.
	Policy *string
	// MinScore is in tenths; it does not match findings without a score.
	MinScore *int
	// Created and Updated bound the times shown.
	Created, Updated Period
	// Words must all occur in the title or the path; they are folded.
	Words []string
	// Stale matches findings whose decision is based on facts that have changed, Suppressed those that the
	// source suppresses.
	Stale, Suppressed *bool
}

// Period bounds a time: Since is inclusive, Until exclusive. nil is no bound; an Until that is not after Since
// matches nothing.
type Period struct{ Since, Until *time.Time }

func (p Period) span() index.Span { return spanOf(p.Since, p.Until) }

// condition is one condition of a filter, other than times and words.
type condition struct {
	// selected contains all rows that meet it.
	selected index.Selection[*Item]
	meets    func(*Item) bool
}

// choose picks the rows to examine for a filter, in a list that is sorted by a field: the rows of the most
// selective condition, within the filter's times. The other conditions are evaluated for each of these rows.
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

// fewest returns the index of the condition that the fewest rows meet, -1 if there is none.
func fewest(conditions []condition) int {
	best := -1
	for i, c := range conditions {
		if best < 0 || c.selected.Count < conditions[best].selected.Count {
			best = i
		}
	}
	return best
}

// within bounds the chosen rows by the filter's times: by one of them in the order of a tree, if possible that
// of the list, and by the other row by row.
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

// withinAlone selects all rows within one of the filter's times, and checks the other time row by row.
func (f FindingFilter) withinAlone(x *index.Index[*Item], by int) (s index.Selection[*Item], ok bool) {
	if f.spanOf(by).Unbounded() {
		return s, false
	}
	s = everything(x)
	f.within(x, by, &s)
	return s, true
}

// spanOf returns the bounds of the time that a sort uses.
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

// conditions returns the filter's conditions, except for times and words.
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

// isCondition returns a condition with the bucket of the rows where it is true; rows where it is false have no
// bucket and are checked one by one.
func isCondition(x *index.Index[*Item], field index.Field, want bool, is func(*Item) bool) condition {
	if want {
		return condition{x.PickFirst(field, ""), is}
	}
	return unindexed(x, func(i *Item) bool { return !is(i) })
}

// unindexed returns a condition that is evaluated for each row.
func unindexed(x *index.Index[*Item], meets func(*Item) bool) condition {
	selected := everything(x)
	selected.Also(meets)
	return condition{selected, meets}
}

// packageCondition returns a condition with the package's bucket. A package URL with a version excludes some of
// its rows.
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

// asksDocumented reports whether the filter uses a field whose combinations have buckets.
func (f FindingFilter) asksDocumented() bool {
	return f.Status != nil || f.UserStatus != nil || f.Severity != nil || f.RepoID != nil || f.ProjectID != nil ||
		f.Class != nil
}

func (f FindingFilter) meetsDocumented(i *Item) bool {
	return f.matchesFacet(index.Facet{i.Status, i.UserStatus, i.Severity}) &&
		matches(f.RepoID, i.RepoID) && matches(f.ProjectID, i.ProjectID) && matches(f.Class, i.Class)
}
