package api_test

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/triageoperation"
	"github.com/appsec-dev/findings-operator/controllers/triagepolicy"
	"github.com/appsec-dev/findings-operator/controllers/webhookdelivery"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Every curl command of docs/rest.md is sent, in order, and answered as the page shows.
func TestTheExamplesOfTheDocumentation(t *testing.T) {
	o := documentedOrganization(t)
	harness.Must(t, env.LetUploads(t.Context(), o.namespace))
	harness.Must(t, env.LetOperate(t.Context(), o.namespace))
	key := o.key("ci", v1alpha1.Scopes()...)
	o.documentedFindings(key)
	o.documentedHistory(key)
	o.documentedTrend(key)
	o.documentedReview(key)
	o.documentedDelivery(key)
	// The earlier examples were recorded without controllers.
	controllers := sync.OnceFunc(func() {
		controllertest.Start(t, env, finding.Settings{}.SetupWithManager, triageoperation.SetupWithManager,
			triagepolicy.SetupWithManager, webhookdelivery.Settings{}.SetupWithManager)
	})
	variables := map[string]string{"FINDINGS_URL": facade.url(""), "FINDINGS_API_KEY": key.token}
	commands := 0
	for _, example := range examples(t, harness.RepositoryFile(t, "docs", "rest.md")) {
		for _, command := range example.commands {
			if commands++; strings.Contains(command, "/v2/triage-operations") {
				controllers()
			}
			method, path, body, changes := curl(t, os.Expand(command, func(name string) string { return variables[name] }))
			a := newCaller(t, facade, "").do(method, path, body, changes...)
			a.wants(example.status, command)
			if example.answer != "" {
				if diff := cmp.Diff(settled(t, example.answer), settled(t, string(a.body))); diff != "" {
					t.Errorf("%s\nanswer (-documented +got):\n%s\ngot:\n%s", command, diff, a.body)
				}
			}
			if made, is := strings.CutPrefix(a.header.Get("Location"), "/v2/triage-operations/"); is {
				shown := decoded[struct{ UID string }](a)
				variables["OPERATION"], variables["OPERATION_UID"] = made, shown.UID // as the page instructs
			}
		}
	}
	if commands < 8 {
		t.Errorf("found %d commands; did the form of the page change?", commands)
	}
}

func documentedOrganization(t *testing.T) *organization {
	t.Helper()
	namespace := env.Organization(t, "acme")
	o := &organization{t: t, name: "acme", namespace: namespace, server: facade}
	o.limit(unlimited)
	o.create(builder.Repository("payments").In(namespace).Mutate(func(r *v1alpha1.Repository) {
		r.Spec.Provider, r.Spec.URL, r.Spec.FullName = "github", "https://github.com/acme/payments", "acme/payments"
	}).Build())
	o.create(builder.Project("payments-api").In(namespace).Repository("payments").Mutate(func(p *v1alpha1.Project) {
		p.Spec.DisplayName, p.Spec.Owner, p.Spec.Purpose = "Payments API", "team-payments", "Takes payments."
		p.Spec.Scanner.BusinessCriticality, p.Spec.User.Exposure = "high", "public"
		p.Spec.Deployments = map[string]v1alpha1.DeploymentTarget{"production": "eu-west-1"}
	}).Build())
	return o
}

func (o *organization) documentedFindings(key *caller) {
	at := time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)
	o.finding(key, builder.Finding("f-weak-hash").Project("payments", "payments-api").
		Severity(v1alpha1.LevelMedium).Title("MD5 protects a receipt").DetectedAt(at))
	o.finding(key, builder.Finding("f-path-traversal").Project("payments", "payments-api").
		Severity(v1alpha1.LevelHigh).Title("Path traversal in the download handler").DetectedAt(at.Add(24*time.Hour)).
		Mutate(func(f *v1alpha1.Finding) {
			f.Spec.Class, f.Spec.Confidence = "CWE-22", v1alpha1.LevelHigh
			f.Spec.Tool, f.Spec.Category, f.Spec.RuleID = "gosec", v1alpha1.CategoryCode, "G304"
			f.Spec.Details.Score, f.Spec.Details.ToolSeverity = "7.5", "HIGH"
			f.Spec.Agent = &v1alpha1.FindingAgent{Name: "gosec"}
			f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: "api/download.go", LineNumber: 42, MethodName: "download"}
			f.Spec.Details.EndpointLocations = []v1alpha1.EndpointLocation{{Type: v1alpha1.EndpointHTTP, Action: "GET", Path: "/download"}}
		}))
}

