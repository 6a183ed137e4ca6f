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
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// transferFields transfers a finding's fields that one field manager applied to another manager, and returns the
// finding's resource version. Server-side apply removes only fields of the same manager: applied under a new name, a
// fact of the old one, such as closed, would stay forever. The spec does not change, and fields of other managers stay.
// If the import ends here, the next one repeats it. The managed fields are read here: listed findings do not have them.
func (im *Importer) transferFields(ctx context.Context, finding *v1alpha1.Finding, from,
	to string) (resourceVersion string, err error) {
	if from == to {
		return finding.ResourceVersion, nil
	}
	now := kube.MetadataOf(v1alpha1.GroupVersion.WithKind("Finding"))
	key := client.ObjectKey{Namespace: im.target.Namespace, Name: finding.Name}
	if err := Retry(ctx, func(ctx context.Context) error { return im.client.Get(ctx, key, now) }); err != nil {
		return "", err
	}
	owners, changed, err := passedOn(now.ManagedFields, from, to)
	if err != nil || !changed {
		return finding.ResourceVersion, err
	}
	return im.setOwners(ctx, finding.Name, finding.ResourceVersion, owners, to)
}

// setOwners stores who owns which field of a finding of that resource version, and returns the version since.
func (im *Importer) setOwners(ctx context.Context, name, version string, owners []metav1.ManagedFieldsEntry,
	manager string) (resourceVersion string, err error) {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": owners},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": version},
	})
	if err != nil {
		return "", err
	}
	after := kube.MetadataOf(v1alpha1.GroupVersion.WithKind("Finding"))
	err = Retry(ctx, func(ctx context.Context) error {
		after.Name, after.Namespace = name, im.target.Namespace
		return im.client.Patch(ctx, after, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(manager))
	})
	return after.ResourceVersion, err
}

// appliedBy reports whether an entry is that of what a manager applied.
func appliedBy(e *metav1.ManagedFieldsEntry, manager string) bool {
	return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// passedOn returns the entries with the fields that from applied merged into those of to, another manager.
func passedOn(entries []metav1.ManagedFieldsEntry, from,
	to string) (out []metav1.ManagedFieldsEntry, changed bool, err error) {
	for _, e := range entries {
		switch {
		case appliedBy(&e, from):
			e.Manager, changed = to, true
		case !appliedBy(&e, to):
			out = append(out, e)
			continue
		}
		if at := slices.IndexFunc(out,
			func(o metav1.ManagedFieldsEntry) bool { return appliedBy(&o, to) && o.APIVersion == e.APIVersion }); at >= 0 {
			if out[at].FieldsV1, err = union(out[at].FieldsV1, e.FieldsV1); err != nil {
				return nil, false, err
			}
			continue
		}
		out = append(out, e)
	}
	return out, changed, nil
}

// notFacts are the fields of which an import takes over none: those of people, controllers and API server.
var notFacts = fieldpath.NewSet(
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("status"),
	fieldpath.MakePathOrDie("spec", "triage"),
)

// takenOver returns the entries with the facts that other clients wrote, other than by applying them, passed on to the
// manager. It returns nil if the manager has applied all of them. Whoever creates a finding from a backup owns all its
// facts: as with a former name of the tool, those that an import leaves out would stay.
func takenOver(entries []metav1.ManagedFieldsEntry, manager string) ([]metav1.ManagedFieldsEntry, error) {
	at := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return appliedBy(&e, manager) })
	if at < 0 {
		return nil, nil
	}
	out, all, stays := slices.Clone(entries), &fieldpath.Set{}, false
	for i, e := range entries {
		if e.Operation != metav1.ManagedFieldsOperationUpdate || e.Subresource != "" {
			continue
		}
		written, err := fieldsOf(e.FieldsV1)
		if err != nil {
			return nil, err
		}
		facts := written.RecursiveDifference(notFacts)
		if facts.Empty() {
			continue
		}
		if all.Empty() {
			if all, err = fieldsOf(entries[at].FieldsV1); err != nil {
				return nil, err
			}
		}
		for path := range facts.All() {
			stays = stays || !covers(all, path)
		}
		all = all.Union(facts)
		if out[i].FieldsV1, err = encodeFields(written.Difference(facts)); err != nil {
			return nil, err
		}
	}
	if !stays {
		return nil, nil
	}
	var err error
	out[at].FieldsV1, err = encodeFields(all)
	return out, err
}

// covers reports whether a set has the path, or fields below it.
func covers(set *fieldpath.Set, path fieldpath.Path) bool {
	if set.Has(path) {
		return true
	}
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
}

func union(a, b *metav1.FieldsV1) (*metav1.FieldsV1, error) {
	all := &fieldpath.Set{}
	for _, fields := range []*metav1.FieldsV1{a, b} {
		set, err := fieldsOf(fields)
		if err != nil {
			return nil, err
		}
		all = all.Union(set)
	}
	return encodeFields(all)
}

func fieldsOf(fields *metav1.FieldsV1) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if fields == nil {
		return set, nil
	}
	if err := set.FromJSON(fields.GetRawReader()); err != nil {
		return nil, fmt.Errorf("read who owns which field: %w", err)
	}
	return set, nil
}

func encodeFields(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := set.ToJSON()
	return metav1.NewFieldsV1(string(raw)), err
}
