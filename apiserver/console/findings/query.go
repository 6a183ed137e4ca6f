package findings

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
)

// filter is a parameter of the lists of findings, with its names for users.
type filter struct {
	// Name of the parameter.
	Name string
	// Label of the facet.
	Label string
	// words are the names of the values; other values are shown unchanged.
	words map[string]string
}

// yesOrNo returns the names of a boolean's values.
func yesOrNo(yes, no string) map[string]string { return map[string]string{"true": yes, "false": no} }

// faceted are the filters with a facet, in the order of the facets.
var faceted = []filter{
	{"severity", "Severity", nil},
	{"status", "State", map[string]string{"open": "open", "open_muted": "muted", "closed": "closed"}},
	{"user_status", "Decision", decision.Words},
	{"stale", "Decision in doubt", yesOrNo("in doubt", "not in doubt")},
	{"suppressed", "Suppressed in the source", yesOrNo("suppressed", "not suppressed")},
	{"policy", "Policy", nil},
	{"repo_id", "Repository", nil},
	{"project_id", "Project", nil},
	{"owner", "Owner", nil},
	{"tool", "Tool", nil},
	{"category", "Category", nil},
	{"class", "Class", nil},
	{"rule", "Rule", nil},
	{"vulnerability", "Vulnerability", nil},
	{"package", "Package", nil},
	{"file", "File or folder", nil},
	{"min_score", "Score of at least", nil},
	{"created_since", "Found since", nil},
}

// filters are all filters: the last have no facet.
var filters = slices.Concat(faceted, []filter{
	{"text", "Text", nil}, {"created_until", "Found before", nil},
	{"updated_since", "Changed since", nil}, {"updated_until", "Changed before", nil},
})

// filterNamed returns the filter of that name.
func filterNamed(name string) filter {
	return filters[slices.IndexFunc(filters, func(f filter) bool { return f.Name == name })]
}

// IsFilter reports whether the parameter of that name is a filter.
func IsFilter(name string) bool {
	return slices.ContainsFunc(filters, func(f filter) bool { return f.Name == name })
}

// FilterPrefix precedes the names of the filters in the list's form, which has fields of the same names.
const FilterPrefix = "filter."

// FiltersOf returns the filters in the list's form.
func FiltersOf(form url.Values) map[string]string {
	given := map[string]string{}
	for name := range form {
		if filter, is := strings.CutPrefix(name, FilterPrefix); is {
			given[filter] = form.Get(name)
		}
	}
	return given
}

// word returns the name of a value for display.
func (f filter) word(value string) string {
	if word, ok := f.words[value]; ok {
		return word
	}
	if !f.isTime() {
		return ui.Visible(value)
	}
	switch days, ok := daysAgo(value); {
	case !ok:
		return momentOf(value)
	case strings.HasSuffix(f.Name, untilSuffix):
		return fmt.Sprintf("%d %s ago", days, ui.Plural(days, "day", "days"))
	case days == 1:
		return "last day"
	default:
		return fmt.Sprintf("last %d days", days)
	}
}

// momentOf names an absolute time: by its day if the day begins with it.
func momentOf(value string) string {
	at, err := time.Parse(time.RFC3339, strings.ToUpper(value))
	switch {
	case err != nil:
		return ui.Visible(value)
	case at.UTC().Format(time.TimeOnly) == "00:00:00":
		return at.UTC().Format(time.DateOnly)
	}
	return ui.Instant(at)
}

// untilSuffix ends the names of the filters whose time is the first that is left out.
const untilSuffix = "_until"

// isTime reports whether the filter's values are times.
func (f filter) isTime() bool {
	return strings.HasPrefix(f.Name, "created_") || strings.HasPrefix(f.Name, "updated_")
}

// A time in the console's own address may be relative, such as "7d" for 7 days ago, so that a bookmark keeps its
// meaning. The REST API is asked for that time truncated to the hour, as it also counts by hours.
var relative = regexp.MustCompile(`^([1-9][0-9]{0,3})d$`)

