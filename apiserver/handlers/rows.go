package handlers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// listStored returns a page of an organization's objects of one kind, by the time of their creation, as they are stored
// now. Only what can be on the page is rendered and held.
func listStored[O metav1.Object](ctx context.Context, b *Backend, list list, request Request,
	read func(ctx context.Context, namespace string, each func(O) error) error,
	renderJSON func(O) ([]byte, error)) (Response, error) {
	asked, err := list.page(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	shown := index.NewCollector(asked, func(json []byte) int { return len(json) })
	err = read(ctx, request.Namespace, func(object O) error {
		created := render.Timestamp(object.GetCreationTimestamp().Time)
		at := index.Position{Value: created, ID: object.GetName()}
		return shown.Add(at, func() ([]byte, error) { return renderJSON(object) })
	})
	if err != nil {
		return Response{}, err
	}
	page := index.Map(shown.Page(), func(json []byte) content.Part { return content.Of(json) })
	response, err := respond(b.Cursors, list, page)
	response.Own = true
	return response, err
}
