package readmodel

import (
	"cmp"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// Item is a finding as it is shown. It never changes, and neither may its users change it.
type Item struct {
	// ID is the finding's name.
	ID string
	// CreatedAt and UpdatedAt are the times shown: RFC 3339, UTC, whole seconds.
	CreatedAt, UpdatedAt string
	// RepoID and ProjectID are the names of what the finding is in.
	RepoID, ProjectID string
	// Class of vulnerability; may be empty.
	Class string
	// Status is open, open_muted or closed.
	Status string
	// UserStatus is open, active or muted.
	UserStatus string
	// Severity is high, medium or low.
	Severity string
	// V1 and V2 are the finding's JSON in both shapes.
	V1, V2 []byte
	// Object is the resource that this was rendered from, without managedFields, labels,
	// annotations and status. A patch decides by its UID, resourceVersion and spec.triage.
	Object *v1alpha1.Finding

	// project and repository that were joined in; nil where they were not there.
	project    *render.Project
	repository *render.Repository
	// buckets that hold the item, by place; set once when it is first indexed.
	buckets [places]uint64
}

// Sort is the field that a list is sorted by.
type Sort string

// The fields to sort findings by.
const (
	SortCreatedAt Sort = "created_at"
	SortUpdatedAt Sort = "updated_at"
)

// Order is the direction that a list is sorted in.
type Order string

// The directions.
const (
	OrderAsc  Order = "asc"
	OrderDesc Order = "desc"
)

// Position is a place in a sorted list: the value shown of the field sorted by, and the id.
// It need not be that of an item that is still there.
type Position struct {
	Value string
	ID    string
}

// position of the item in a list sorted by a field.
func (i *Item) position(by Sort) Position {
	if by == SortUpdatedAt {
		return Position{Value: i.UpdatedAt, ID: i.ID}
	}
	return Position{Value: i.CreatedAt, ID: i.ID}
}

// compare orders positions bytewise on the value, then on the id. Absent is empty and so first.
func (p Position) compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Value, other.Value), cmp.Compare(p.ID, other.ID))
}
