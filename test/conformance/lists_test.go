package conformance

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// list describes a list endpoint according to the contract and the design.
type list struct {
	path         string
	sorts        []string
	defaultSort  string
	defaultOrder string
	defaultSize  int
	// wants fails the test unless an item has exactly the documented members.
	wants func(t *testing.T, item record)
}

// findingLists are the lists of findings.
var findingLists = []string{"/v1/findings", "/v2/findings", "/v2/full-findings"}

// exactly returns list.wants for items of that shape.
func exactly(want shape) func(t *testing.T, item record) {
	return func(t *testing.T, item record) {
		t.Helper()
		wantsShape(t, "item", item, want)
	}
}

// hasOneOrder reports whether the list supports only one order.
func (l list) hasOneOrder() bool { return l.defaultSort == "" }

// lists are all list endpoints except that of API keys, which is never empty: it contains the
// caller's key.
var lists = []list{
	{"/v1/findings", []string{"created_at", "updated_at", "severity"}, "created_at", "desc", 100, wantsFindingV1},
	{"/v2/findings", []string{"created_at", "updated_at", "severity"}, "created_at", "desc", 100, wantsFindingV2},
	{"/v2/full-findings", []string{"created_at", "updated_at", "severity"}, "created_at", "desc", 100, exactly(findingFullShape)},
	{"/v2/repos", []string{"created_at", "updated_at", "last_committed_at"}, "created_at", "desc", 100, wantsRepository},
	{"/v1/reviews", []string{"pr_title", "pr_number", "pr_status", "pr_author", "repo_name", "open_issue_count", "updated_at"}, "updated_at", "desc", 10, exactly(reviewShape)},
	{"/v2/full-reviews", []string{"pr_title", "pr_number", "pr_status", "pr_author", "repo_name", "open_issue_count", "updated_at"}, "updated_at", "desc", 10, exactly(reviewFullShape)},
	{"/v2/webhook-deliveries", []string{"created_at"}, "created_at", "desc", 100, exactly(webhookDeliveryShape)},
	{"/v2/scans", []string{"created_at"}, "created_at", "desc", 100, exactly(scanShape)},
	{operationsPath, []string{"created_at"}, "created_at", "desc", 100, exactly(triageOperationShape)},
	{policiesPath, []string{"created_at"}, "created_at", "desc", 100, exactly(triagePolicyShape)},
	{operationFindingsPath, []string{""}, "", "", 100, exactly(triageOperationFindingShape)},
	{listedIssuesPath, []string{"created_at", "updated_at"}, "created_at", "desc", 100, exactly(reviewIssueShape)},
	{listedFullIssuesPath, []string{"created_at", "updated_at"}, "created_at", "desc", 100, exactly(reviewIssueFullShape)},
}

// anyScope stands for operations that any key may call.
const anyScope = v1alpha1.Scope("")

// policyScopes are required together to write a policy, so a key with only one of them may not.
const policyScopes = v1alpha1.Scope("policies:write and findings:triage")

// endpoint is an operation, called so that the answer has status 200 or 404.
type endpoint struct {
	method, path, body string
	scope              v1alpha1.Scope
}