// beginsWithDay matches an absolute time, of which the REST API checks the rest.
var beginsWithDay = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]`)

// daysAgo returns the number of days of a relative time.
func daysAgo(value string) (days int, ok bool) {
	found := relative.FindStringSubmatch(value)
	if found == nil {
		return 0, false
	}
	days, err := strconv.Atoi(found[1])
	return days, err == nil
}

// moment returns the absolute time for a relative one.
func (f filter) moment(value string, now time.Time) (at time.Time, ok bool) {
	days, ok := daysAgo(value)
	if !ok || !f.isTime() {
		return time.Time{}, false
	}
	return now.UTC().Truncate(time.Hour).AddDate(0, 0, -days), true
}

// ago returns an absolute time in the relative form of the console's address.
func ago(value string, now time.Time) string {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return value
	}
	const aDay = 24 * time.Hour
	return strconv.Itoa(int(now.Sub(at).Round(aDay)/aDay)) + "d"
}

// Asked returns the list's names for a filter and its value.
func Asked(name, value string) (label, word string) {
	for _, f := range filters {
		if f.Name == name {
			return f.Label, f.word(value)
		}
	}
	return name, value
}

// check refuses an address with unknown parameters or values.
func check(given url.Values) error {
	known := func(name string) bool { return isOfView(name) || slices.Contains(parts, name) }
	if err := page.Check(given, known); err != nil {
		return err
	}
	for _, f := range filters {
		value := given.Get(f.Name)
		if _, ok := daysAgo(value); f.isTime() && value != "" && !ok && !beginsWithDay.MatchString(value) {
			return api.Failed(http.StatusBadRequest, fmt.Sprintf("%q must be a date-time such as 2026-03-01T08:30:00Z, "+
				"or a number of days from 1 to 9999 such as 7d.", f.Name))
		}
	}
	grouping := func(f filter) bool { return f.Name == given.Get("group") }
	if given.Get("group") != "" && !slices.ContainsFunc(groupings, grouping) {
		return api.Failed(http.StatusBadRequest, fmt.Sprintf("Findings are not grouped by %q.", given.Get("group")))
	}
	return nil
}

// arrangements are the parameters for how a view shows its findings, parts those that request a part of the page.
var (
	arrangements = []string{"sort", "order", "group"}
	parts        = []string{"cursor", "facet", "part", "all"}
)

// isOfView reports whether a link to the view keeps the parameter.
func isOfView(name string) bool { return IsFilter(name) || slices.Contains(arrangements, name) }

// view holds the parameters of the page's address that select and order the findings.
type view struct {
	values url.Values
	// now is the base of relative times.
	now time.Time
}

// orders are the possible orders of the list.
var orders = []struct{ Label, Sort, Order string }{
	{"newest first", "created_at", "desc"},
	{"oldest first", "created_at", "asc"},
	{"most severe first", "severity", "desc"},
	{"least severe first", "severity", "asc"},
	{"most recently changed first", "updated_at", "desc"},
	{"least recently changed first", "updated_at", "asc"},
}

// newView keeps only the parameters of a view, for its links. An empty form field is not a filter, nor is a value that
// selects everything.
func newView(given url.Values) view {
	v := view{url.Values{}, time.Now()}
	for name, values := range given {
		if isOfView(name) && len(values) > 0 && values[0] != "" && !selectsAll(name, values[0]) {
			v.values.Set(name, values[0])
		}
	}
	return v
}

// selectsAll reports whether a filter selects everything, so that the REST API refuses it in counts: a text without a
// word, or a time that programs send for one that is not set. Operations from before it did may still show the latter.
func selectsAll(name, value string) bool {
	switch name {
	case "text":
		return strings.TrimSpace(value) == ""
	case "created_since", "updated_since":
		at, err := time.Parse(time.RFC3339, value)
		return err == nil && !at.After(time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC))
	case "created_until", "updated_until":
		at, err := time.Parse(time.RFC3339, value)
		return err == nil && !at.Before(time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC))
	}
	return false
}

// filters returns the filter parameters as the REST API takes them.
func (v view) filters() url.Values {
	only := v.resolved()
	maps.DeleteFunc(only, func(name string, _ []string) bool { return !IsFilter(name) })
	return only
}

// resolved returns the parameters with relative times replaced by absolute ones.
func (v view) resolved() url.Values {
	values := maps.Clone(v.values)
	for _, f := range filters {
		if at, ok := f.moment(values.Get(f.Name), v.now); ok {
			values.Set(f.Name, at.Format(time.RFC3339))
		}
	}
	return values
}

// with returns the address of this view with changed parameters; an empty value removes one. It begins at the first
// page.
func (v view) with(pairs ...string) string {
	return page.Address(listPath, v.values, pairs...)
}

// next returns the address of the rows after a cursor. A cursor is bound to absolute times.
func (v view) next(cursor string) string {
	return page.Address(listPath, v.resolved(), "cursor", cursor)
}

// export returns the address of a file with all findings of the view. It names the organization, because by the time of
// the request somebody may have logged in to another one in another tab. A file has no groups.
func (v view) export(format, organization string) string {
	return page.Address("/console/export", v.resolved(), "group", "", "format", format, "organization", organization)
}

// chip is an active filter, and the address without it.
type chip struct {
	Label, Value, Without string
	// At is the absolute time of a relative one, nil for other filters; Bound is the side of it on which findings are.
	At    *time.Time
	Bound string
}

func (v view) chips() (chips []chip) {
	for _, f := range filters {
		if value := v.values.Get(f.Name); value != "" {
			c := chip{Label: f.Label, Value: f.word(value), Without: v.with(f.Name, "")}
			if at, ok := f.moment(value, v.now); ok {
				c.At = &at
				c.Bound = "since"
				if strings.HasSuffix(f.Name, untilSuffix) {
					c.Bound = "before"
				}
			}
			chips = append(chips, c)
		}
	}
	return chips
}

// sorted reports whether the view is in that order.
func (v view) sorted(sort, order string) bool {
	return cmp.Or(v.values.Get("sort"), "created_at") == sort && cmp.Or(v.values.Get("order"), "desc") == order
}
