package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// UpdateFindingV2 is an operation of the contract.
func (b *Backend) UpdateFindingV2(ctx context.Context, request Request) (Response, error) {
	var update openapi.FindingV2Update
	if err := request.Body.Into(&update); err != nil {
		return Response{}, err
	}
	decision, err := givenDecision(update.UserStatus, update.Comments, update.Reason, update.ExpiresAt)
	if err != nil {
		return Response{}, err
	}
	item, err := decide(ctx, request, b.finding(selectFinding(request.Path, request.Query, update)), decision)
	if err != nil {
		return Response{}, err
	}
	return tagged(item, item.V2()), nil
}

// selectFinding reads the contract's three identifiers. The id in the path is the finding's, unless the query
// names the finding: then it is the repository's.
func selectFinding(path, query openapi.Parameters, update openapi.FindingV2Update) selection {
	selected := selection{finding: path.Get("id")}
	if finding, given := query.Lookup("finding_id"); given {
		selected.finding = finding
		selected.repositories = append(selected.repositories, path.Get("id"))
	}
	if repository, given := query.Lookup("repo_id"); given {
		selected.repositories = append(selected.repositories, repository)
	}
	if project, given := query.Lookup("project_id"); given {
		selected.projects = append(selected.projects, project)
	}
	if update.RepoId != nil {
		selected.repositories = append(selected.repositories, *update.RepoId)
	}
	if update.ProjectId != nil {
		selected.projects = append(selected.projects, *update.ProjectId)
	}
	return selected
}