// endpoints are all operations but noEndpoints.
var endpoints = []endpoint{
	{"GET", "/v1/findings", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/findings", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/full-findings", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/finding-counts", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/trends", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/finding-export", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/findings/f-none", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/findings/f-none/history", "", v1alpha1.ScopeFindingsRead},
	{"PATCH", "/v1/findings/f-none", `{"user_status":"open"}`, v1alpha1.ScopeFindingsTriage},
	{"PATCH", "/v2/findings/f-none", `{"comments":"x"}`, v1alpha1.ScopeFindingsTriage},
	{"GET", "/v2/repos/none/projects/none/findings/none", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/repos", "", v1alpha1.ScopeReposRead},
	{"GET", "/v2/repos/none/projects/none", "", v1alpha1.ScopeReposRead},
	{"GET", "/v2/repos/none", "", v1alpha1.ScopeReposRead},
	{"GET", "/v2/reviews/none/issues", "", v1alpha1.ScopeReviewsRead},
	{"GET", "/v2/reviews/none/full-issues", "", v1alpha1.ScopeReviewsRead},
	{"GET", "/v2/issues/none", "", v1alpha1.ScopeReviewsRead},
	{"PATCH", "/v2/issues/none", `{"comments":"x"}`, v1alpha1.ScopeFindingsTriage},
	{"GET", "/v2/issues/none/history", "", v1alpha1.ScopeReviewsRead},
	{"GET", "/v2/full-issues/none", "", v1alpha1.ScopeReviewsRead},
	{"GET", "/v2/reviews/none", "", v1alpha1.ScopeReviewsRead},
	{"GET", "/v2/full-reviews", "", v1alpha1.ScopeReviewsRead},
	{"GET", "/v1/reviews", "", v1alpha1.ScopeReviewsRead},
	{"GET", "/v2/scans", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/scans/none", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/uploads/none", "", v1alpha1.ScopeFindingsImport},
	{"GET", "/v2/webhook-deliveries", "", v1alpha1.ScopeWebhooksRead},
	{"GET", "/v2/webhook-deliveries/none", "", v1alpha1.ScopeWebhooksRead},
	{"GET", "/v2/triage-operations", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/triage-operations/none", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/triage-operations/none/findings", "", v1alpha1.ScopeFindingsRead},
	{"POST", "/v2/triage-operations/none/commit", "", v1alpha1.ScopeFindingsTriage},
	{"GET", "/v2/triage-policies", "", v1alpha1.ScopeFindingsRead},
	{"GET", "/v2/triage-policies/none", "", v1alpha1.ScopeFindingsRead},
	{"PATCH", "/v2/triage-policies/none", `{"mode":"apply"}`, policyScopes},
	{"POST", "/v2/webhook-deliveries/none/redeliver", "", v1alpha1.ScopeWebhooksRedeliver},
	{"GET", "/v2/api-keys", "", v1alpha1.ScopeKeysRead},
	{"GET", "/v2/whoami", "", anyScope},
	{"GET", "/v2/events?follow=false&kinds=review", "", v1alpha1.ScopeReviewsRead},
	{"POST", "/v2/webhook-deliveries/none/verify", `{"payload":"x","signature":"y"}`, v1alpha1.ScopeWebhooksVerify},
}

// noEndpoints are the ids of the operations that have tests of their own: each call creates an object, or the errors
// are those of GitHub.
var noEndpoints = []string{
	"createTriageOperation", "createTriagePolicy", "uploadScan", "uploadSarif", "getSarif", "uploadSarifV3", "getSarifV3",
}

var inBraces = regexp.MustCompile(`\{[^}]*\}`)

// isEndpoint reports whether endpoints calls the operation with that method and path of the contract.
func isEndpoint(method, path string) bool {
	form := regexp.MustCompile("^" + inBraces.ReplaceAllString(path, "[^/?]+") + `(\?.*)?$`)
	return slices.ContainsFunc(endpoints, func(e endpoint) bool { return e.method == method && form.MatchString(e.path) })
}

// allowedMethods returns the methods of every path.
func allowedMethods() map[string][]string {
	allowed := map[string][]string{}
	for _, e := range endpoints {
		allowed[e.path] = append(allowed[e.path], e.method)
		if e.method == http.MethodGet {
			allowed[e.path] = append(allowed[e.path], http.MethodHead)
		}
	}
	for _, path := range []string{operationsPath, policiesPath} {
		allowed[path] = append(allowed[path], http.MethodPost) // such requests cannot be repeated safely
	}
	return allowed
}

// forEachList runs a test for each list endpoint, under its path.
func forEachList(t *testing.T, test func(t *testing.T, l list)) {
	t.Helper()
	for _, l := range lists {
		t.Run(l.path[1:], func(t *testing.T) {
			ofOne := []string{operationFindingsPath, listedIssuesPath, listedFullIssuesPath}
			if slices.Contains(ofOne, l.path) && theDeployment.cluster == nil {
				notRun(t, "needs -kubeconfig, to make the operation or the review")
			}
			test(t, l)
		})
	}
}

func TestLists_ItemsHaveExactlyTheDocumentedMembers(t *testing.T) {
	c := anyKey(t)
	forEachList(t, func(t *testing.T, l list) {
		for _, item := range c.in(t).get(l.path).page().Items {
			l.wants(t, item)
		}
	})
}

// sorted reports whether the rows are in the order that the design defines: bytewise by the shown
// value, absent values before all others, ties by id, all in the requested direction.
func sorted(items []record, sort, order string) bool {
	compare := func(a, b record) int {
		if sort == "severity" {
			return compareSeverity(a, b)
		}
		if c := compareShown(a[sort], b[sort]); c != 0 {
			return c
		}
		return compareShown(a["id"], b["id"])
	}
	if order == "desc" {
		ascending := compare
		compare = func(a, b record) int { return ascending(b, a) }
	}
	return slices.IsSortedFunc(items, compare)
}

// compareSeverity compares two findings by severity, then by score in the shape that shows it, then by time and id.
func compareSeverity(a, b record) int {
	rank := func(of record) int {
		severity := cmp.Or(of.text("severity"), of.object("details").text("severity"))
		return slices.Index([]string{"low", "medium", "high"}, severity)
	}
	if c := cmp.Compare(rank(a), rank(b)); c != 0 || a.object("facts") == nil {
		return c
	}
	score := func(of record) float64 {
		if known, is := of.object("facts")["score"].(float64); is {
			return known
		}
		return -1
	}
	return cmp.Or(cmp.Compare(score(a), score(b)), compareShown(a["created_at"], b["created_at"]),
		compareShown(a["id"], b["id"]))
}

// compareShown compares two values of one column; null sorts before all others.
func compareShown(a, b any) int {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return cmp.Compare(a, b)
		}
		return 1
	case float64:
		b, _ := b.(float64)
		return cmp.Compare(a, b)
	default:
		if b == nil {
			return 0
		}
		return -1
	}
}