// documentedHistory writes what the controllers would record.
func (o *organization) documentedHistory(key *caller) {
	o.t.Helper()
	finding := o.stored("f-path-traversal")
	finding.Status.Transitions = []v1alpha1.Transition{{
		Seq: 1, Type: v1alpha1.TransitionCreated, At: *finding.Spec.DetectedAt, To: "open", By: "scanner/gosec", Scan: "s-1",
	}}
	harness.Must(o.t, controller.Status().Update(o.t.Context(), finding))
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(string(key.get("/v2/findings/f-path-traversal/history").body)).To(ContainSubstring("scanner/gosec"))
	})
}

// documentedTrend writes the rows that the controllers would keep for two days.
func (o *organization) documentedTrend(key *caller) {
	o.t.Helper()
	row := func(day v1alpha1.Day, open v1alpha1.FindingTrendOpen, opened, median, p90 int32) v1alpha1.FindingTrendDay {
		return v1alpha1.FindingTrendDay{
			Day: day, Open: open, Opened: opened, Age: &v1alpha1.FindingTrendSpread{Median: median, P90: p90, Sample: []int32{median, p90}},
		}
	}
	trend := builder.FindingTrend("payments-api-2026q1", "2026q1").In(o.namespace).Project("payments-api").Rows(
		row("2026-03-01", v1alpha1.FindingTrendOpen{Medium: 1}, 1, 0, 0),
		row("2026-03-02", v1alpha1.FindingTrendOpen{High: 1, Medium: 1}, 1, 0, 1),
	).Build()
	harness.Must(o.t, controller.Create(o.t.Context(), trend))
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(string(key.get("/v2/trends?from=2026-03-01&to=2026-03-01").body)).To(ContainSubstring("2026-03-01"))
	})
}

func (o *organization) documentedReview(key *caller) {
	at := time.Date(2026, 3, 4, 10, 2, 0, 0, time.UTC)
	o.create(builder.Review("payments-42").In(o.namespace).PullRequest("payments", 42).
		Reviewed("1d2c3b4a", at).Reviewed("9e8d7c6b", at.Add(time.Hour)).Mutate(func(r *v1alpha1.Review) {
		r.Spec.Provider, r.Spec.PRTitle, r.Spec.PRAuthor = "github", "Hand out receipts", "rosa"
	}).Build())
	o.create(builder.ReviewIssue("i-weak-hash").In(o.namespace).Review("payments-42").Severity(v1alpha1.LevelMedium).
		SeenIn("1d2c3b4a").Mutate(func(i *v1alpha1.ReviewIssue) {
		i.Spec.Title, i.Spec.File, i.Spec.Line, i.Spec.CommitSHA = "MD5 protects a receipt", "api/receipt.go", 17, "1d2c3b4a"
	}).Build())
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(string(key.get("/v2/issues/i-weak-hash").body)).To(ContainSubstring(`"resolved"`))
		g.Expect(string(key.get("/v1/reviews").body)).To(ContainSubstring(`"closed_issue_count":1`))
	})
}

// documentedSignature need not be made with a real secret: only its digest is stored.
const documentedSignature = "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="

