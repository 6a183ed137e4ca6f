// Package findings holds the pages of findings: the list with its facets, a finding, and the decision about it.
package findings

import (
	"context"
	"embed"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// Files are the pages' style sheets and modules.
//
//go:embed *.css *.js
var Files embed.FS

const (
	listPath = "/console/findings"
	apiPath  = "/v2/findings"
	// newPolicy is the form that creates a policy from filters.
	newPolicy = "/console/policies/_new"
	// newOperation previews an operation about the selection. Its name is no valid id of an operation.
	newOperation = "/console/operations/_new"
	// pageRows is the number of rows per request.
	pageRows = 100
	// facetValues is how many values of a facet are shown at first, allFacetValues how many on request.
	facetValues    = 6
	allFacetValues = 200
)

var (
	styles  = []string{"findings/findings.css"}
	modules = []string{"findings/findings.js", "findings/live.js"}
)

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{
		{Method: http.MethodGet, Path: "findings", Serve: list},
		{Method: http.MethodGet, Path: "findings/:id", Serve: show},
		{Method: http.MethodGet, Path: "findings/:id/row", Serve: showRow},
		{Method: http.MethodPost, Path: "findings/:id", Serve: decide},
	}
}

// listing is the content of the list.
type listing struct {
	view
	rows
	grouped
	Facets              []facet
	Token, Organization string
	// CanDecide reports that the key may decide, NeedsReason that the organization requires a reason to mute, All that
	// the form to decide about all matching findings was requested.
	CanDecide, NeedsReason, All bool
}

// list serves the list of findings. A module requests only rows, or the updated list.
func list(ctx context.Context, v *page.Visit) (page.Response, error) {
	if err := check(v.Query); err != nil {
		return page.Response{}, err
	}
	shown := listing{
		view: newView(v.Query), Token: v.Token, Organization: v.Who.OrganizationId, CanDecide: v.May("findings:triage"),
		NeedsReason: v.Who.RequiresReason, All: v.Query.Get("all") == "true",
	}
	cursor := v.Query.Get("cursor")
	if v.Scripted && v.Query.Get("part") == "rows" {
		if err := shown.read(ctx, v, cursor); err != nil {
			return page.Response{}, err
		}
		return page.Response{Body: rowsAndMore(shown)}, nil
	}
	group, both := errgroup.WithContext(ctx)
	if _, grouped := shown.groupedBy(); !grouped {
		group.Go(func() error { return shown.read(both, v, cursor) })
	}
	group.Go(func() error { return shown.count(both, v, v.Query.Get("facet")) })
	if err := group.Wait(); err != nil {
		return page.Response{}, err
	}
	if v.Scripted {
		return page.Response{Body: results(shown)}, nil
	}
	return page.Response{Title: "Findings", Body: listPage(shown), Styles: styles, Modules: modules}, nil
}

func (l *listing) read(ctx context.Context, v *page.Visit, cursor string) error {
	query := url.Values{"size": {strconv.Itoa(pageRows)}}
	maps.Copy(query, page.Given(l.values, "sort", "order"))
	maps.Copy(query, l.filters())
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	_, err := v.API.Get(ctx, "/v2/full-findings", query, &l.rows)
	return err
}

// facet is a filter with the values to choose from.
type facet struct {
	filter
	Values []choice
	// Hidden is the number of values that are not shown, and More the address that shows them.
	Hidden int
	More   string
}

// choice is a value of a facet.
type choice struct {
	Word   string
	Count  int32
	Chosen bool
	// Toggle is the address of the view with this value added or removed.
	Toggle string
}

// count counts the findings of the view by all filters at once, for its facets and its groups. opened is the facet that
// shows all its values.
func (l *listing) count(ctx context.Context, v *page.Visit, opened string) error {
	by, grouped := l.groupedBy()
	isOpened := slices.ContainsFunc(faceted, func(f filter) bool { return f.Name == opened })
	query := l.filters()
	query.Set("values", strconv.Itoa(facetValues))
	if grouped || isOpened {
		query.Set("values", strconv.Itoa(allFacetValues))
	}
	var counts client.FindingCounts
	if _, err := v.API.Get(ctx, page.CountsPath, query, &counts); err != nil {
		return err
	}
	if grouped {
		groups, err := fieldOf(ctx, v, query, &counts, by.Name)
		if err != nil {
			return err
		}
		l.Total, l.grouped = int(counts.Total), groupsOf(groups, counts.Total, l.view, by)
		if err := l.describeGroups(ctx, v, by); err != nil {
			return err
		}
	}
	if isOpened {
		all, err := fieldOf(ctx, v, query, &counts, opened)
		if err != nil {
			return err
		}
		counts.Fields = append(counts.Fields, all)
	}
	l.Facets = facetsOf(counts, l.view, opened)
	return nil
}

// fieldOf returns the counts of a field. Some fields are only counted on request, by name: fieldOf requests those.
func fieldOf(
	ctx context.Context, v *page.Visit, query url.Values, counts *client.FindingCounts, field string,
) (client.FieldCounts, error) {
	if known, ok := page.FieldOf(*counts, field); ok {
		return known, nil
	}
	return v.CountsOf(ctx, query, field)
}

// facetsOf returns the facets in the console's order, with their first values. opened is the facet that shows all its
// values.
func facetsOf(counts client.FindingCounts, of view, opened string) (facets []facet) {
	for _, f := range faceted {
		field, ok := page.FieldOf(counts, f.Name)
		if !ok {
			continue
		}
		if f.Name != opened {
			field.Values = field.Values[:min(len(field.Values), facetValues)]
		}
		if shown := newFacet(f, field, of); shown.isUseful() {
			facets = append(facets, shown)
		}
	}
	return facets
}

// inOrder returns the values of a facet: severities by severity, others by count.
func inOrder(f filter, values []client.ValueCount) []client.ValueCount {
	if f.Name != "severity" {
		return values
	}
	return slices.SortedFunc(slices.Values(values), func(a, b client.ValueCount) int {
		return slices.Index(severities, a.Value) - slices.Index(severities, b.Value)
	})
}

var severities = []string{"high", "medium", "low"}

// isUseful reports whether the facet is useful: a single value such as "not in doubt" is no choice.
func (f facet) isUseful() bool {
	switch len(f.Values) {
	case 0:
		return false
	case 1:
		return f.Values[0].Chosen || f.words["false"] != f.Values[0].Word
	}
	return true
}

func newFacet(f filter, field client.FieldCounts, of view) facet {
	shown := facet{filter: f, Hidden: int(field.Distinct) - len(field.Values), More: of.with("facet", f.Name)}
	chosen := of.values.Get(f.Name)
	seen := chosen == ""
	add := func(value string, count int32) {
		is := value == chosen
		toggle := of.with(f.Name, value)
		if is {
			toggle = of.with(f.Name, "")
		}
		shown.Values = append(shown.Values, choice{f.word(value), count, is, toggle})
		seen = seen || is
	}
	for _, value := range inOrder(f, field.Values) {
		if f.isTime() {
			value.Value = ago(value.Value, of.now)
		}
		add(value.Value, value.Count)
	}
	// A chosen value stays visible, so that it can be removed at the same place.
	if !seen {
		add(chosen, -1)
	}
	return shown
}
