package readmodel

import (
	"unique"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// Fields that scans are indexed by, with facets of status.
const (
	scanRepoField    = index.Everything + 1
	scanProjectField = index.Everything + 2
	uploadField      = index.Everything + 3
)

// scanLayout defines how scans are indexed.
var scanLayout = &index.Layout[*scanItem]{
	Sorts:  []index.Sort{SortCreatedAt},
	Values: func(i *scanItem) []string { return []string{i.createdAt} },
	Keys: func(i *scanItem) []index.Key {
		spec, facet := &i.object.Spec, unique.Make(index.Facet{i.status})
		keys := []index.Key{
			{Field: index.Everything, Facet: facet},
			{Field: scanRepoField, Value: string(spec.RepositoryRef.Name), Facet: facet},
			{Field: scanProjectField, Value: string(spec.ProjectRef.Name), Facet: facet},
		}
		if spec.Upload != nil {
			keys = append(keys, index.Key{Field: uploadField, Value: spec.Upload.ID, Facet: facet})
		}
		return keys
	},
}

// ScanQuery asks for a page of an organization's scans, sorted by created_at.
type ScanQuery struct {
	index.Request
	// Status is running, completed or failed; nil matches all.
	Status *string
	// Repository, Project and Upload are ids; nil matches all.
	Repository, Project, Upload *string
}

// ListScans answers a query from the organization's snapshot; an item is the scan's JSON, ready to be sent. It
// takes no lock. The error is ErrNoOrganization. Its cost is proportional to the page; if more than one id is
// given, it examines all scans of the upload, or else of the project.
func (m *Model) ListScans(organization string, q ScanQuery) (index.Page[content.Part], error) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return index.Page[content.Part]{}, err
	}
	x := snapshot.scans
	return listJSON(x, scanLayout.Query(q.Request), q.choose(x), func(i *scanItem) content.Part { return &i.json }), nil
}

// choose picks the buckets that contain the matches of the query.
func (q *ScanQuery) choose(x *index.Index[*scanItem]) index.Selection[*scanItem] {
	wanted := func(has index.Facet) bool { return matches(q.Status, has[0]) }
	within := func(i *scanItem) bool {
		spec := &i.object.Spec
		return matches(q.Repository, string(spec.RepositoryRef.Name)) && matches(q.Project, string(spec.ProjectRef.Name))
	}
	switch {
	case q.Upload != nil:
		s := x.Pick(uploadField, *q.Upload, wanted)
		if q.Project != nil || q.Repository != nil {
			s.Also(within)
		}
		return s
	case q.Project != nil:
		s := x.Pick(scanProjectField, *q.Project, wanted)
		if q.Repository != nil {
			s.Also(within)
		}
		return s
	case q.Repository != nil:
		return x.Pick(scanRepoField, *q.Repository, wanted)
	default:
		return x.Pick(index.Everything, "", wanted)
	}
}