func (o *organization) documentedDelivery(key *caller) {
	at := time.Date(2026, 3, 4, 10, 2, 0, 0, time.UTC)
	delivery := builder.WebhookDelivery("d-ping", at).In(o.namespace).Payload(`{"type":"webhook.ping"}`).Build()
	o.create(delivery)
	digest := sha256.Sum256([]byte(documentedSignature))
	delivery.Status.Attempts = []v1alpha1.WebhookAttempt{{
		At: v1alpha1.NewTime(at), Outcome: v1alpha1.WebhookAttemptSucceeded, Code: 200,
		Signatures: []v1alpha1.WebhookSignature{{Digest: hex.EncodeToString(digest[:]), SecretID: "s-1"}},
	}}
	harness.Must(o.t, controller.Status().Update(o.t.Context(), delivery))
	harness.Eventually(o.t, func(g Gomega) {
		a := key.post(verifyPath("d-ping"), received("x", documentedSignature))
		g.Expect(string(a.body)).To(ContainSubstring("payload_mismatch"))
	})
}

// example is a block of commands and their answers.
type example struct {
	commands []string
	status   int
	answer   string
}

var fence = regexp.MustCompile("(?ms)^```(sh|(?:json|csv) (\\d{3}))\n(.*?)^```$")

func examples(t *testing.T, page string) []example {
	t.Helper()
	var all []example
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		if block[1] == "sh" {
			text := strings.ReplaceAll(block[3], "\\\n", " ")
			all = append(all, example{commands: strings.Split(strings.TrimSpace(text), "\n"), status: http.StatusOK})
			continue
		}
		status, err := strconv.Atoi(block[2])
		harness.Must(t, err)
		last := &all[len(all)-1]
		last.status, last.answer = status, block[3]
	}
	return all
}

var word = regexp.MustCompile(`"(?:\\.|[^"\\])*"|'[^']*'|[^\s"']+`)

// curl parses the part of curl's command line that the page uses.
func curl(t *testing.T, command string) (method, path, body string, changes []change) {
	t.Helper()
	words := word.FindAllString(command, -1)
	for i := range words {
		if quoted := strings.HasPrefix(words[i], `"`); quoted {
			words[i] = strings.ReplaceAll(words[i], `\"`, `"`)
			words[i] = words[i][1 : len(words[i])-1]
			continue
		}
		words[i] = strings.Trim(words[i], `'`)
	}
	if len(words) == 0 || words[0] != "curl" {
		t.Fatalf("%q is no curl command", command)
	}
	method = http.MethodGet
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-X":
			i++
			method = words[i]
		case "-d":
			i++
			body = words[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			changes = append(changes, header(name, value))
		default:
			path = strings.TrimPrefix(words[i], facade.url(""))
		}
	}
	return method, path, body, changes
}

var operationName = regexp.MustCompile(`op-[a-z0-9]{16}`)

// differing are members that, like the ids of operations, differ between runs.
var differing = []string{"created_at", "updated_at", "selected_at", "completed_at", "settled_at", "next_cursor", "changed_at", "redelivered_at", "uid"}

// csvRows decodes a table into objects by its header.
func csvRows(text string) (rows []any, isTable bool) {
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || json.Valid([]byte(text)) {
		return nil, false
	}
	for _, cells := range all[1:] {
		row := map[string]any{}
		for i, name := range all[0] {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
	return rows, true
}

// settled decodes an answer and removes what differs between runs.
func settled(t *testing.T, text string) any {
	t.Helper()
	var value any
	if table, isTable := csvRows(text); isTable {
		value = table
	} else if err := json.Unmarshal(operationName.ReplaceAll([]byte(text), []byte("op-")), &value); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var settle func(any)
	settle = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for name, member := range v {
				if name == "requests_per_minute" { // the tests' organizations have a high limit
					v[name] = "..."
				}
				text, _ := member.(string)
				if text != "" && slices.Contains(differing, name) {
					v[name] = "..."
				}
				settle(member)
			}
		case []any:
			for _, member := range v {
				settle(member)
			}
		}
	}
	settle(value)
	return value
}
