package importer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// passOn transfers a finding's fields that one field manager applied to another manager, and returns the finding's
// resource version. Server-side apply removes only fields of the same manager: applied under a new name, a fact of the
// old one, such as closed, would stay forever. The spec does not change, and fields of other managers are not touched.
// If the import ends here, the next one repeats it.
func (im *Importer) passOn(ctx context.Context, finding *v1alpha1.Finding, from,
	to string) (resourceVersion string, err error) {
	owners, changed, err := passedOn(finding.ManagedFields, from, to)
	if err != nil || !changed {
		return finding.ResourceVersion, err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": owners},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": finding.ResourceVersion},
	})
	if err != nil {
		return "", err
	}
	after := &metav1.PartialObjectMetadata{}
	after.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Finding"))
	err = Retry(ctx, func(ctx context.Context) error {
		after.Name, after.Namespace = finding.Name, im.target.Namespace
		return im.client.Patch(ctx, after, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(to))
	})
	return after.ResourceVersion, err
}

// passedOn returns the entries with the fields that from applied merged into those of to.
func passedOn(entries []metav1.ManagedFieldsEntry, from,
	to string) (out []metav1.ManagedFieldsEntry, changed bool, err error) {
	applied := func(e *metav1.ManagedFieldsEntry, manager string) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	}
	if from == to {
		return entries, false, nil
	}
	for _, e := range entries {
		switch {
		case applied(&e, from):
			e.Manager, changed = to, true
		case !applied(&e, to):
			out = append(out, e)
			continue
		}
		if at := slices.IndexFunc(out,
			func(o metav1.ManagedFieldsEntry) bool { return applied(&o, to) && o.APIVersion == e.APIVersion }); at >= 0 {
			if out[at].FieldsV1, err = union(out[at].FieldsV1, e.FieldsV1); err != nil {
				return nil, false, err
			}
			continue
		}
		out = append(out, e)
	}
	return out, changed, nil
}

func union(a, b *metav1.FieldsV1) (*metav1.FieldsV1, error) {
	all := &fieldpath.Set{}
	for _, fields := range []*metav1.FieldsV1{a, b} {
		set := &fieldpath.Set{}
		if fields == nil {
			continue
		}
		if err := set.FromJSON(fields.GetRawReader()); err != nil {
			return nil, fmt.Errorf("read who owns which field: %w", err)
		}
		all = all.Union(set)
	}
	raw, err := all.ToJSON()
	return metav1.NewFieldsV1(string(raw)), err
}
