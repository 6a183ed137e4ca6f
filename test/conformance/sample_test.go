package conformance

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// sample is an organization that tests share.
type sample struct {
	name, namespace, token string
}

// shared returns the organization to a test, and creates it for the first one.
func shared(t *testing.T, kept **sample, create func() *organization) *organization {
	t.Helper()
	enter(t)
	if *kept == nil {
		o := create()
		*kept = &sample{o.name, o.namespace, o.Token}
	}
	return (*kept).in(t)
}

// sampleOrganization returns an organization for all tests that only read, or only create keys: it has one object of
// each kind with every member set ("full"), and one without any optional member ("bare").
func sampleOrganization(t *testing.T) *organization {
	t.Helper()
	return shared(t, &theDeployment.sample, func() *organization {
		o := emptyOrganization(t, plenty)
		o.fill()
		return o
	})
}

// in binds a shared organization to one test.
func (s *sample) in(t *testing.T) *organization {
	t.Helper()
	o := &organization{t: t, name: s.name, namespace: s.namespace, caller: anonymous(t)}
	o.Token = s.token
	return o
}

// The sample's times, each in a different second.
var (
	fullDetectedAt = time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC)
	analyzedAt     = fullDetectedAt.Add(time.Minute)
	verifiedAt     = fullDetectedAt.Add(2 * time.Minute)
	rejectedAt     = fullDetectedAt.Add(3 * time.Minute)
	committedAt    = fullDetectedAt.Add(-time.Hour)
	scannedAt      = fullDetectedAt.Add(5 * time.Minute)
	firstReviewAt  = fullDetectedAt.Add(10 * time.Minute)
	secondReviewAt = fullDetectedAt.Add(20 * time.Minute)
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
		builder.Finding("f-package").Project("full", "full").Tool("x", v1alpha1.CategoryPackage).In(o.namespace).Build(),
		builder.Finding("f-secret-1").Project("full", "full").Tool("x", v1alpha1.CategorySecret).In(o.namespace).Build(),
		builder.Finding("f-secret-2").Project("full", "full").Tool("x", v1alpha1.CategorySecret).In(o.namespace).Build(),
		builder.Scan("scan-0", fullDetectedAt.Add(-time.Hour)).Project("full", "full").In(o.namespace).Ended(fullDetectedAt.Add(-time.Hour), v1alpha1.ScanSucceeded).Build(),
		builder.Scan("scan-failed", fullDetectedAt.Add(-2*time.Hour)).Project("full", "full").In(o.namespace).Ended(fullDetectedAt.Add(-2*time.Hour), v1alpha1.ScanFailed).Build(),
		builder.Scan("scan-1", fullDetectedAt).Project("full", "full").In(o.namespace).Ended(scannedAt, v1alpha1.ScanSucceeded).Build(),
	)
	o.fillReviews()
	o.fillDeliveries()
	o.settled(7)
	o.settledRest()
	o.operations(listedOperation, "op-a", "op-b")
	o.policies("mute-a", "mute-b", "mute-c")
}

