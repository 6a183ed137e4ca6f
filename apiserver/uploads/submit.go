package uploads

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/routing"
)

// Submit imports the request's body, and returns the upload's id once its Scans are recorded. Later refusals,
// and errors in the ref or the projects, are recorded in the Scans.
func (s *Service) Submit(ctx context.Context, request Request) (id string, err error) {
	defer func() { s.metrics.refuse(err) }()
	j, err := s.begin(&request) //nolint:contextcheck // the import outlives the request
	if err != nil {
		return "", err
	}
	select {
	case <-j.recorded:
		return j.id, nil
	case <-j.done:
	case <-ctx.Done():
		return "", problem.TryAgain("the client is gone", context.Cause(ctx))
	}
	select {
	case <-j.recorded:
		return j.id, nil
	default:
		return "", j.problem()
	}
}

// growing reports that imports create projects for folders of the repository.
func (j *job) growing() bool { return j.Imports != nil && len(j.Imports.Projects) > 0 }

// place finds the projects of an upload's batches. A refusal is to be recorded in the upload's Scans: then
// j.batches are the batches to record it for, and j.Project is the project to record it in. A pull request is
// not split by project.
func place(ctx context.Context, c *importer.Client, j *job) (refusal, err error) {
	repository := &v1alpha1.Repository{}
	key := client.ObjectKey{Namespace: j.Namespace, Name: j.Repository}
	if err := importer.Require(ctx, c, "repository", key, repository); err != nil {
		return nil, err
	}
	table, err := routing.Read(ctx, c, key, j.growing())
	if err != nil {
		return nil, err
	}
	projects := table.Projects()
	if len(projects) == 0 {
		return nil, &importer.RefusedError{Reason: fmt.Sprintf("the repository %s has no project: create one", j.Repository)}
	}
	only, _ := table.Only()
	if j.commit != nil { // A pull request is not split: it is compared with the projects that it scanned.
		j.Project, j.recordedIn = only, projects[len(projects)-1].Name
		return nil, nil
	}
	j.Project = projects[len(projects)-1].Name
	if reason := refusedRef(repository, j.Ref); reason != "" {
		return &importer.RefusedError{Reason: reason}, nil
	}
	parts, err := table.Split(j.batches)
	switch {
	case err != nil:
		return &importer.RefusedError{Reason: err.Error()}, nil
	case len(parts) > maxScans:
		return &importer.RefusedError{Reason: fmt.Sprintf("the file holds %d scans, by tool, category, analysis and project, and an upload at most %d: split it",
			len(parts), maxScans)}, nil
	}
	j.batches = parts
	return nil, nil
}
