package handlers

import (
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// list is what every list is asked for.
type list struct {
	// binding is what the list's cursors hold for.
	binding cursor.List
	token   string
	limit   index.Limit
}

// maxPageBytes bounds the body of a list, as openapi.yaml states: a finding can take 335 KB, and a
// page of 1,000 such would fill the memory of whoever sends or receives it.
const maxPageBytes = 8 << 20

// envelopeBytes is more than a page takes beside its items: a cursor, most of all.
const envelopeBytes = cursor.MaxLength + 1<<10

// newList reads a request. filters are the names of the parameters that leave rows out.
func newList(endpoint string, request Request, filters ...string) list {
	given := map[string]string{}
	for _, name := range filters {
		if value, ok := request.Query.Lookup(name); ok {
			given[name] = spelled(name, value)
		}
	}
	return list{
		binding: cursor.List{
			Organization: request.Organization,
			Endpoint:     endpoint,
			Sort:         request.Query.Get("sort"),
			Order:        request.Query.Get("order"),
			Filters:      given,
		},
		token: request.Query.Get("cursor"),
		limit: index.Limit{Size: request.Query.Int("size"), Bytes: maxPageBytes - envelopeBytes},
	}
}

// spelled is the one spelling of a filter's value where two texts ask for the same.
func spelled(name, value string) string {
	switch name {
	case "vulnerability":
		return findingquery.VulnerabilityKey(value)
	case "package":
		if findingquery.PackageKey(value) == findingquery.PackageName(value) {
			return findingquery.PackageName(value)
		}
	case "text":
		return strings.Join(findingquery.Words(value), " ")
	}
	return value
}

// of binds the list's cursors to the resource that its rows are of. No parameter of a query is named so.
func (l list) of(id string) list {
	l.binding.Filters["{id}"] = id
	return l
}

func (l list) sort() index.Sort   { return index.Sort(l.binding.Sort) }
func (l list) order() index.Order { return index.Order(l.binding.Order) }

// position reads the cursor. An empty one asks for the first page, as the empty next_cursor at
// the end of a list does not.
func (l list) position(cursors *cursor.Codec) (*index.Position, error) {
	if l.token == "" {
		return nil, nil //nolint:nilnil // the first page has no position
	}
	after, err := cursors.Decode(l.binding, l.token)
	if err != nil {
		return nil, problem.InvalidQuery("cursor is not valid for this list with this sort, order and filters; start again without it").
			In("cursor").Coded(problem.CodeInvalidCursor)
	}
	return &index.Position{Value: after.Value, ID: after.ID}, nil
}

// respond answers with a page. shape is the JSON of an item.
func respond[T any](cursors *cursor.Codec, l list, page index.Page[T],
	shape func(T) content.Part) (Response, error) {
	next := ""
	if page.HasMore {
		var err error
		if next, err = cursors.Encode(l.binding, cursor.Position{Value: page.Next.Value, ID: page.Next.ID}); err != nil {
			return Response{}, err
		}
	}
	return envelope(page.Items, shape, page.HasMore, next, page.Total)
}

// asIs is the shape of items that are their own JSON.
func asIs(item content.Part) content.Part { return item }

// unavailable is for an organization that is not in the read model although its key is valid.
func unavailable(cause error) error {
	return problem.TryAgain("the organization's data is not available", cause)
}

// optional is the value of a parameter, nil where it is not given.
func optional(query openapi.Parameters, name string) *string {
	if value, given := query.Lookup(name); given {
		return &value
	}
	return nil
}
