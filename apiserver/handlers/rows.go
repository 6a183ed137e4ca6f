package handlers

import (
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// row is one of a list that is made for the request.
type row struct {
	createdAt string
	json      []byte
}

var rowLayout = &index.Layout[row]{
	Sorts:  []index.Sort{readmodel.SortCreatedAt},
	Values: func(r row) []string { return []string{r.createdAt} },
	Keys:   func(row) []index.Key { return []index.Key{{Field: index.Everything}} },
}

// respondRows answers with a page of rows that were made for the request.
func (b *Backend) respondRows(list list, rows *index.Index[row], after *index.Position) (Response, error) {
	page := rows.List(rowLayout.Query(list.sort(), list.order(), list.limit, after),
		rows.Pick(index.Everything, "", index.AnyFacet), func(r row) int { return len(r.json) })
	return respond(b.Cursors, list, page, func(r row) content.Part { return content.Of(r.json) })
}
