package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
)

func listFindingsV1(backend Backend) Operation {
	shape := func(item *readmodel.Item) []byte { return item.V1 }
	return listFindings("listFindingsV1", backend, shape)
}

func listFindingsV2(backend Backend) Operation {
	shape := func(item *readmodel.Item) []byte { return item.V2 }
	return listFindings("listFindingsV2", backend, shape)
}

func listFindings(id string, backend Backend, shape func(*readmodel.Item) []byte) Operation {
	return Operation{
		ID: id, Scope: v1alpha1.ScopeFindingsRead,
		Handle: func(_ context.Context, request Request) (Response, error) {
			list := findingList(id, request)
			after, err := position(backend.Cursors, list, request.Query.Get("cursor"))
			if err != nil {
				return nil, err
			}
			page, err := backend.Model.ListFindings(request.Organization, readmodel.FindingQuery{
				Sort:   readmodel.Sort(list.Sort),
				Order:  readmodel.Order(list.Order),
				Size:   request.Query.Int("size"),
				After:  after,
				Filter: findingFilter(request.Query),
			})
			if err != nil {
				return nil, problem.Internal("the organization's findings are not available; try again", err)
			}
			next, err := nextCursor(backend.Cursors, list, page)
			if err != nil {
				return nil, err
			}
			items := make([][]byte, len(page.Items))
			for i, item := range page.Items {
				items[i] = shape(item)
			}
			return envelope(items, page.HasMore, next, page.Total)
		},
	}
}

// findingFilters are the parameters that leave findings out.
var findingFilters = []string{"status", "user_status", "severity", "repo_id", "project_id", "class"}

// findingList is the list that a request's cursors are bound to.
func findingList(endpoint string, request Request) cursor.List {
	filters := map[string]string{}
	for _, name := range findingFilters {
		if value, given := request.Query.Lookup(name); given {
			filters[name] = value
		}
	}
	return cursor.List{
		Organization: request.Organization,
		Endpoint:     endpoint,
		Sort:         request.Query.Get("sort"),
		Order:        request.Query.Get("order"),
		Filters:      filters,
	}
}

func findingFilter(query openapi.Parameters) readmodel.FindingFilter {
	value := func(name string) *string {
		if value, given := query.Lookup(name); given {
			return &value
		}
		return nil
	}
	return readmodel.FindingFilter{
		Status:     value("status"),
		UserStatus: value("user_status"),
		Severity:   value("severity"),
		RepoID:     value("repo_id"),
		ProjectID:  value("project_id"),
		Class:      value("class"),
	}
}

// position reads a cursor. An empty one asks for the first page, as the empty next_cursor at
// the end of a list does not.
func position(cursors *cursor.Codec, list cursor.List, token string) (*readmodel.Position, error) {
	if token == "" {
		return nil, nil //nolint:nilnil // the first page has no position
	}
	after, err := cursors.Decode(list, token)
	if err != nil {
		return nil, problem.InvalidQuery("cursor is not valid for this list with this sort, order and filters; start again without it")
	}
	return &readmodel.Position{Value: after.Value, ID: after.ID}, nil
}

func nextCursor[T any](cursors *cursor.Codec, list cursor.List, page readmodel.Page[T]) (string, error) {
	if !page.HasMore {
		return "", nil
	}
	return cursors.Encode(list, cursor.Position{Value: page.Next.Value, ID: page.Next.ID})
}
