package importer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// setOwners stores the owners of a finding's fields, given its resource version, and returns the new version.
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

// isApplied reports whether an entry holds fields that its manager applied.
func isApplied(e *metav1.ManagedFieldsEntry) bool {
	return e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// notFacts holds the fields of users, controllers and the API server: an import does not take them over from clients
// that are not scanners.
var notFacts = fieldpath.NewSet(
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("status"),
	fieldpath.MakePathOrDie("spec", "triage"),
)

// takenOver returns the entries with the facts of other managers moved to this one; nil if no other manager has facts.
// Server-side apply removes only fields of the same manager, so what an import leaves out would stay. The others are
// the managers of the tool's former names, and clients that wrote without applying, such as the creator of a finding
// from a backup.
func takenOver(entries []metav1.ManagedFieldsEntry, manager string) ([]metav1.ManagedFieldsEntry, error) {
	at := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return isApplied(&e) && e.Manager == manager
	})
	if at < 0 {
		return nil, nil
	}
	all, err := fieldsOf(entries[at].FieldsV1)
	if err != nil {
		return nil, err
	}
	out, stays := slices.Clone(entries), false
	for i, e := range entries {
		formerly := isApplied(&e) && e.Manager != manager && strings.HasPrefix(e.Manager, v1alpha1.ScannerFieldManagerPrefix)
		if !formerly && (e.Operation != metav1.ManagedFieldsOperationUpdate || e.Subresource != "") {
			continue
		}
		written, err := fieldsOf(e.FieldsV1)
		if err != nil {
			return nil, err
		}
		facts := written
		if !formerly {
			facts = written.RecursiveDifference(notFacts)
		}
		for path := range facts.All() {
			stays = stays || formerly || !covers(all, path)
		}
		all = all.Union(facts)
		if out[i].FieldsV1, err = encodeFields(written.Difference(facts)); err != nil { // the API server drops empty entries
			return nil, err
		}
	}
	if !stays {
		return nil, nil
	}
	out[at].FieldsV1, err = encodeFields(all)
	return out, err
}

// covers reports whether a set contains the path, or fields below it.
func covers(set *fieldpath.Set, path fieldpath.Path) bool {
	if set.Has(path) {
		return true
	}
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
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
