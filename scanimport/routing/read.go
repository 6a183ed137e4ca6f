package routing

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// Read returns the table of a repository's projects. growing is as in NewTable.
func Read(ctx context.Context, c *importer.Client, repository client.ObjectKey, growing bool) (*Table, error) {
	list, unreadable, err := importer.Projects(ctx, c, repository)
	switch {
	case err != nil:
		return nil, err
	case len(unreadable) > 0:
		return nil, &importer.RefusedError{Reason: fmt.Sprintf("project %s cannot be read, and the results may be about it: correct it with kubectl",
			unreadable[0])}
	}
	var projects []Project
	for i := range list {
		if list[i].DeletionTimestamp.IsZero() {
			projects = append(projects, Project{Name: list[i].Name, Path: list[i].Spec.RelativePath})
		}
	}
	return NewTable(projects, growing), nil
}
