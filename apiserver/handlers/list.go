package handlers

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// list holds the parameters that all lists have.
type list struct {
	// binding is the list that its cursors are valid for.
	binding cursor.List
	token   string
	limit   index.Limit
}

// maxPageBytes bounds the body of a list, as openapi.yaml states: a finding can take 335 KB, and a page of
// 1,000 of them would fill the memory of the server or the client.
const maxPageBytes = 8 << 20

// envelopeBytes is an upper bound for the page without its items: mostly the cursor.
const envelopeBytes = cursor.MaxLength + 1<<10

// pageParameters are the parameters of a list that are not filters.
var pageParameters = []string{"sort", "order", "size", "cursor"}

// newList reads a request. Its cursors are bound to every parameter that is given, except pageParameters.
func newList(endpoint string, request Request) list {
	filters := request.Query.Values()
	for _, name := range pageParameters {
		delete(filters, name)
	}
	for name, value := range filters {
		filters[name] = spelled(name, value)
	}
	return list{
		binding: cursor.List{
			Organization: request.Organization,
			Endpoint:     endpoint,
			Sort:         request.Query.Get("sort"),
			Order:        request.Query.Get("order"),
			Filters:      filters,
		},
		token: request.Query.Get("cursor"),
		limit: index.Limit{Size: request.Query.Int("size"), Bytes: maxPageBytes - envelopeBytes},
	}
}

// spelled returns the canonical spelling of a filter's value, for filters where different texts match the same.
func spelled(name, value string) string {
	switch name {
	case "vulnerability":
		return findingquery.VulnerabilityKey(value)
	case "package":
		return findingquery.PackageSpelling(value)
	case "text":
		return strings.Join(findingquery.Words(value), " ")
	}
	return value
}

// of binds the list's cursors to the resource that contains its rows. No query parameter has the name "{id}".
func (l list) of(id string) list {
	l.binding.Filters["{id}"] = id
	return l
}

// page returns the request for the page. An empty cursor requests the first one; note that an empty next_cursor means
// the end of a list.
func (l list) page(cursors *cursor.Codec) (index.Request, error) {
	page := index.Request{Sort: index.Sort(l.binding.Sort), Order: index.Order(l.binding.Order), Limit: l.limit}
	if l.token == "" {
		return page, nil
	}
	after, err := cursors.Decode(l.binding, l.token)
	if err != nil {
		return page, problem.InvalidQuery("cursor is not valid for this list with this sort, order and filters; start again without it").
			In("cursor").Coded(problem.CodeInvalidCursor)
	}
	page.After = &index.Position{Value: after.Value, ID: after.ID}
	return page, nil
}

// listModel returns a page that is read from the read model. what names its items in traces.
func listModel(ctx context.Context, b *Backend, l list, what string,
	read func(index.Request) (index.Page[content.Part], error)) (Response, error) {
	asked, err := l.page(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	page, err := tracing.Do(ctx, "read model: list "+what, func() (index.Page[content.Part], error) { return read(asked) })
	if err != nil {
		return Response{}, Unavailable(err)
	}
	return respond(b.Cursors, l, page)
}

// respond returns a page of JSON.
func respond(cursors *cursor.Codec, l list, page index.Page[content.Part]) (Response, error) {
	next := ""
	if page.HasMore {
		var err error
		if next, err = cursors.Encode(l.binding, cursor.Position{Value: page.Next.Value, ID: page.Next.ID}); err != nil {
			return Response{}, err
		}
	}
	return envelope(page.Items, page.HasMore, next, page.Total)
}

// Unavailable is the error for an organization that is not in the read model although its key is valid, for a
// review that is not in it, or for a request that gets no turn.
func Unavailable(cause error) error {
	switch {
	case errors.Is(cause, readmodel.ErrNoReview):
		return problem.NotFound("review")
	case errors.Is(cause, slots.ErrBusy):
		return problem.Busy("the organization has too many such requests under way", time.Second)
	}
	return problem.TryAgain("the organization's data is not available", cause)
}

// optional returns the value of a parameter, nil if it is not given.
func optional(query openapi.Parameters, name string) *string {
	if value, given := query.Lookup(name); given {
		return &value
	}
	return nil
}

// listed returns the values of a parameter that has commas between them.
func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}
