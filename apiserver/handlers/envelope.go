package handlers

import (
	"encoding/json"

	"github.com/appsec-dev/findings-operator/apiserver/content"
)

// Constant parts of a list's JSON.
var (
	openItems = content.Of([]byte(`{"items":[`))
	comma     = content.Of([]byte(`,`))
)

// envelope wraps rendered items into the JSON of a list. The items are neither parsed nor copied.
func envelope(items []content.Part, hasMore bool, nextCursor string, total int) (Response, error) {
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
		body = append(body, item)
	}
	// Replace the rest's opening brace by the end of the items.
	return Response{Body: append(body, content.Of(append([]byte("],"), rest[1:]...)))}, nil
}
