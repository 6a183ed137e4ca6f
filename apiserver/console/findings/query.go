package findings

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// filter is a parameter of the lists of findings, as people know it.
type filter struct {
	// Name of the parameter.
	Name string
	// Label of the facet.
	Label string
	// words are what the values are called; other values are shown as they are.
	words map[string]string
}

// yesOrNo are the words of a boolean.
func yesOrNo(yes, no string) map[string]string { return map[string]string{"true": yes, "false": no} }

// filters in the order in which their facets are shown.
var filters = []filter{
	{"severity", "Severity", nil},
	{"status", "State", map[string]string{"open": "open", "open_muted": "muted", "closed": "closed"}},
	{"user_status", "Decision", map[string]string{"open": "undecided", "active": "confirmed", "muted": "muted"}},
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

// more are the filters that have no facet.
var more = []filter{
	{"text", "Text", nil}, {"created_until", "Found until", nil},
	{"updated_since", "Changed since", nil}, {"updated_until", "Changed until", nil},
}

// filterNamed returns the filter of that name.
func filterNamed(name string) filter {
	return filters[slices.IndexFunc(filters, func(f filter) bool { return f.Name == name })]
}

// isFilter reports whether a parameter of that name leaves findings out.
func isFilter(name string) bool {
	named := func(f filter) bool { return f.Name == name }
	return slices.ContainsFunc(filters, named) || slices.ContainsFunc(more, named)
}

// word returns what a value is called.
func (f filter) word(value string) string {
	if word, ok := f.words[value]; ok {
		return word
	}
	if f.Name == "created_since" {
		return lately(value)
	}
	if strings.HasPrefix(f.Name, "created_") || strings.HasPrefix(f.Name, "updated_") {
		return day(value)
	}
	return value
}

// lately says how long ago a moment was that is counted from, and the day of any other.
func lately(at string) string {
	moment, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return day(at)
	}
	switch days := int(time.Since(moment).Round(24*time.Hour) / (24 * time.Hour)); days {
	case 1:
		return "last day"
	case 7, 30, 90, 365:
		return fmt.Sprintf("last %d days", days)
	}
	return day(at)
}

// day is the day of a moment, whose hour nobody looks for.
func day(at string) string {
	day, _, _ := strings.Cut(at, "T")
	return day
}

// check refuses an address that asks for what does not exist: a filter that is misspelt would show more than was asked
// for, and one that is given twice less.
func check(given url.Values) error {
	for name, values := range given {
		switch {
		case !isOfView(name) && !slices.Contains(parts, name):
			return api.Failed(http.StatusBadRequest, fmt.Sprintf("There is no filter %q.", name))
		case len(values) > 1:
			return api.Failed(http.StatusBadRequest, fmt.Sprintf("%q is given more than once.", name))
		}
	}
	known := func(f filter) bool { return f.Name == given.Get("group") }
	if given.Get("group") != "" && !slices.ContainsFunc(groupings, known) {
		return api.Failed(http.StatusBadRequest, fmt.Sprintf("Findings are not grouped by %q.", given.Get("group")))
	}
	return nil
}

// arrangements are the parameters that say how a view shows its findings, parts those that say what of it is asked for.
var (
	arrangements = []string{"sort", "order", "group"}
	parts        = []string{"cursor", "facet", "part"}
)

// isOfView reports whether a link to the view keeps the parameter.
func isOfView(name string) bool { return isFilter(name) || slices.Contains(arrangements, name) }

// view is what a person looks at: the parameters of the page's address that say which findings, and in which order.
type view struct{ values url.Values }

// orders are those that the list can be in.
var orders = []struct{ Label, Sort, Order string }{
	{"newest first", "created_at", "desc"},
	{"oldest first", "created_at", "asc"},
	{"most severe first", "severity", "desc"},
	{"least severe first", "severity", "asc"},
	{"most recently changed first", "updated_at", "desc"},
	{"least recently changed first", "updated_at", "asc"},
}

// newView keeps what belongs to a view, so that a link holds nothing else. A field left empty in a form is no filter.
func newView(given url.Values) view {
	v := view{url.Values{}}
	for name, values := range given {
		if isOfView(name) && len(values) > 0 && values[0] != "" {
			v.values.Set(name, values[0])
		}
	}
	return v
}

// filters returns the parameters that leave findings out.
func (v view) filters() url.Values {
	only := url.Values{}
	for name := range v.values {
		if isFilter(name) {
			only.Set(name, v.values.Get(name))
		}
	}
	return only
}

// with returns the address of this view with another value of a parameter, without it where the value is empty. It
// begins at the first page.
func (v view) with(pairs ...string) string {
	return page.Address(listPath, v.values, pairs...)
}

// export returns the address of all that the view shows, as a file.
func (v view) export(format string) string {
	return page.Address("/console/export", v.values, "format", format)
}

// chip is a filter in force, and the address without it.
type chip struct{ Label, Value, Without string }

func (v view) chips() (chips []chip) {
	for _, f := range slices.Concat(filters, more) {
		if value := v.values.Get(f.Name); value != "" {
			chips = append(chips, chip{f.Label, f.word(value), v.with(f.Name, "")})
		}
	}
	return chips
}

// sorted reports whether the view is in that order.
func (v view) sorted(sort, order string) bool {
	given := func(name, byDefault string) string {
		if value := v.values.Get(name); value != "" {
			return value
		}
		return byDefault
	}
	return given("sort", "created_at") == sort && given("order", "desc") == order
}
