package handlers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// row is an item of a list that is rendered per request.
type row struct {
	createdAt string
	json      []byte
}

var rowLayout = &index.Layout[row]{
	Sorts:  []index.Sort{readmodel.SortCreatedAt},
	Values: func(r row) []string { return []string{r.createdAt} },
	Keys:   func(row) []index.Key { return []index.Key{{Field: index.Everything}} },
}

// listStored returns a page of an organization's objects of one kind, as they are stored now. Each is rendered as it is
// read, so that not all are held decoded.
func listStored[O metav1.Object](ctx context.Context, b *Backend, list list, request Request,
	read func(ctx context.Context, namespace string, each func(O) error) error,
	renderJSON func(O) ([]byte, error)) (Response, error) {
	asked, err := list.page(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	rows := index.New(rowLayout)
	err = read(ctx, request.Namespace, func(object O) error {
		shown, err := renderJSON(object)
		if err == nil {
			rows.Put(object.GetName(), row{render.Timestamp(object.GetCreationTimestamp().Time), shown})
		}
		return err
	})
	if err != nil {
		return Response{}, err
	}
	page := rows.List(rowLayout.Query(asked), rows.Pick(index.Everything, "", index.AnyFacet),
		func(r row) int { return len(r.json) })
	return respond(b.Cursors, list, index.Map(page, func(r row) content.Part { return content.Of(r.json) }))
}
