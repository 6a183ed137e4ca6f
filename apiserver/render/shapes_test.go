package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// wholeRepository returns a repository with a distinct value in every shown member.
func wholeRepository() *v1alpha1.Repository {
	r := fullRepository()
	r.CreationTimestamp = metav1.NewTime(at(1).Time)
	r.Spec.CloneURL, r.Spec.Description, r.Spec.Summary = "https://code.example/shop.git", "A shop <&>", "It sells"
	r.Spec.DefaultBranch, r.Spec.ScanBranch = "main", "develop"
	r.Spec.Private, r.Spec.Archived, r.Spec.ScanEnabled = true, true, true
	r.Spec.InstallationID, r.Spec.ProviderID, r.Spec.Size = "i-7", "p-8", 9_000_000_000
	r.Spec.Languages = map[string]int64{"TypeScript": 5, "Go": 8_000_000_000}
	r.Spec.LastCommit = &v1alpha1.Commit{Hash: "c0ffee", Link: "https://code.example/c0ffee", CommittedAt: at(2)}
	r.Status.Counts = v1alpha1.RepositoryCounts{Findings: 99, Code: 98, Package: 3, Secret: 4}
	r.Status.LastScannedAt, r.Status.UpdatedAt = at(3), at(58)
	return r
}

// wholeProject returns a project with a distinct value in every shown member.
func wholeProject() *v1alpha1.Project {
	p := fullProject()
	p.CreationTimestamp = metav1.NewTime(at(4).Time)
	p.Spec.RepositoryRef.Name = "shop"
	p.Spec.User.Exposure = "public"
	p.Spec.Evidence, p.Spec.DependenciesFile = "a go.mod", "go.mod"
	p.Spec.PrimaryFramework, p.Spec.PrimaryLanguage = "gin", "Go"
	p.Spec.Frameworks = []v1alpha1.ShortText{"gin", "react"}
	p.Spec.Languages = []v1alpha1.ShortText{"Go", "TypeScript"}
	p.Spec.FileExtensions = []v1alpha1.ShortText{".go", ".ts"}
	p.Spec.Components = []v1alpha1.ProjectComponent{{Criticality: 9, Description: "the API", FolderName: "api", Type: "api"}}
	p.Spec.Size, p.Spec.LastCommittedAt = 123, at(5)
	p.Status.FindingsCount, p.Status.LastScannedAt = 6, at(6)
	p.Status.LastScan = &v1alpha1.ProjectLastScan{ID: "scan-1", Status: "Completed"}
	return p
}

func wholeReview() *v1alpha1.Review {
	return &v1alpha1.Review{
		ObjectMeta: metav1.ObjectMeta{Name: "r-1", CreationTimestamp: metav1.NewTime(at(7).Time)},
		Spec: v1alpha1.ReviewSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, Provider: "gitlab",
			PRNumber: 42, PRTitle: "Add a cart", PRAuthor: "ann", PRStatus: v1alpha1.PullRequestMerged,
			ReviewedCommits: []v1alpha1.ReviewedCommit{{SHA: "c1", ReviewedAt: *at(8)}, {SHA: "c2", ReviewedAt: *at(9)}},
		},
		// The counters in the status are not shown.
		Status: v1alpha1.ReviewStatus{OpenIssueCount: 77, LastReviewAt: at(57)},
	}
}

