package readmodel

import (
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
}
