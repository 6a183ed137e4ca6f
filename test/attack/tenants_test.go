package attack

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// tenant is an organization with one of everything that the REST API shows, and with keys.
type tenant struct {
	name, namespace string
	// token has all scopes.
	token string
	// marker is in each of its texts, and attackers do not know it.
	marker string
	// mark is in the name of each of its resources; attackers may know these names.
	mark string
	// ids are the ids of its resources, by kind.
	ids map[string]string
	// sent is a delivery as received.
	sent message
}

// letters returns n random letters.
func letters(n int) string {
	out := make([]byte, n)
	rand.Read(out) //nolint:errcheck // never fails: it ends the process instead
	for i, b := range out {
		out[i] = 'a' + b%26
	}
	return string(out)
}

// organizations are created once.
var organizations struct {
	sync.Once
	all []*tenant
}

// tenants returns the organizations that attack one another.
func tenants(t *testing.T) []*tenant {
	t.Helper()
	organizations.Do(func() {
		names := []string{"alfa", "bravo"}
		if full {
			names = append(names, "charlie")
		}
		var all []*tenant
		for _, name := range names {
			o := newOrganization(t, name+"-"+letters(6), plenty)
			o.seed(t)
			all = append(all, o)
		}
		organizations.all = all
	})
	if organizations.all == nil {
		t.Fatal("the organizations could not be made")
	}
	return organizations.all
}

// newOrganization creates an empty organization with a key.
func newOrganization(t *testing.T, name string, requestsPerMinute int32) *tenant {
	t.Helper()
	o := &tenant{name: name, marker: "zq" + letters(14), mark: letters(10), ids: map[string]string{}}
	o.namespace = target.env.Reconciled(t, builder.Organization(name).RequestsPerMinute(requestsPerMinute).Build())
	o.token = o.key(t, "key-"+o.mark, v1alpha1.Scopes()...)
	return o
}

// key creates an API key and returns its token, once the facade has observed it.
func (o *tenant) key(t *testing.T, name string, scopes ...v1alpha1.Scope) string {
	t.Helper()
	key := builder.APIKey(name).Scopes(scopes...).In(o.namespace).Mutate(func(k *v1alpha1.APIKey) { k.Spec.Description = o.marker }).Build()
	token := target.env.Key(t, key)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(target.facade.send(t, token, shot{method: "GET", path: "/"}).status).To(Equal(404), "the key must be known")
	})
	return token
}

// sharedTime is the time of everything in all organizations, so that times reveal nothing.
var sharedTime = time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC)

// nameAll chooses the names of the objects that seed creates.
func (o *tenant) nameAll() {
	for _, what := range []string{"repository", "project", "finding", "review", "issue", "scan", "upload", "endpoint", "policy"} {
		o.ids[what] = what[:2] + "-" + o.mark
	}
}

// seed fills the organization; each text contains its marker, each name its mark.
func (o *tenant) seed(t *testing.T) {
	t.Helper()
	o.nameAll()
	target.env.Create(t, o.repository(), o.project(), o.scan(), o.review(), o.reviewIssue(), o.policy())
	for i := range 3 {
		target.env.Create(t, o.finding(i))
	}
	o.sent = o.receive(t)
	o.ids["delivery"] = o.sent.id
	o.ids["owner"], o.ids["repo"] = o.marker, o.marker
	o.operate(t)
	harness.Eventually(t, func(g Gomega) {
		for _, path := range []string{"/v1/findings", "/v2/repos", "/v1/reviews", o.findingPath(), o.projectPath(), "/v2/issues/" + o.ids["issue"]} {
			a := target.facade.send(t, o.token, shot{method: "GET", path: path})
			g.Expect(a.status).To(Equal(200), path)
			g.Expect(a.holds(o.marker)).To(BeTrue(), path)
		}
		g.Expect(target.facade.send(t, o.token, shot{method: "GET", path: "/v1/findings"}).page(t).Total).To(Equal(3))
		g.Expect(findingstate.IsRecorded(testenv.Get(t, g, target.env, builder.Finding(o.ids["finding"]).In(o.namespace).Build()))).To(BeTrue())
	})
	o.verify(t)
}

