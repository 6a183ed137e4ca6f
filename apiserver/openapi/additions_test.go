package openapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// documented lists the operations of the original contract with the query parameters that it describes. It does
// not describe those of GET /v2/findings, which are the same as for v1.
var documented = map[string][]string{
	"PATCH /v2/findings/{id}": {"finding_id", "project_id"},
	"PATCH /v1/findings/{id}": nil,
	"GET /v1/findings":        {"cursor", "order", "size", "sort"},
	"GET /v2/findings":        {"cursor", "order", "size", "sort"},
	"GET /v2/repos":           {"cursor", "order", "size", "sort"},
	"GET /v2/repos/{repo_id}/projects/{project_id}/findings/{finding_id}": nil,
	"GET /v2/repos/{id}/projects/{project_id}":                            nil,
	"GET /v2/issues/{id}":                     nil,
	"GET /v1/reviews":                         {"cursor", "custom", "end_time", "order", "size", "sort", "start_time", "status"},
	"POST /v2/webhook-deliveries/{id}/verify": nil,
}

// Additions to the contract are marked where a client looks, and nothing else is.
func TestAdditionsAreMarked(t *testing.T) {
	spec, err := openapi.Load()
	harness.Must(t, err)
	missing := maps.Clone(documented)
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			name := method + " " + path
			parameters, isDocumented := documented[name]
			delete(missing, name)
			if marked(operation.Extensions) == isDocumented {
				t.Errorf("%s: x-addition is %t, want %t: only operations of the original contract have no mark", name,
					isDocumented, !isDocumented)
			}
			if !isDocumented {
				if !strings.Contains(operation.Description, "An addition to the contract.") {
					t.Errorf("%s: the description does not say that it is an addition", name)
				}
				continue
			}
			for _, parameter := range slices.Concat(item.Parameters, operation.Parameters) {
				p := parameter.Value
				if p.In == openapi3.ParameterInPath {
					continue
				}
				if in := slices.Contains(parameters, p.Name); marked(p.Extensions) == in {
					t.Errorf("%s: %s: x-addition is %t, want %t: only parameters of the original contract have no mark", name,
						p.Name, in, !in)
				}
			}
		}
	}
	for name := range missing {
		t.Errorf("%s is in the contract and not in openapi.yaml", name)
	}
}

// The contract's text describes these, by themselves or as a part of another, and with an error nothing but its message.
var (
	documentedSchemas = []string{
		"Agent", "BusinessCriticality", "Details", "Effort", "EndpointLocation", "Error", "Exposure", "FileLocation",
		"FindingProject", "FindingProjectContext", "FindingRepo", "FindingStatus", "FindingV1", "FindingV1List",
		"FindingV1Location", "FindingV1Project", "FindingV1Update", "FindingV2", "FindingV2List", "FindingV2Update",
		"ID", "Level", "Project", "ProjectComponent", "ProjectRepo", "PullRequestStatus", "Repository",
		"RepositoryList", "RepositoryProject", "RepositoryProjectDetails", "Review", "ReviewIssue", "ReviewIssueStatus",
		"ReviewList", "ScanDetails", "ScanStatus", "Severity", "UserStatus", "ValidationEvidence", "WebhookVerification",
		"WebhookVerificationRequest", "WebhookVerificationStatus",
	}
	documentedHeaders   = []string{"RateLimitLimit", "RateLimitRemaining", "RateLimitReset", "RetryAfter"}
	documentedResponses = []string{
		"BadRequest", "InternalError", "InvalidParameter", "NotFound", "TooManyRequests", "Unauthorized",
	}
	documentedErrorMembers = []string{"error"}
)

// The parts that operations share are marked too.
func TestAdditionsAmongTheComponentsAreMarked(t *testing.T) {
	spec, err := openapi.Load()
	harness.Must(t, err)
	schema := func(ref *openapi3.SchemaRef) map[string]any { return ref.Value.Extensions }
	header := func(ref *openapi3.HeaderRef) map[string]any { return ref.Value.Extensions }
	response := func(ref *openapi3.ResponseRef) map[string]any { return ref.Value.Extensions }
	parts := spec.Components
	const lack = " without x-addition: mark those that are not in the original contract"
	harness.Same(t, "schemas"+lack, documentedSchemas, unmarked(parts.Schemas, schema))
	harness.Same(t, "headers"+lack, documentedHeaders, unmarked(parts.Headers, header))
	harness.Same(t, "responses"+lack, documentedResponses, unmarked(parts.Responses, response))
	harness.Same(t, "members of an error"+lack, documentedErrorMembers,
		unmarked(parts.Schemas["Error"].Value.Properties, schema))
}

// unmarked returns the names of the parts without the mark, sorted.
func unmarked[P any](parts map[string]P, extensions func(P) map[string]any) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name, part := range parts {
			if !marked(extensions(part)) && !yield(name) {
				return
			}
		}
	})
}

func marked(extensions map[string]any) bool {
	marked, _ := extensions["x-addition"].(bool)
	return marked
}
