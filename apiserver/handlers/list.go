package handlers

import (
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
)

// list is what every list is asked for.
type list struct {
	// binding is what the list's cursors hold for.
	binding cursor.List
	token   string
	limit   readmodel.Limit
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
			given[name] = value
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
		limit: readmodel.Limit{Size: request.Query.Int("size"), Bytes: maxPageBytes - envelopeBytes},
	}
}

func (l list) sort() readmodel.Sort   { return readmodel.Sort(l.binding.Sort) }
func (l list) order() readmodel.Order { return readmodel.Order(l.binding.Order) }

// position reads the cursor. An empty one asks for the first page, as the empty next_cursor at
// the end of a list does not.
func (l list) position(cursors *cursor.Codec) (*readmodel.Position, error) {
	if l.token == "" {
		return nil, nil //nolint:nilnil // the first page has no position
	}
	after, err := cursors.Decode(l.binding, l.token)
	if err != nil {
		return nil, problem.InvalidQuery("cursor is not valid for this list with this sort, order and filters; start again without it")
	}
	return &readmodel.Position{Value: after.Value, ID: after.ID}, nil
}

// respond answers with a page. shape is the JSON of an item.
func respond[T any](cursors *cursor.Codec, l list, page readmodel.Page[T], shape func(T) content.Part) (Response, error) {
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