// fillReviews creates a review in every state.
func (o *organization) fillReviews() {
	o.t.Helper()
	pullRequest := func(title, author string) func(*v1alpha1.Review) {
		return func(r *v1alpha1.Review) { r.Spec.Provider, r.Spec.PRTitle, r.Spec.PRAuthor = "github", title, author }
	}
	issue := func(name, review string, severity v1alpha1.Level, commits ...v1alpha1.CommitSHA) *builder.ReviewIssueBuilder {
		return builder.ReviewIssue(name).Review(review).Severity(severity).SeenIn(commits...).In(o.namespace)
	}
	o.create(
		builder.Review("rv-open").PullRequest("full", 101).Mutate(pullRequest("Zip the downloads", "mallory")).
			Reviewed("sha-1", firstReviewAt).Reviewed("sha-2", secondReviewAt).In(o.namespace).Build(),
		builder.Review("rv-merged").PullRequest("full", 102).Status(v1alpha1.PullRequestMerged).Mutate(pullRequest("Add downloads", "alice")).
			Reviewed("sha-3", firstReviewAt).In(o.namespace).Build(),
		builder.Review("rv-closed").PullRequest("full", 3).Status(v1alpha1.PullRequestClosed).Mutate(pullRequest("add uploads", "bob")).
			Reviewed("sha-4", firstReviewAt).In(o.namespace).Build(),
		builder.Review("rv-bare").PullRequest("bare", 20).In(o.namespace).Build(),
		issue("ri-open", "rv-open", v1alpha1.LevelHigh, "sha-2").Build(),
		issue("ri-medium-1", "rv-open", v1alpha1.LevelMedium, "sha-1", "sha-2").Build(),
		issue("ri-medium-2", "rv-open", v1alpha1.LevelMedium, "sha-1", "sha-2").Build(),
		issue("ri-resolved", "rv-open", v1alpha1.LevelLow, "sha-1").Mutate(func(i *v1alpha1.ReviewIssue) {
			i.Spec.Description, i.Spec.File, i.Spec.Line = "What is wrong.", "api/zip.go", 12
			i.Spec.Links.Commit = "https://github.com/acme/full/commit/sha-1"
			i.Spec.Links.FileLocation = "https://github.com/acme/full/blob/sha-1/api/zip.go#L12"
		}).Build(),
		issue("ri-merged", "rv-merged", v1alpha1.LevelLow, "sha-3").Build(),
	)
}

// fillDeliveries creates deliveries without a receiver: two wait for their endpoint, and one was for an endpoint that
// no longer exists.
func (o *organization) fillDeliveries() {
	o.t.Helper()
	delivery := func(name, event, subject string) *builder.WebhookDeliveryBuilder {
		return builder.WebhookDelivery(name, fullDetectedAt).Endpoint("absent").In(o.namespace).Mutate(func(d *v1alpha1.WebhookDelivery) {
			d.Spec.Event.Type = event
			d.Spec.Event.Subject = v1alpha1.WebhookEventSubject{Kind: "Finding", Name: v1alpha1.ResourceName(subject)}
		})
	}
	o.create(
		delivery("whd-created", "finding.created", "f-full").Build(),
		delivery("whd-closed", "finding.closed", "f-closed").Build(),
		delivery("whd-failed", "finding.created", "f-closed").Endpoint("gone").Mutate(func(d *v1alpha1.WebhookDelivery) {
			d.Spec.EndpointRef.UID = "00000000-0000-0000-0000-000000000000"
		}).Build(),
	)
}

// settledRest waits until the API shows the result of the controllers' work on the sample, and no
// further changes are expected.
func (o *organization) settledRest() {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		o.showsWhatIsStored(g)
		full := o.get(projectPath("full", "full")).object()
		g.Expect(full["findings_count"]).To(BeEquivalentTo(4))
		g.Expect(full["last_scan_status"]).To(Equal("completed"))
		g.Expect(o.find("/v1/reviews", "rv-open")["open_issue_count"]).To(BeEquivalentTo(3))
		g.Expect(o.find("/v1/reviews", "rv-open")["closed_issue_count"]).To(BeEquivalentTo(1))
		g.Expect(o.find("/v1/reviews", "rv-merged")["open_issue_count"]).To(BeEquivalentTo(1))
		g.Expect(o.find("/v2/repos", "full")["secret_findings"]).To(BeEquivalentTo(2))
		g.Expect(o.find("/v2/repos", "full")["last_scanned_at"]).NotTo(BeNil())
		g.Expect(o.find("/v2/webhook-deliveries", "whd-failed")["status"]).To(Equal("failed"))
	})
}

