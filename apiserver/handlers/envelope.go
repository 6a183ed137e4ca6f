package handlers

import (
	"encoding/json"

	"github.com/appsec-dev/findings-operator/apiserver/content"
)

// Parts of a list's JSON that are the same each time.
var (
	openItems = content.Of([]byte(`{"items":[`))
	comma     = content.Of([]byte(`,`))
)

// envelope puts items that are ready around by what a list tells beside them. The items are
// neither read nor copied.
func envelope[T any](items []T, shape func(T) content.Part, hasMore bool, nextCursor string,
	total int) (Response, error) {
	rest, err := json.Marshal(struct {
		HasMore    bool   `json:"has_more"`
		NextCursor string `json:"next_cursor"`
		Total      int    `json:"total"`
	}{hasMore, nextCursor, total})
	if err != nil {
		return Response{}, err
	}
	body := make([]content.Part, 0, 2*len(items)+2)
	body = append(body, openItems)
	for i, item := range items {
		if i > 0 {
			body = append(body, comma)
		}
		body = append(body, shape(item))
	}
	// The rest's opening brace gives way to the end of the items.
	return Response{Body: append(body, content.Of(append([]byte("],"), rest[1:]...)))}, nil
}
