// Package index indexes the objects in a manager's cache by their fields, and lists them by these
// indexes.
package index

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Selectable fields by which children name their parents. The cache has indexes of the same names,
// but not of Scans: see scans.Latest.
const (
	Repository = "spec.repositoryRef.name"
	Project    = "spec.projectRef.name"
	Review     = "spec.reviewRef.name"
)

// Add indexes the objects of a kind under the values that the function returns for each.
func Add[O client.Object](ctx context.Context, mgr ctrl.Manager, kind O, field string, values func(O) []string) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, kind, field, func(object client.Object) []string {
		return values(object.(O))
	})
	if err != nil {
		return fmt.Errorf("index each %T by %s: %w", kind, field, err)
	}
	return nil
}

// AddReference indexes the objects of a kind under the name that the function returns for each.
func AddReference[O client.Object](ctx context.Context, mgr ctrl.Manager, kind O, field string,
	to func(O) v1alpha1.ResourceName) error {
	return Add(ctx, mgr, kind, field, func(object O) []string { return []string{string(to(object))} })
}

// EndpointOf returns the name of the endpoint that the delivery is for.
func EndpointOf(delivery *v1alpha1.WebhookDelivery) v1alpha1.ResourceName {
	return delivery.Spec.EndpointRef.Name
}

// List reads the objects of a namespace that have the value in the index. They belong to the cache and must not be
// changed.
func List(ctx context.Context, c client.Reader, list client.ObjectList, namespace, field, value string,
	options ...client.ListOption) error {
	options = append(options, client.InNamespace(namespace), client.MatchingFields{field: value},
		client.UnsafeDisableDeepCopy)
	if err := c.List(ctx, list, options...); err != nil {
		return fmt.Errorf("list a %T of %s by %s=%s: %w", list, namespace, field, value, err)
	}
	return nil
}

// Any reports whether any object of the list's kind has the value in the index.
func Any(ctx context.Context, c client.Reader, list client.ObjectList, namespace, field, value string) (bool, error) {
	err := List(ctx, c, list, namespace, field, value, client.Limit(1))
	return meta.LenList(list) > 0, err
}
