package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var update = flag.Bool("update", false, "write the golden files anew")

func at(second int) *v1alpha1.Time {
	// Neither UTC nor whole seconds, although both are shown.
	zone := time.FixedZone("", 2*60*60)
	return &v1alpha1.Time{Time: time.Date(2026, time.March, 1, 14, 0, second, 999, zone)}
}

// fullFinding returns a finding with a distinct value in every shown member.
func fullFinding() *v1alpha1.Finding {
	return &v1alpha1.Finding{
		ObjectMeta: metav1.ObjectMeta{Name: "f-1", Namespace: "org-acme", CreationTimestamp: metav1.NewTime(at(59).Time)},
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"},
			ProjectRef:    v1alpha1.ProjectReference{Name: "shop-api"},
			DetectedAt:    at(1),
			Tool:          "gosec",
			Category:      v1alpha1.FindingCategory("Code"),
			Class:         "CWE-89",
			Agent: &v1alpha1.FindingAgent{
				Name: "agent", Description: "agent's description", Vector: "vector", CustomAgentVectorID: "vector-7",
			},
			Confidence: v1alpha1.LevelMedium,
			SecretType: "none",
			CommitHash: "c0ffee",
			Details: v1alpha1.FindingDetails{
				Title:              "SQL injection in `search`",
				Description:        "A value of the request reaches the query: <script>&amp;\u2028 é 漢字 \"quoted\".",
				Severity:           v1alpha1.LevelHigh,
				Code:               "if a < b && c > d {\n\tquery(\"...\" + q)\n}",
				FixedCode:          "query(\"... ?\", q)",
				ExploitFeasibility: v1alpha1.EffortEasy,
				ExploitWalkthrough: "1. Ask for ' OR 1=1",
				Remediation:        "Bind the value.",
				RemediationEffort:  v1alpha1.EffortMedium,
				Location: &v1alpha1.FileLocation{
					FilePath: "search.go", LineNumber: 42, URL: "https://code.example/search.go#L42", Hash: "h1",
					ClassName: "Search", MethodName: "Find", FunctionSignature: "func (s *Search) Find(q string)",
				},
				EndpointLocations: []v1alpha1.EndpointLocation{
					{Type: v1alpha1.EndpointGRPC, Action: "Find", Path: "shop.Search"},
					{Type: v1alpha1.EndpointHTTP, Action: "GET", Path: "/search"},
					{Type: v1alpha1.EndpointHTTP, Action: "POST", Path: "/search"},
				},
				SupportingFiles: []v1alpha1.FileLocation{{
					FilePath: "db.go", LineNumber: 7, URL: "https://code.example/db.go#L7", Hash: "h2",
					ClassName: "DB", MethodName: "Query", FunctionSignature: "func (d *DB) Query(q string)",
				}},
				ValidationEvidence: []v1alpha1.ValidationEvidence{{Criteria: "reachable", Rationale: "the route is public"}},
			},
			Scan: &v1alpha1.FindingScan{ScanID: "scan-1", AnalyzedAt: at(2), VerifiedAt: at(3), RejectedAt: at(4)},
			Triage: v1alpha1.FindingTriage{
				UserStatus: v1alpha1.UserStatusMuted, Comments: "Only the admin\ncan call it.", By: "ann@example.com",
			},
		},
	}
}

func fullProject() *v1alpha1.Project {
	return &v1alpha1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-api"},
		Spec: v1alpha1.ProjectSpec{
			DisplayName: "Shop API", RelativePath: "services/api", Owner: "team-shop", Purpose: "sells",
			Scanner: v1alpha1.ProjectAssessment{
				BusinessCriticality: "low", Exposure: "private", Summary: "what scanners say",
			},
			User:               v1alpha1.ProjectAssessment{BusinessCriticality: "critical", Summary: "what people say"},
			Deployments:        map[string]v1alpha1.DeploymentTarget{"production": "eu-1", "staging": "eu-2"},
			DeploymentUsage:    "a container",
			SensitiveDataTypes: []v1alpha1.ShortText{"email address", "name"},
		},
		Status: v1alpha1.ProjectStatus{BusinessCriticality: "medium", Exposure: "internal", Summary: "out of date"},
	}
}

func fullRepository() *v1alpha1.Repository {
	return &v1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       v1alpha1.RepositorySpec{FullName: "acme/stores/shop-code", Provider: "github", URL: "https://code.example/shop"},
	}
}