func wholeIssue() *v1alpha1.ReviewIssue {
	return &v1alpha1.ReviewIssue{
		ObjectMeta: metav1.ObjectMeta{Name: "i-1", CreationTimestamp: metav1.NewTime(at(10).Time)},
		Spec: v1alpha1.ReviewIssueSpec{
			ReviewRef: v1alpha1.ReviewReference{Name: "r-1"}, Title: "SQL injection", Description: "A value <…> reaches a query.",
			Severity: v1alpha1.LevelHigh, File: "search.go", Line: 42, CommitSHA: "c1", SeenInCommits: []v1alpha1.CommitSHA{"c1"},
			Links:  v1alpha1.ReviewIssueLinks{Commit: "https://code.example/c1", FileLocation: "https://code.example/c1/search.go#L42"},
			Result: &v1alpha1.ReviewIssueResult{Package: &v1alpha1.FindingPackage{Version: "1.4 <…>"}, Score: "9.8", ToolSeverity: "CRITICAL <…>"},
			Triage: v1alpha1.ReviewIssueTriage{
				UserStatus: v1alpha1.UserStatusMuted, Reason: v1alpha1.DecisionAcceptedRisk, ExpiresAt: at(16),
				Comments: "The value <…> is a constant.", By: "apikey/ci",
			},
		},
		// The decision has ended, so that the verdict applies. No policy returns a verdict that names an issue.
		Status: v1alpha1.ReviewIssueStatus{EndedAt: new(v1alpha1.NewTime(at(16).Time)), Verdict: &v1alpha1.FindingVerdict{
			Policy: "tests", ReviewIssue: "none", UserStatus: "muted", Reason: v1alpha1.DecisionUsedInTests, Comment: "Tests.",
			By: "rosa", Since: *at(17),
		}},
	}
}

var wholeIssueStatus = v1alpha1.ReviewIssueStatus{
	State: v1alpha1.ReviewIssueResolved, ResolvedBy: "c2", ResolvedAt: at(11), FirstSeenAt: at(12), LastSeenAt: at(13),
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(at(59).Time)}
}

// wholeFinding returns a finding with a distinct value in every member of the full shape but the verdict, which no
// decided finding has.
func wholeFinding() *v1alpha1.Finding {
	f := fullFinding()
	f.Spec.RuleID, f.Spec.Details.Score, f.Spec.Details.ToolSeverity = "G201", "7.5", "HIGH"
	f.Spec.Package = &v1alpha1.FindingPackage{
		PURL: "pkg:npm/lodash@4.17.15", Name: "lodash", Version: "4.17.15", FixedVersion: "4.17.21",
	}
	f.Spec.Vulnerability = &v1alpha1.FindingVulnerability{ID: "CVE-2021-23337", Aliases: []string{"GHSA-35jh-r3h4-6jhm"}}
	f.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: v1alpha1.SuppressionInSource, Justification: "a test"}
	f.Spec.Fingerprints = []v1alpha1.Fingerprint{{Name: "primary", Value: "f1"}}
	f.Spec.Closed = &v1alpha1.FindingClosure{At: *at(6), ScanID: "scan-2"}
	f.Spec.Triage.Reason, f.Spec.Triage.ExpiresAt = v1alpha1.DecisionMitigatedElsewhere, at(7)
	f.Spec.Triage.Basis = findingstate.Basis(&v1alpha1.FindingSpec{Details: v1alpha1.FindingDetails{Severity: "low"}})
	return f
}

// judgedFinding returns a finding with a distinct value in every member of the verdict.
func judgedFinding() *v1alpha1.Finding {
	f := emptyFinding()
	f.Status.Verdict = wholeIssue().Status.Verdict
	return f
}

