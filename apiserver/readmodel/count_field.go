package readmodel

import (
	"strconv"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// countField is a list parameter that findings are counted by. Each returned value can be used in a filter.
type countField struct {
	name string
	// take removes the conditions on the field from a filter and returns them.
	take func(*FindingFilter) FindingFilter
	// by is the likeness that determines the field's values.
	by likeness
	// values adds the values of a finding, and so of all findings in its group.
	values func(like *Item, add func(value string))
}

// The bounds of the ranges that findings are counted by.
var (
	ageDays = []int{1, 7, 30, 90, 365}
	// scores holds the bounds of the CVSS ratings, in tenths and as clients see them.
	scores = []struct {
		tenths int16
		shown  string
	}{{90, "9"}, {70, "7"}, {40, "4"}, {1, "0.1"}}
)

// fileField is counted only on request: nearly every finding has its own value.
const fileField = "file"

// countFields returns all fields, in the order in which they are returned to clients.
func countFields(now time.Time) []countField {
	type filter = FindingFilter
	return []countField{
		one("status", byKind, func(i *Item) string { return i.Status },
			member(func(f *filter) **string { return &f.Status })),
		one("user_status", byKind, func(i *Item) string { return i.UserStatus },
			member(func(f *filter) **string { return &f.UserStatus })),
		one("severity", byKind, func(i *Item) string { return i.Severity },
			member(func(f *filter) **string { return &f.Severity })),
		{"min_score", member(func(f *filter) **int { return &f.MinScore }), byTraits, scoresOf},
		one("stale", byKind, func(i *Item) string { return strconv.FormatBool(i.Stale) },
			member(func(f *filter) **bool { return &f.Stale })),
		one("suppressed", byKind, func(i *Item) string { return strconv.FormatBool(i.Suppressed) },
			member(func(f *filter) **bool { return &f.Suppressed })),
		one("repo_id", byPlace, func(i *Item) string { return i.RepoID },
			member(func(f *filter) **string { return &f.RepoID })),
		one("project_id", byPlace, func(i *Item) string { return i.ProjectID },
			member(func(f *filter) **string { return &f.ProjectID })),
		one("owner", byPlace, func(i *Item) string { return i.Project.Owner() },
			member(func(f *filter) **string { return &f.Owner })),
		one("class", byClass, func(i *Item) string { return i.Class },
			member(func(f *filter) **string { return &f.Class })),
		one("tool", byTraits, func(i *Item) string { return i.traits.Value().tool },
			member(func(f *filter) **string { return &f.Tool })),
		one("category", byTraits, func(i *Item) string { return i.traits.Value().category },
			member(func(f *filter) **string { return &f.Category })),
		one("rule", byTraits, func(i *Item) string { return i.traits.Value().rule },
			member(func(f *filter) **string { return &f.Rule })),
		{"vulnerability", member(func(f *filter) **string { return &f.Vulnerability }), byTraits, vulnerabilitiesOf},
		one("package", byTraits, func(i *Item) string { return findingquery.PackageNameKey(i.traits.Value().packageName) },
			member(func(f *filter) **string { return &f.Package })),
		one("policy", byKind, (*Item).Policy, member(func(f *filter) **string { return &f.Policy })),
		createdSince(now),
		one(fileField, byPath, func(i *Item) string { return findingquery.FileKey(i.path) },
			member(func(f *filter) **string { return &f.File })),
	}
}

// one returns a field of which a finding has at most one value.
func one(name string, by likeness, value func(*Item) string, take func(*FindingFilter) FindingFilter) countField {
	return countField{name, take, by, func(i *Item, add func(string)) {
		if v := value(i); v != "" {
			add(v)
		}
	}}
}

// member returns a function that takes one member of a filter.
func member[T any](of func(*FindingFilter) **T) func(*FindingFilter) FindingFilter {
	return func(f *FindingFilter) (taken FindingFilter) {
		*of(&taken), *of(f) = *of(f), nil
		return taken
	}
}

func scoresOf(i *Item, add func(string)) {
	score := i.traits.Value().score
	for _, bound := range scores {
		if score >= bound.tenths {
			add(bound.shown)
		}
	}
}

func vulnerabilitiesOf(i *Item, add func(string)) {
	for key := range strings.SplitSeq(i.traits.Value().vulnerabilities, betweenKeys) {
		if key != "" {
			add(key)
		}
	}
}

// createdSince counts findings created in the last days, to the hour, so that the values stay the same for a
// while.
func createdSince(now time.Time) countField {
	bounds := make([]string, len(ageDays))
	for k, days := range ageDays {
		bounds[k] = render.Timestamp(now.UTC().Truncate(time.Hour).AddDate(0, 0, -days))
	}
	take := func(f *FindingFilter) (taken FindingFilter) {
		taken.Created.Since, f.Created.Since = f.Created.Since, nil
		return taken
	}
	return countField{"created_since", take, byHour, func(i *Item, add func(string)) {
		for _, bound := range bounds {
			if i.CreatedAt() >= bound {
				add(bound)
			}
		}
	}}
}