// operate creates a triage operation about a finding that does not exist, so that all findings stay as they
// are.
func (o *tenant) operate(t *testing.T) {
	t.Helper()
	a := target.facade.send(t, o.token, shot{method: "POST", path: "/v2/triage-operations",
		body: `{"ids":["none-` + o.mark + `"],"set":{"comments":"` + o.marker + `"},"commit":true}`})
	var made struct{ ID string }
	if err := json.Unmarshal(a.body, &made); err != nil || a.status != 201 && a.status != 202 {
		t.Fatalf("a triage operation: %s", a)
	}
	o.ids["triage-operation"] = made.ID
}

// verify verifies the delivery, and retries until the facade has observed it.
func (o *tenant) verify(t *testing.T) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		a := target.facade.send(t, o.token, shot{method: "POST", path: "/v2/webhook-deliveries/" + o.sent.id + "/verify", body: o.sent.verification()})
		g.Expect(string(a.body)).To(ContainSubstring(`"verified"`))
	})
}

func (o *tenant) projectPath() string {
	return "/v2/repos/" + o.ids["repository"] + "/projects/" + o.ids["project"]
}

func (o *tenant) findingPath() string {
	return o.projectPath() + "/findings/" + o.ids["finding"]
}

// text returns a text that is unique to the tenant.
func (o *tenant) text(what string) string { return what + " " + o.marker }

func (o *tenant) repository() *v1alpha1.Repository {
	return builder.Repository(o.ids["repository"]).In(o.namespace).URL("https://" + o.marker + ".example.com/r").Mutate(func(r *v1alpha1.Repository) {
		s := &r.Spec
		s.Provider, s.CloneURL, s.FullName, s.Description = "github", "https://"+o.marker+".example.com/r.git", o.marker+"/"+o.marker, o.text("description")
		s.DefaultBranch, s.ScanBranch, s.Private, s.ScanEnabled = "main-"+o.marker, "scan-"+o.marker, true, true
		s.InstallationID, s.ProviderID = o.marker, o.marker
		s.Languages, s.Size, s.Summary = map[string]int64{o.marker: 12345}, 67890, o.text("summary")
		at := v1alpha1.NewTime(sharedTime)
		s.LastCommit = &v1alpha1.Commit{Hash: o.marker, Link: "https://" + o.marker + ".example.com/c", CommittedAt: &at}
	}).Build()
}

// policy matches nothing, so that all findings stay as they are, whatever its mode.
func (o *tenant) policy() *v1alpha1.TriagePolicy {
	return builder.TriagePolicy(o.ids["policy"], "finding.title == 'nobody "+o.marker+"'").In(o.namespace).Spec(func(s *v1alpha1.TriagePolicySpec) {
		s.Mode, s.Set.Comment = v1alpha1.PolicyPreview, o.text("comment")
	}).Build()
}

func (o *tenant) project() *v1alpha1.Project {
	return builder.Project(o.ids["project"]).In(o.namespace).Repository(o.ids["repository"]).Mutate(func(p *v1alpha1.Project) {
		s := &p.Spec
		s.DisplayName, s.RelativePath, s.Owner, s.Purpose = o.text("name"), "services/"+o.marker, o.marker, o.text("purpose")
		s.Scanner = v1alpha1.ProjectAssessment{BusinessCriticality: "low", Exposure: "private", Summary: o.text("scanner")}
		s.User = v1alpha1.ProjectAssessment{BusinessCriticality: "critical", Exposure: "public", Summary: o.text("people")}
		s.Evidence, s.DependenciesFile = o.text("evidence"), "services/"+o.marker+"/go.mod"
		s.Deployments = map[string]v1alpha1.DeploymentTarget{o.marker: v1alpha1.DeploymentTarget(o.marker)}
		s.DeploymentUsage, s.PrimaryFramework, s.PrimaryLanguage = o.text("usage"), o.marker, o.marker
		short := []v1alpha1.ShortText{v1alpha1.ShortText(o.marker)}
		s.Frameworks, s.Languages, s.FileExtensions, s.SensitiveDataTypes = short, short, short, short
		s.Components = []v1alpha1.ProjectComponent{{Criticality: 7, Description: o.text("component"), FolderName: o.marker, Type: o.marker}}
		at := v1alpha1.NewTime(sharedTime)
		s.Size, s.LastCommittedAt = 4321, &at
	}).Build()
}