// shapes renders each shape in full, and with the minimum that a resource can hold and nothing to join.
func shapes(t *testing.T) map[string][]byte {
	t.Helper()
	must := func(content []byte, err error) []byte {
		t.Helper()
		harness.Must(t, err)
		return content
	}
	repository, updatedAt := render.NewRepository(wholeRepository()), at(14).Time
	counts := reviewstate.Counts{Closed: 1, Open: 9, OpenHigh: 2, OpenMedium: 3, OpenLow: 4, OpenMuted: 5, OpenConfirmed: 6}
	bareProject := &v1alpha1.Project{ObjectMeta: named("api"), Spec: v1alpha1.ProjectSpec{
		RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}}}
	all := map[string][]byte{
		"repository.full.json": must(render.RepositoryJSON("acme", wholeRepository(), updatedAt,
			[]render.DatedProject{{Project: wholeProject(), UpdatedAt: at(15).Time}})),
		"repository.empty.json": must(render.RepositoryJSON("acme", &v1alpha1.Repository{ObjectMeta: named("shop")}, updatedAt, nil)),
		"repository.bare.json": must(render.RepositoryJSON("acme", &v1alpha1.Repository{ObjectMeta: named("shop")}, updatedAt,
			[]render.DatedProject{{Project: bareProject, UpdatedAt: updatedAt}})),
		"project.full.json":     must(render.ProjectJSON("acme", wholeProject(), updatedAt, repository)),
		"project.unjoined.json": must(render.ProjectJSON("acme", bareProject, updatedAt, nil)),
	}
	for name, known := range map[string]struct {
		finding    *v1alpha1.Finding
		project    *render.Project
		repository *render.Repository
	}{
		"full": {fullFinding(), render.NewProject(fullProject()), render.NewRepository(fullRepository())},
		"empty": {emptyFinding(), render.NewProject(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop-api"}}),
			render.NewRepository(&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})},
		"unjoined": {finding: emptyFinding()},
	} {
		v1, v2, _, err := renderFinding("acme", known.finding, at(5).Time, known.project, known.repository)
		all["findingv1."+name+".json"], all["findingv2."+name+".json"] = must(v1, err), must(v2, err)
		if name == "full" {
			known.finding = wholeFinding()
		}
		_, _, full, err := renderFinding("acme", known.finding, at(5).Time, known.project, known.repository)
		all["findingfull."+name+".json"] = must(full, err)
	}
	_, _, judged, err := renderFinding("acme", judgedFinding(), updatedAt, nil, nil)
	all["findingfull.judged.json"] = must(judged, err)
	for suffix, shape := range map[string]render.Shape{"": render.Documented, "full": render.Full} {
		record := func(name string) func(render.Record, error) {
			return func(record render.Record, err error) {
				t.Helper()
				all[strings.Replace(name, ".", suffix+".", 1)] = must(record.In(shape).AppendTo(nil), err)
			}
		}
		record("review.full.json")(render.NewReview(wholeReview(), updatedAt, counts, repository))
		record("review.unjoined.json")(render.NewReview(&v1alpha1.Review{ObjectMeta: named("r-1"), Spec: v1alpha1.ReviewSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"}, PRNumber: 1, PRStatus: "open"}}, updatedAt, reviewstate.Counts{}, nil))
		record("reviewissue.full.json")(render.NewReviewIssue(wholeIssue(), &wholeIssueStatus, updatedAt, wholeReview(), repository))
		record("reviewissue.unjoined.json")(render.NewReviewIssue(&v1alpha1.ReviewIssue{ObjectMeta: named("i-1"), Spec: v1alpha1.ReviewIssueSpec{
			ReviewRef: v1alpha1.ReviewReference{Name: "r-1"}, Title: "t", Severity: "low"}},
			&v1alpha1.ReviewIssueStatus{State: v1alpha1.ReviewIssueOpen}, updatedAt, nil, nil))
	}
	return all
}

func TestGoldenShapes(t *testing.T) {
	again := shapes(t)
	for name, content := range shapes(t) {
		golden(t, name, content)
		if !bytes.Equal(content, again[name]) {
			t.Errorf("%s: the same resource gave other bytes", name)
		}
	}
}

// No member of a full resource may be empty: an empty member was forgotten.
func TestEveryMemberOfTheShapesIsRendered(t *testing.T) {
	for name, content := range shapes(t) {
		value := harness.Decoded[map[string]any](t, content)
		switch name {
		case "findingfull.full.json":
			delete(value, "verdict") // wholeFinding is decided
		case "findingfull.judged.json":
			requireValues(t, name+".verdict", value["verdict"])
		}
		if strings.HasSuffix(name, ".full.json") {
			requireValues(t, name, value)
		}
	}
}

// The rendered JSON conforms to the contract: types, enumerations, formats, and null only where allowed.
func TestShapesAreThoseOfTheContract(t *testing.T) {
	spec := loadSpec(t)
	schemas := map[string]string{
		"findingv1": "FindingV1", "findingv2": "FindingV2", "findingfull": "FindingFull",
		"repository": "Repository", "project": "Project", "review": "Review", "reviewissue": "ReviewIssue",
		"reviewfull": "ReviewFull", "reviewissuefull": "ReviewIssueFull",
	}
	for name, content := range shapes(t) {
		shape, _, _ := strings.Cut(name, ".")
		value := harness.Decoded[map[string]any](t, content)
		schema := spec.Components.Schemas[schemas[shape]].Value
		harness.NoError(t, name, schema.VisitJSON(value, openapi3.EnableFormatValidation(), openapi3.MultiErrors()))
		members := len(schema.Properties)
		for _, part := range schema.AllOf {
			members += len(part.Value.Properties)
		}
		harness.Same(t, name+": members", members, len(value))
	}
}

func requireValues(t *testing.T, path string, value any) {
	t.Helper()
	var set bool
	switch v := value.(type) {
	case map[string]any:
		set = len(v) > 0
		for member, value := range v {
			requireValues(t, path+"."+member, value)
		}
	case []any:
		set = len(v) > 0
		for _, value := range v {
			requireValues(t, path+"[]", value)
		}
	default:
		set = v != nil && v != "" && v != 0.0 && v != false
	}
	if !set {
		t.Errorf("%s has no value: fill it in apiserver/render, and give the resource of this test a value for it", path)
	}
}

func TestOwnerAndNameComeFromTheFullName(t *testing.T) {
	cases := []struct{ reason, fullName, owner, name string }{
		{"what comes before the last slash, and what follows it", "acme/shop", "acme", "shop"},
		{"groups may nest", "acme/stores/shop", "acme/stores", "shop"},
		{"no owner", "shop", "", "shop"},
		{"no full name: the id", "", "", "repo-id"},
		{"no name: the id", "acme/", "acme", "repo-id"},
	}
	for _, c := range cases {
		r := render.NewRepository(&v1alpha1.Repository{
			ObjectMeta: named("repo-id"), Spec: v1alpha1.RepositorySpec{FullName: c.fullName},
		})
		review, err := render.NewReview(wholeReview(), at(1).Time, reviewstate.Counts{}, r)
		harness.Must(t, err)
		var shown struct {
			Owner string `json:"repo_owner"`
			Name  string `json:"repo_name"`
		}
		harness.Must(t, json.Unmarshal(review.JSON(), &shown))
		if shown.Owner != c.owner || shown.Name != c.name {
			t.Errorf("%s: got %+v", c.reason, shown)
		}
		harness.Same(t, c.reason+", of a finding", c.name, v2(t, nil, r).Repo.Name)
	}
}

func TestProviderOfAReview(t *testing.T) {
	cases := []struct{ reason, own, repositorys, want string }{
		{"its own comes first", "gitlab", "github", "gitlab"},
		{"else its repository's", "", "github", "github"},
		{"nobody says", "", "", ""},
	}
	for _, c := range cases {
		review := wholeReview()
		review.Spec.Provider = c.own
		r := render.NewRepository(&v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{Provider: c.repositorys}})
		shownReview, err := render.NewReview(review, at(1).Time, reviewstate.Counts{}, r)
		harness.Must(t, err)
		issue, err := render.NewReviewIssue(wholeIssue(), &wholeIssueStatus, at(1).Time, review, r)
		harness.Must(t, err)
		for _, content := range [][]byte{shownReview.JSON(), issue.JSON()} {
			shown := harness.Decoded[struct{ Provider string }](t, content)
			harness.Same(t, c.reason, c.want, shown.Provider)
		}
	}
}

// Who commits an operation must see that it removes everybody's comments.
func TestAnOperationShowsThatItRemovesComments(t *testing.T) {
	for _, c := range []struct {
		comments *string
		want     string
	}{
		{nil, `"comments":"","removes_comments":false`},
		{new(""), `"comments":"","removes_comments":true`},
		{new("x"), `"comments":"x","removes_comments":false`},
	} {
		operation := &v1alpha1.TriageOperation{ObjectMeta: named("op-1"), Spec: v1alpha1.TriageOperationSpec{
			Set: &v1alpha1.OperationDecision{UserStatus: v1alpha1.UserStatusActive, Comments: c.comments}}}
		shown, err := render.TriageOperationJSON(operation)
		harness.Must(t, err)
		var of struct {
			Set struct {
				Comments string `json:"comments"`
				Removes  bool   `json:"removes_comments"`
			} `json:"set"`
		}
		harness.Must(t, json.Unmarshal(shown, &of))
		harness.Same(t, "it shows", c.want, fmt.Sprintf(`"comments":%q,"removes_comments":%t`, of.Set.Comments, of.Set.Removes))
	}
}