// showsWhatIsStored compares the lists of repositories and reviews with the cluster's objects, once
// the controllers have reconciled all of them.
func (o *organization) showsWhatIsStored(g Gomega) {
	o.t.Helper()
	want, shown := map[string]string{}, map[string]string{}
	repositories, reviews, issues := &v1alpha1.RepositoryList{}, &v1alpha1.ReviewList{}, &v1alpha1.ReviewIssueList{}
	for _, list := range []client.ObjectList{repositories, reviews, issues} {
		testenv.List(o.t, g, theDeployment.cluster, list, client.InNamespace(o.namespace))
	}
	for i := range repositories.Items {
		r := &repositories.Items[i]
		g.Expect(r.Status.ObservedGeneration).To(Equal(r.Generation))
		g.Expect(r.Status.UpdatedAt).NotTo(BeNil())
		want[r.Name] = fmt.Sprint(shownTime(r.Status.UpdatedAt.Time), r.Status.Projects, r.Status.Counts.Package, r.Status.Counts.Secret, r.Status.LastScannedAt != nil)
	}
	for i := range reviews.Items {
		r := &reviews.Items[i]
		g.Expect(r.Status.ObservedGeneration).To(Equal(r.Generation))
		g.Expect(r.Status.UpdatedAt).NotTo(BeNil())
		want[r.Name] = fmt.Sprint(shownTime(r.Status.UpdatedAt.Time), r.Status.OpenIssueCount, r.Status.ClosedIssueCount)
	}
	for i := range issues.Items {
		g.Expect(issues.Items[i].Status.ObservedGeneration).To(Equal(issues.Items[i].Generation))
	}
	for _, r := range o.walk("/v2/repos") {
		shown[r.text("id")] = fmt.Sprint(r.text("updated_at"), len(r.list("projects")), r["package_findings"], r["secret_findings"], r["last_scanned_at"] != nil)
	}
	for _, r := range o.walk("/v1/reviews") {
		shown[r.text("id")] = fmt.Sprint(r.text("updated_at"), r["open_issue_count"], r["closed_issue_count"])
	}
	g.Expect(shown).To(Equal(want))
}

func fullRepository() *builder.RepositoryBuilder {
	return builder.Repository("full").URL("https://github.com/acme/full").Mutate(func(r *v1alpha1.Repository) {
		s := &r.Spec
		s.Provider, s.CloneURL, s.FullName, s.Description = "github", "https://github.com/acme/full.git", "acme/full", "Everything is set."
		s.DefaultBranch, s.ScanBranch, s.Private, s.Archived = "main", "develop", true, true
		s.InstallationID, s.ProviderID, s.ScanEnabled = "installation-7", "provider-9", true
		s.Languages, s.Size, s.Summary = map[string]int64{"Go": 12345}, 67890, "What the code is for."
		at := v1alpha1.NewTime(committedAt)
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
		at := v1alpha1.NewTime(committedAt)
		s.Size, s.LastCommittedAt = 4321, &at
	})
}

func fullFinding() *builder.FindingBuilder {
	return builder.Finding("f-full").Project("full", "full").Severity(v1alpha1.LevelHigh).
		Title("Path traversal").DetectedAt(fullDetectedAt).Tool("gosec", v1alpha1.CategoryCode).
		Mutate(func(f *v1alpha1.Finding) {
			s := &f.Spec
			s.Class, s.Confidence, s.SecretType, s.CommitHash = "CWE-22", v1alpha1.LevelMedium, "none of these", "8f3e1c2d"
			s.RuleID = "G304"
			s.Fingerprints = []v1alpha1.Fingerprint{{Name: "primaryLocationLineHash/v1", Value: "39fa2ee980eb94b0:1"}}
			s.Vulnerability = &v1alpha1.FindingVulnerability{ID: "CVE-2019-1549", Aliases: []string{"GHSA-29mw-wpgm-hmr9"}}
			s.Package = &v1alpha1.FindingPackage{PURL: "pkg:apk/alpine/openssl@1.1.1c-r0", Name: "openssl", Version: "1.1.1c-r0", FixedVersion: "1.1.1d-r0"}
			s.Agent = &v1alpha1.FindingAgent{Name: "gosec", Description: "Looks at Go.", Vector: "taint", CustomAgentVectorID: "vector-1"}
			analyzed, verified, rejected := v1alpha1.NewTime(analyzedAt), v1alpha1.NewTime(verifiedAt), v1alpha1.NewTime(rejectedAt)
			s.Scan = &v1alpha1.FindingScan{ScanID: "scan-1", AnalyzedAt: &analyzed, VerifiedAt: &verified, RejectedAt: &rejected}
			s.Details = v1alpha1.FindingDetails{
				Title: "Path traversal", Description: "The name is joined unchecked <&>.", Severity: v1alpha1.LevelHigh,
				Score: "7.5", ToolSeverity: "HIGH",
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
