package openapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The document is valid OpenAPI, and its examples match their schemas.
func TestTheContractIsValid(t *testing.T) {
	spec, _ := operations(t)
	harness.NoError(t, "openapi.yaml is not valid OpenAPI", spec.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()))
	harness.Same(t, "info.version", "2.0.0", spec.Info.Version)
}

func TestTheContractAsJSONIsTheSameDocument(t *testing.T) {
	content, err := openapi.JSON()
	harness.Must(t, err)
	if !json.Valid(content) {
		t.Fatal("not JSON")
	}
	got, err := openapi3.NewLoader().LoadFromData(content)
	harness.Must(t, err)
	want, err := openapi3.NewLoader().LoadFromFile("openapi.yaml") // by another reader of YAML
	harness.Must(t, err)
	if got, want := encoded(t, got), encoded(t, want); got != want || len(got) < 100_000 {
		t.Errorf("the JSON is another document than openapi.yaml: %d and %d bytes", len(got), len(want))
	}
}

func encoded(t *testing.T, spec *openapi3.T) string {
	t.Helper()
	return string(harness.JSON(t, spec))
}

// Every member of a response is documented as always present.
func TestEveryMemberOfAResponseIsRequired(t *testing.T) {
	spec, _ := operations(t)
	requests := map[string]bool{"FindingV1Update": true, "FindingV2Update": true, "WebhookVerificationRequest": true,
		"ReviewIssueUpdate": true, "SarifUpload": true, "TriageOperationRequest": true, "TriageOperationFilters": true, "GivenTriage": true,
		"TriageOperationCommit": true, "TriagePolicyRequest": true, "TriagePolicyChange": true, "GivenPolicyDecision": true}
	for name, ref := range spec.Components.Schemas {
		if requests[name] {
			continue
		}
		required := map[string]bool{}
		for _, member := range ref.Value.Required {
			required[member] = true
			if ref.Value.Properties[member] == nil {
				t.Errorf("%s requires %s and does not describe it", name, member)
			}
		}
		for member := range ref.Value.Properties {
			if !required[member] {
				t.Errorf("%s.%s is not required", name, member)
			}
		}
	}
}

// Whatever an operation can be filtered by, lists, counts and exports can be too.
func TestTheFiltersOfAnOperationAreThoseOfListsCountsAndExports(t *testing.T) {
	spec, _ := operations(t)
	for _, path := range []string{"/v2/findings", "/v2/finding-counts", "/v2/finding-export"} {
		parameters := spec.Paths.Find(path).Get.Parameters
		for name, filter := range spec.Components.Schemas["TriageOperationFilters"].Value.Properties {
			parameter := parameters.GetByInAndName("query", name)
			if parameter == nil {
				t.Errorf("GET %s has no filter %s: add it to its parameters", path, name)
				continue
			}
			harness.Same(t, path+": maxLength of "+name, parameter.Schema.Value.MaxLength, filter.Value.MaxLength)
		}
	}
}

// A client that checks enumerations would take an answer with a new value for a broken one.
func TestWhatMayGetMoreValuesIsNoEnumeration(t *testing.T) {
	spec, _ := operations(t)
	for name, ref := range spec.Components.Schemas {
		for member, schema := range ref.Value.Properties {
			if strings.Contains(schema.Value.Description, "More may be added") && schema.Value.Enum != nil {
				t.Errorf("%s.%s may get more values and is an enumeration", name, member)
			}
		}
	}
}

// Only an operation that takes `if-match` answers that it does not match.
func TestAConditionThatFailsIsOneThatTheOperationTakes(t *testing.T) {
	spec, _ := operations(t)
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			takes := operation.Parameters.GetByInAndName(openapi3.ParameterInHeader, openapi.HeaderIfMatch) != nil
			failed := operation.Responses.Status(http.StatusPreconditionFailed)
			harness.Same(t, method+" "+path+" answers that if-match does not match", takes, failed != nil && strings.HasSuffix(failed.Ref, "/PreconditionFailed"))
		}
	}
}

// Who reads an operation's description learns that it refuses what the others ignore.
func TestAnOperationThatRefusesUnknownParametersSaysSo(t *testing.T) {
	spec, _ := operations(t)
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			refuses, _ := operation.Extensions["x-strict-query"].(bool)
			description := strings.Join(strings.Fields(operation.Description), " ")
			if refuses && !strings.HasSuffix(path, "/sarifs") &&
				!slices.ContainsFunc(operation.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.In == "query" }) {
				t.Errorf("%s %s has no query parameters: write what unknownParameter advises about those of another operation", method, path)
			}
			harness.Same(t, method+" "+path+" says what it refuses", refuses, strings.Contains(description, "Unknown parameters are refused"))
		}
	}
}

// What a client needs in order to go on is in a header, and a generated client has only those that are described.
func TestEveryErrorDescribesTheHeaderThatHelps(t *testing.T) {
	spec, _ := operations(t)
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, header := range map[int]string{401: "www-authenticate", 429: "retry-after", 500: "retry-after", 503: "retry-after"} {
				if listed := operation.Responses.Status(status); listed != nil && listed.Value.Headers[header] == nil {
					t.Errorf("%s %s: %d does not describe the header %s", method, path, status, header)
				}
			}
		}
	}
}

// Every operation lists the errors that any operation may return.
func TestEveryOperationListsTheSameErrors(t *testing.T) {
	spec, _ := operations(t)
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			success := func(status int) bool { return operation.Responses.Status(status) != nil }
			if !slices.ContainsFunc([]int{200, 201, 202}, success) {
				t.Errorf("%s %s does not list a success", method, path)
			}
			for _, status := range []int{400, 401, 403, 404, 429, 500} {
				if operation.Responses.Status(status) == nil {
					t.Errorf("%s %s does not list %d", method, path, status)
				}
			}
		}
	}
}
