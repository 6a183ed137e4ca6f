package conformance

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// onlyInRepository are the members of a project that the single-project operation omits.
var onlyInRepository = []string{
	"cast_scan_enabled", "deployment_usage", "has_custom_metadata", "primary_framework", "primary_language",
	"scanner_business_criticality", "scanner_exposure", "scanner_summary",
}

func projectPath(repository, project string) string {
	return "/v2/repos/" + repository + "/projects/" + project
}

func TestProject_HasExactlyTheDocumentedMembers(t *testing.T) {
	f := theDeployment.fixtures.Project
	got := existing(t, "project", projectPath("full", "full"), f.ID, projectPath(f.RepoID, f.ID))
	wantsShape(t, "project", got, projectShape)
	wantsShape(t, "project.repo", got.object("repo"), projectRepoShape)
}

func TestProject_ShowsTheSubsetOfWhatTheRepositoryShows(t *testing.T) {
	o := sampleOrganization(t)
	want := fullProjectRecord(o.name)
	for _, name := range onlyInRepository {
		delete(want, name)
	}
	got := o.get(projectPath("full", "full")).wants(200, "a project").object()
	wantsFacts(t, "the project", want, got, "created_at", "updated_at")
}

func TestProject_AbsentValuesAreNullOrEmpty(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Project("bare").In(o.namespace).Mutate(func(p *v1alpha1.Project) { p.Spec.DisplayName = "" }).Build())
	want := record{
		"id": "bare", "organization_id": o.name, "owner": "", "provider": "github", "purpose": "", "relative_path": "", "summary": "", "evidence": "",
		"dependencies_file": "", "business_criticality": nil, "exposure": nil, "user_business_criticality": nil, "user_exposure": nil, "user_summary": "",
		"deployments": map[string]any{}, "enabled": true, "file_extensions": []any{}, "frameworks": []any{}, "languages": []any{},
		"sensitive_data_types": []any{}, "components": []any{}, "size": 0.0, "findings_count": 0.0, "last_scan_id": "", "last_scan_status": nil,
		"last_scanned_at": nil, "last_committed_at": nil,
		"repo": map[string]any{"id": "repo", "name": "repo", "url": "https://github.com/acme/repo"},
	}
	harness.Eventually(t, func(g Gomega) {
		a := o.get(projectPath("repo", "bare"))
		g.Expect(a.Status).To(Equal(200))
		got := a.object()
		delete(got, "created_at")
		delete(got, "updated_at")
		g.Expect(cmp.Diff(want, got)).To(BeEmpty())
	})
}

func TestProject_BothIDsMustAgree(t *testing.T) {
	o := sampleOrganization(t)
	missing := o.get(projectPath("full", "none")).notFound("no such project")
	for reason, path := range map[string]string{
		"another repository": projectPath("bare", "full"),
		"no such repository": projectPath("none", "full"),
	} {
		if got := o.get(path).notFound(reason); !bytes.Equal(got.Body, missing.Body) {
			t.Errorf("%s: the body reveals more than that it does not exist: %s", reason, got.Body)
		}
	}
}

// A finding may name a project of another repository: nothing prevents the writer from doing so.
// The finding is then listed by what it names and can be triaged, but it is not below any path
// without a project.
func TestProject_FindingsOfAnotherRepositoryAreBelowNoProject(t *testing.T) {
	o := newOrganization(t)
	o.create(builder.Repository("other").In(o.namespace).Build(),
		builder.Finding("f-astray").Project("other", "proj").In(o.namespace).Build())
	harness.Eventually(t, func(g Gomega) {
		g.Expect(o.get("/v2/findings?repo_id=other&project_id=proj").page().Total).To(Equal(1), "it is listed by what it names")
	})
	o.get(projectPath("repo", "proj")).wants(200, "the project in its repository")
	for _, repository := range []string{"repo", "other"} {
		o.get(findingPath(repository, "proj", "f-astray")).wantsError(404, "Resource not found", "below "+repository)
	}
	o.get(projectPath("other", "proj")).wantsError(404, "Resource not found", "the project in another repository")
	o.patch("/v1/findings/f-astray", `{"user_status":"muted"}`).wants(200, "it can be triaged")
}
