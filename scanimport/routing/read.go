package routing

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// Read returns the table of a repository's projects, without those that are being deleted. While there are such
// projects, the repository counts as growing, because their folders may still be scanned.
func Read(ctx context.Context, c *importer.Client, repository client.ObjectKey, growing bool) (*Table, error) {
	list, unreadable, err := importer.Projects(ctx, c, repository)
	if err == nil {
		err = importer.RefuseUnreadable("project", unreadable)
	}
	if err != nil {
		return nil, err
	}
	var projects []Project
	leaving := ""
	for i := range list {
		if !list[i].DeletionTimestamp.IsZero() {
			leaving = list[i].Name
			continue
		}
		existing := provision.ExistingOf(&list[i])
		projects = append(projects, Project{Name: list[i].Name, Path: existing.Folder, Grown: len(existing.Beside) > 0})
	}
	table := NewTable(projects, growing || leaving != "")
	table.leaving = leaving
	return table, nil
}