func emptyFinding() *v1alpha1.Finding {
	return &v1alpha1.Finding{
		ObjectMeta: metav1.ObjectMeta{Name: "f-2", CreationTimestamp: metav1.NewTime(at(59).Time)},
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "shop"},
			ProjectRef:    v1alpha1.ProjectReference{Name: "shop-api"},
			Details:       v1alpha1.FindingDetails{Title: "t", Severity: v1alpha1.LevelLow},
		},
	}
}

// renderFinding renders all shapes.
func renderFinding(organization string, finding *v1alpha1.Finding, updatedAt time.Time, project *render.Project,
	repository *render.Repository) (v1, v2, full []byte, err error) {
	rendered, err := render.NewFinding(finding)
	if err != nil {
		return nil, nil, nil, err
	}
	shown := &render.Shown{
		Organization: render.NewOrganization(organization), UpdatedAt: render.Timestamp(updatedAt),
		Project: project, Repository: repository,
	}
	v1, v2, full = rendered.AppendV1(nil, shown), rendered.AppendV2(nil, shown), rendered.AppendFull(nil, shown)
	got := []int{len(v1), len(v2), len(full)}
	want := []int{rendered.LenV1(shown), rendered.LenV2(shown), rendered.LenFull(shown)}
	if !slices.Equal(got, want) {
		return nil, nil, nil, fmt.Errorf("the lengths are %v, announced were %v", got, want)
	}
	return v1, v2, full, nil
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var indented bytes.Buffer
	harness.Must(t, json.Indent(&indented, got, "", "  "))
	indented.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if *update {
		harness.Must(t, os.WriteFile(path, indented.Bytes(), 0o600))
	}
	want := harness.File(t, path)
	harness.Same(t, name+": run the test with -update if this is meant", want, indented.String())
}

// The status keeps the times of the last token when a key has lost it.
func TestKeyWithoutATokenShowsNoTimesOfOne(t *testing.T) {
	key := &v1alpha1.APIKey{Status: v1alpha1.APIKeyStatus{KeyID: "jti", IssuedAt: at(1), ExpiresAt: at(2)}}
	times := func() (issued, expires *string) {
		t.Helper()
		content, err := render.APIKeyJSON(key)
		harness.Must(t, err)
		var out struct {
			Issued  *string `json:"issued_at"`
			Expires *string `json:"expires_at"`
		}
		harness.Must(t, json.Unmarshal(content, &out))
		return out.Issued, out.Expires
	}
	if issued, expires := times(); issued == nil || expires == nil {
		t.Errorf("a key with a token shows no times")
	}
	key.Status.KeyID = ""
	if issued, expires := times(); issued != nil || expires != nil {
		t.Errorf("a key without a token shows the times %v and %v", issued, expires)
	}
}

func v2(t *testing.T, project *render.Project, repository *render.Repository) openapi.FindingV2 {
	t.Helper()
	_, content, _, err := renderFinding("acme", emptyFinding(), at(5).Time, project, repository)
	harness.Must(t, err)
	return harness.Decoded[openapi.FindingV2](t, content)
}

func TestEqualTellsWhatFindingsShow(t *testing.T) {
	cases := []struct {
		reason string
		change func(*v1alpha1.Project)
		want   bool
	}{
		{"nothing differs", func(*v1alpha1.Project) {}, true},
		{"counts are not shown", func(p *v1alpha1.Project) { p.Status.FindingsCount = 9 }, true},
		{"a scanner's opinion that a person's hides", func(p *v1alpha1.Project) { p.Spec.Scanner.Summary = "x" }, true},
		{"a deployment", func(p *v1alpha1.Project) { p.Spec.Deployments["production"] = "us-1" }, false},
		{"a scanner's opinion that counts", func(p *v1alpha1.Project) { p.Spec.Scanner.Exposure = "public" }, false},
		{"the owner", func(p *v1alpha1.Project) { p.Spec.Owner = "x" }, false},
	}
	before := render.NewProject(fullProject())
	for _, c := range cases {
		after := fullProject()
		c.change(after)
		harness.Same(t, c.reason, c.want, before.Equal(render.NewProject(after)))
	}
	if before.Equal(nil) || !(*render.Project)(nil).Equal(nil) {
		t.Error("a project and none are not told apart")
	}
}

func TestNothingIsEscapedForHTML(t *testing.T) {
	v1, _, _, err := renderFinding("acme", fullFinding(), at(5).Time, nil, nil)
	harness.Must(t, err)
	if !strings.Contains(string(v1), `if a < b && c > d {`) {
		t.Errorf("got %s", v1)
	}
}
