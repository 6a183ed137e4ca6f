package conformance

import (
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// wantsRepository fails the test unless a record has the shape of a repository at every depth.
func wantsRepository(t *testing.T, got record) {
	t.Helper()
	wantsShape(t, "repository", got, repositoryShape)
	for _, project := range got.records("projects") {
		wantsShape(t, "project", project, repositoryProjectShape)
		wantsShape(t, "project.repo", project.object("repo"), projectRepoShape)
		for _, component := range project.records("components") {
			wantsShape(t, "component", component, componentShape)
		}
	}
}

func TestRepos_EveryMemberShowsItsFact(t *testing.T) {
	o := sampleOrganization(t)
	got := o.listed("/v2/repos", "full")
	want := record{
		"id": "full", "organization_id": o.name, "name": "full", "full_name": "acme/full", "provider": "github", "provider_id": "provider-9",
		"installation_id": "installation-7", "url": "https://github.com/acme/full", "clone_url": "https://github.com/acme/full.git",
		"description": "Everything is set.", "summary": "What the code is for.", "default_branch_name": "main", "scan_branch": "develop",
		"private": true, "archived": true, "cast_scan_enabled": true, "languages": map[string]any{"Go": 12345.0}, "size": 67890.0,
		"last_commit_hash": "8f3e1c2d", "last_commit_hash_link": "https://github.com/acme/full/commit/8f3e1c2d",
		"last_committed_at": shownTime(committedAt), "last_scanned_at": shownTime(scannedAt), "package_findings": 1.0, "secret_findings": 2.0,
	}
	wantsFacts(t, "the repository", want, got, "created_at", "updated_at", "projects")
}

func TestRepos_AbsentValuesAreNullOrEmpty(t *testing.T) {
	o := sampleOrganization(t)
	got := o.listed("/v2/repos", "bare")
	want := record{
		"id": "bare", "organization_id": o.name, "name": "bare", "full_name": "", "provider": "", "provider_id": "", "installation_id": "",
		"url": "", "clone_url": "", "description": "", "summary": "", "default_branch_name": "", "scan_branch": "",
		"private": false, "archived": false, "cast_scan_enabled": false, "languages": map[string]any{}, "size": 0.0,
		"last_commit_hash": "", "last_commit_hash_link": "", "last_committed_at": nil, "last_scanned_at": nil,
		"package_findings": 0.0, "secret_findings": 0.0, "projects": []any{},
	}
	wantsFacts(t, "the repository", want, got, "created_at", "updated_at")
}

func TestRepos_ListTheirProjectsByID(t *testing.T) {
	o := sampleOrganization(t)
	harness.Same(t, "projects", []string{"bare", "by-path", "full"}, idsOf(o.listed("/v2/repos", "full").records("projects")))
}

func TestRepos_ProjectShowsItsFacts(t *testing.T) {
	o := sampleOrganization(t)
	for _, project := range o.listed("/v2/repos", "full").records("projects") {
		if project.id() == "full" {
			wantsFacts(t, "the project", fullProjectRecord(o.name), project, "created_at", "updated_at")
		}
	}
}

// fullProjectRecord is the full project as shown inside its repository, without the times that come
// from the cluster's clock.
func fullProjectRecord(organization string) record {
	return record{
		"id": "full", "organization_id": organization, "owner": "team-payments", "provider": "github", "purpose": "Takes payments.",
		"relative_path": "services/payments", "summary": "What people say.", "evidence": "There is a go.mod.", "dependencies_file": "services/payments/go.mod",
		"business_criticality": "critical", "exposure": "public",
		"scanner_business_criticality": "low", "scanner_exposure": "private", "scanner_summary": "What scanners say.",
		"user_business_criticality": "critical", "user_exposure": "public", "user_summary": "What people say.", "has_custom_metadata": true,
		"primary_framework": "gin", "primary_language": "Go", "deployment_usage": "One container behind the gateway.",
		"deployments": map[string]any{"production": "eu-west-1"}, "cast_scan_enabled": true, "enabled": true,
		"file_extensions": []any{".go"}, "frameworks": []any{"gin"}, "languages": []any{"Go"}, "sensitive_data_types": []any{"card number"},
		"components": []any{map[string]any{"criticality": 7.0, "description": "The API.", "folder_name": "api", "type": "api"}},
		"size":       4321.0, "findings_count": 4.0, "last_scan_id": "scan-1", "last_scan_status": "completed",
		"last_scanned_at": shownTime(scannedAt), "last_committed_at": shownTime(committedAt),
		"repo": map[string]any{"id": "full", "name": "full", "url": "https://github.com/acme/full"},
	}
}

func TestRepos_HasCustomMetadataWhereAnyUserValueIsSet(t *testing.T) {
	o := sampleOrganization(t)
	for _, project := range o.listed("/v2/repos", "full").records("projects") {
		harness.Same(t, project.id()+": has_custom_metadata", project.id() == "full", project["has_custom_metadata"])
	}
}
