package conformance

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
)

// sample is one organization for all tests that only read: it has one of everything with
// every member set ("full"), and one with none that may be left out ("bare").
type sample struct {
	name, namespace, token string
}

// sampleOrganization returns the sample to one test, and makes it for the first.
func sampleOrganization(t *testing.T) *organization {
	t.Helper()
	enter(t)
	if theDeployment.sample == nil {
		o := emptyOrganization(t, plenty)
		o.fill()
		theDeployment.sample = &sample{o.name, o.namespace, o.Token}
	}
	return theDeployment.sample.in(t)
}

// in gives a shared organization to one test.
func (s *sample) in(t *testing.T) *organization {
	t.Helper()
	o := &organization{t: t, name: s.name, namespace: s.namespace, caller: anonymous(t)}
	o.Token = s.token
	return o
}

// The sample's times, each in a second of its own.
var (
	fullDetectedAt = time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC)
	analyzedAt     = fullDetectedAt.Add(time.Minute)
	verifiedAt     = fullDetectedAt.Add(2 * time.Minute)
	rejectedAt     = fullDetectedAt.Add(3 * time.Minute)
	committedAt    = fullDetectedAt.Add(-time.Hour)
)

func (o *organization) fill() {
	o.t.Helper()
	o.create(fullRepository().In(o.namespace).Build(),
		builder.Repository("bare").In(o.namespace).Mutate(func(r *v1alpha1.Repository) { r.Spec = v1alpha1.RepositorySpec{} }).Build(),
		fullProject().In(o.namespace).Build(),
		builder.Project("bare").Repository("full").In(o.namespace).Mutate(func(p *v1alpha1.Project) { p.Spec.DisplayName = "" }).Build(),
		builder.Project("by-path").Repository("full").In(o.namespace).Mutate(func(p *v1alpha1.Project) {
			p.Spec.DisplayName, p.Spec.RelativePath = "", "services/by-path"
		}).Build(),
		fullFinding().In(o.namespace).Build(),
		builder.Finding("f-bare").Project("full", "bare").In(o.namespace).DetectedAt(firstFinding).Build(),
		builder.Finding("f-by-path").Project("full", "by-path").In(o.namespace).DetectedAt(firstFinding.Add(time.Minute)).Build(),
		builder.Finding("f-closed").Project("full", "full").Severity(v1alpha1.LevelMedium).In(o.namespace).DetectedAt(firstFinding.Add(2*time.Minute)).
			Closed(fullDetectedAt, "scan-2").Build(),
	)
	o.settled(4)
}

func fullRepository() *builder.RepositoryBuilder {
	return builder.Repository("full").URL("https://github.com/acme/full").Mutate(func(r *v1alpha1.Repository) {
		s := &r.Spec
		s.Provider, s.CloneURL, s.FullName, s.Description = "github", "https://github.com/acme/full.git", "acme/full", "Everything is set."
		s.DefaultBranch, s.ScanBranch, s.Private, s.Archived = "main", "develop", true, true
		s.InstallationID, s.ProviderID, s.ScanEnabled = "installation-7", "provider-9", true
		s.Languages, s.Size, s.Summary = map[string]int64{"Go": 12345}, 67890, "What the code is for."
		at := builder.Time(committedAt)
		s.LastCommit = &v1alpha1.Commit{Hash: "8f3e1c2d", Link: "https://github.com/acme/full/commit/8f3e1c2d", CommittedAt: &at}
	})
}

func fullProject() *builder.ProjectBuilder {
	return builder.Project("full").Repository("full").Mutate(func(p *v1alpha1.Project) {
		s := &p.Spec
		s.DisplayName, s.RelativePath, s.Owner, s.Purpose = "Payments API", "services/payments", "team-payments", "Takes payments."
		s.Scanner = v1alpha1.ProjectAssessment{BusinessCriticality: "low", Exposure: "private", Summary: "What scanners say."}
		s.User = v1alpha1.ProjectAssessment{BusinessCriticality: "critical", Exposure: "public", Summary: "What people say."}
		s.Evidence, s.DependenciesFile = "There is a go.mod.", "services/payments/go.mod"
		s.Deployments = map[string]v1alpha1.DeploymentTarget{"production": "eu-west-1"}
		s.DeploymentUsage, s.PrimaryFramework, s.PrimaryLanguage = "One container behind the gateway.", "gin", "Go"
		s.Frameworks, s.Languages, s.FileExtensions = []v1alpha1.ShortText{"gin"}, []v1alpha1.ShortText{"Go"}, []v1alpha1.ShortText{".go"}
		s.SensitiveDataTypes = []v1alpha1.ShortText{"card number"}
		s.Components = []v1alpha1.ProjectComponent{{Criticality: 7, Description: "The API.", FolderName: "api", Type: "api"}}
		at := builder.Time(committedAt)
		s.Size, s.LastCommittedAt = 4321, &at
	})
}

func fullFinding() *builder.FindingBuilder {
	return builder.Finding("f-full").Project("full", "full").Severity(v1alpha1.LevelHigh).
		Title("Path traversal").DetectedAt(fullDetectedAt).Tool("gosec", v1alpha1.CategoryCode).
		Mutate(func(f *v1alpha1.Finding) {
			s := &f.Spec
			s.Class, s.Confidence, s.SecretType, s.CommitHash = "CWE-22", v1alpha1.LevelMedium, "none of these", "8f3e1c2d"
			s.Agent = &v1alpha1.FindingAgent{Name: "gosec", Description: "Looks at Go.", Vector: "taint", CustomAgentVectorID: "vector-1"}
			analyzed, verified, rejected := builder.Time(analyzedAt), builder.Time(verifiedAt), builder.Time(rejectedAt)
			s.Scan = &v1alpha1.FindingScan{ScanID: "scan-1", AnalyzedAt: &analyzed, VerifiedAt: &verified, RejectedAt: &rejected}
			s.Details = v1alpha1.FindingDetails{
				Title: "Path traversal", Description: "The name is joined unchecked <&>.", Severity: v1alpha1.LevelHigh,
				Code: "open(name)", FixedCode: "root.open(name)",
				ExploitFeasibility: "easy", ExploitWalkthrough: "Ask for ../..", Remediation: "Refuse what lies outside.", RemediationEffort: "hard",
				Location:        &v1alpha1.FileLocation{FilePath: "api/download.go", LineNumber: 42, URL: "https://github.com/acme/full/blob/main/api/download.go#L42", Hash: "h1", ClassName: "Downloads", MethodName: "get", FunctionSignature: "get(name)"},
				SupportingFiles: []v1alpha1.FileLocation{{FilePath: "api/routes.go", LineNumber: 7, URL: "https://github.com/acme/full/blob/main/api/routes.go#L7", Hash: "h2", ClassName: "Routes", MethodName: "add", FunctionSignature: "add()"}},
				EndpointLocations: []v1alpha1.EndpointLocation{
					{Type: v1alpha1.EndpointGRPC, Action: "Download", Path: "files.Files"},
					{Type: v1alpha1.EndpointHTTP, Action: "GET", Path: "/download"},
					{Type: v1alpha1.EndpointHTTP, Action: "POST", Path: "/later"},
					{Type: v1alpha1.EndpointGraphQL, Action: "query.download", Path: "/graphql"},
				},
				ValidationEvidence: []v1alpha1.ValidationEvidence{{Criteria: "The name reaches the file system.", Rationale: "Nothing checks it."}},
			}
		})
}