func (o *tenant) finding(n int) *v1alpha1.Finding {
	name := o.ids["finding"]
	if n > 0 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return builder.Finding(name).In(o.namespace).Project(o.ids["repository"], o.ids["project"]).
		DetectedAt(sharedTime.Add(time.Duration(n)*time.Hour)).Tool(o.marker, v1alpha1.CategoryCode).Mutate(func(f *v1alpha1.Finding) {
		s := &f.Spec
		s.Class, s.Confidence, s.SecretType, s.CommitHash = o.marker, v1alpha1.LevelMedium, o.marker, o.marker
		s.Triage.Comments = o.text("comment")
		s.Agent = &v1alpha1.FindingAgent{Name: o.marker, Description: o.text("agent"), Vector: o.marker, CustomAgentVectorID: o.marker}
		at := v1alpha1.NewTime(sharedTime)
		s.Scan = &v1alpha1.FindingScan{ScanID: o.ids["scan"], AnalyzedAt: &at, VerifiedAt: &at, RejectedAt: &at}
		place := v1alpha1.FileLocation{FilePath: o.marker + ".go", LineNumber: 42, URL: "https://" + o.marker + ".example.com/l", Hash: o.marker, ClassName: o.marker, MethodName: o.marker, FunctionSignature: o.marker}
		s.Details = v1alpha1.FindingDetails{
			Title: o.text("title"), Description: o.text("description"), Severity: v1alpha1.LevelHigh, Code: o.text("code"), FixedCode: o.text("fixed"),
			ExploitFeasibility: "easy", ExploitWalkthrough: o.text("walkthrough"), Remediation: o.text("remediation"), RemediationEffort: "hard",
			Location: &place, SupportingFiles: []v1alpha1.FileLocation{place},
			EndpointLocations:  []v1alpha1.EndpointLocation{{Type: v1alpha1.EndpointHTTP, Action: o.marker, Path: "/" + o.marker}},
			ValidationEvidence: []v1alpha1.ValidationEvidence{{Criteria: o.text("criteria"), Rationale: o.text("rationale")}},
		}
	}).Build()
}

func (o *tenant) scan() *v1alpha1.Scan {
	return builder.Scan(o.ids["scan"], sharedTime).In(o.namespace).Project(o.ids["repository"], o.ids["project"]).
		Tool(o.marker, v1alpha1.CategoryCode).Ended(sharedTime.Add(time.Minute), v1alpha1.ScanSucceeded).
		Mutate(func(s *v1alpha1.Scan) {
			s.Spec.ToolVersion, s.Spec.Analysis, s.Spec.Commit, s.Spec.Message = o.marker, o.marker, o.marker, o.text("message")
			s.Spec.Upload, s.Spec.ImportedBy = &v1alpha1.ScanUpload{ID: o.ids["upload"], Scans: 1}, "apikey/"+o.marker
			s.Spec.SkippedBecause = []v1alpha1.ScanSkip{{Reason: o.text("reason"), Count: 1}}
		}).Build()
}

func (o *tenant) review() *v1alpha1.Review {
	return builder.Review(o.ids["review"]).In(o.namespace).PullRequest(o.ids["repository"], 101).Mutate(func(r *v1alpha1.Review) {
		r.Spec.Provider, r.Spec.PRTitle, r.Spec.PRAuthor = "github", o.text("title"), o.marker
	}).Reviewed("sha-"+o.marker, sharedTime).Build()
}

func (o *tenant) reviewIssue() *v1alpha1.ReviewIssue {
	return builder.ReviewIssue(o.ids["issue"]).In(o.namespace).Review(o.ids["review"]).SeenIn(v1alpha1.CommitSHA("sha-" + o.marker)).
		Mutate(func(i *v1alpha1.ReviewIssue) {
			s := &i.Spec
			s.Title, s.Description, s.File, s.Line = o.text("title"), o.text("description"), o.marker+".go", 12
			s.Links.Commit, s.Links.FileLocation = "https://"+o.marker+".example.com/c", "https://"+o.marker+".example.com/f"
		}).Build()
}

// absent returns ids of the same length as the organization's, of objects that do not exist.
func (o *tenant) absent() map[string]string {
	mark := letters(len(o.mark))
	out := map[string]string{}
	for what, id := range o.ids {
		if out[what] = strings.ReplaceAll(id, o.mark, mark); out[what] == id {
			out[what] = id[:2] + letters(len(id)-2)
		}
	}
	return out
}
