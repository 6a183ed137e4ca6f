package attack

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// operation is an operation of the contract as a reader of the document sees it. A new operation is
// therefore attacked automatically.
type operation struct {
	id, method, path string
	// inPath and inQuery are the names of its parameters.
	inPath  []string
	inQuery []string
	// body has the members of its body; nil if it takes none.
	body openapi3.Schemas
	// bodyIsOptional is set if it also takes no body, and an empty object.
	bodyIsOptional bool
	// takesSARIF is set if the body is a SARIF file.
	takesSARIF bool
}

// operations returns all operations of the contract, in order.
func operations(t *testing.T) []operation {
	t.Helper()
	spec, err := openapi.Load()
	harness.Must(t, err)
	var all []operation
	for path, item := range spec.Paths.Map() {
		for method, described := range item.Operations() {
			op := operation{id: described.OperationID, method: method, path: path}
			for _, parameter := range slices.Concat(item.Parameters, described.Parameters) {
				switch parameter.Value.In {
				case openapi3.ParameterInPath:
					op.inPath = append(op.inPath, parameter.Value.Name)
				case openapi3.ParameterInQuery:
					op.inQuery = append(op.inQuery, parameter.Value.Name)
				}
			}
			if described.RequestBody != nil {
				op.bodyIsOptional = !described.RequestBody.Value.Required
				content := described.RequestBody.Value.Content
				if json := content.Get("application/json"); json != nil {
					op.body = json.Schema.Value.Properties
				}
				op.takesSARIF = content.Get(sarifType) != nil
			}
			all = append(all, op)
		}
	}
	// The first two have no ids in their paths, so an attacker's request concerns the attacker's own organization.
	// The third leaves less room for the attempts of a delivery each time. operations_test.go and rights_test.go test
	// them. The stream of events never ends: events_test.go tests it.
	all = slices.DeleteFunc(all, func(op operation) bool {
		return slices.Contains([]string{"createTriageOperation", "createTriagePolicy", "redeliverWebhookDelivery", "streamEvents"}, op.id)
	})
	if len(all) < 10 {
		t.Fatalf("the contract describes only %d operations", len(all))
	}
	slices.SortFunc(all, func(a, b operation) int { return cmp.Compare(a.id, b.id) })
	return all
}

// isList reports whether the operation answers with a page.
func (op operation) isList() bool { return slices.Contains(op.inQuery, "cursor") }

// isOfMany reports whether the operation answers with all that it finds, possibly nothing, and has no resource that may
// be missing.
func (op operation) isOfMany() bool {
	return op.isList() || op.method == http.MethodGet && len(op.inPath) == 0
}

// isOfNothing reports whether an operation of many has found nothing.
func (op operation) isOfNothing(t *testing.T, a *answer) bool {
	t.Helper()
	if op.id == "exportFindings" {
		return a.status == http.StatusOK && bytes.Count(a.body, []byte("\n")) == 1 // the header
	}
	return a.page(t).Total == 0
}

// kindOf returns the kind of object whose id the parameter holds: by its name, or for a plain id by
// the preceding segment of the path. It returns "" for a parameter that is not an id.
func (op operation) kindOf(parameter string) string {
	switch parameter {
	case "repo_id":
		return "repository"
	case "project_id":
		return "project"
	case "finding_id":
		return "finding"
	case "upload_id", "sarif_id":
		return "upload"
	case "owner", "repo": // the parts of a repository's full name
		return parameter
	case "endpoint_id", "subject_id": // the subject of a ping is its endpoint
		return "endpoint"
	case "id":
	default:
		return ""
	}
	before, _, _ := strings.Cut(op.path, "/{id}")
	switch last := before[strings.LastIndexByte(before, '/')+1:]; last {
	case "repos":
		return "repository"
	case "full-issues":
		return "issue"
	case "webhook-deliveries":
		return "delivery"
	case "triage-policies":
		return "policy"
	default:
		return strings.TrimSuffix(last, "s")
	}
}

// at fills in the path's parameters; values must be percent-encoded.
func (op operation) at(values map[string]string) string {
	path := op.path
	for name, value := range values {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	return path
}

// listOf returns the path of a list, below the organization's resources if the list belongs to one.
func (op operation) listOf(t *testing.T, o *tenant) string {
	t.Helper()
	return op.at(op.idsFor(t, o.ids))
}

// idsFor selects from ids the id for each parameter.
func (op operation) idsFor(t *testing.T, ids map[string]string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range op.inPath {
		id, known := ids[op.kindOf(name)]
		if !known {
			t.Fatalf("%s: add the kind that {%s} is the id of to kindOf, and seed one", op.id, name)
		}
		out[name] = id
	}
	return out
}

// hits reports whether an answer is that for the organization's own ids. For an upload, whose file here is not
// base64 so that nothing is written, that is 400: the file is only checked once the repository is found.
func (op operation) hits(a *answer) bool {
	if op.body["sarif"] != nil {
		return a.status == http.StatusBadRequest
	}
	// The operation may still be running.
	return a.status == http.StatusOK || op.id == "commitTriageOperation" && a.status == http.StatusAccepted
}

// content returns a body that the operation accepts.
func (op operation) content(m message) string {
	if op.takesSARIF {
		return `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[]}]}`
	}
	if op.body == nil {
		return ""
	}
	values := map[string]string{}
	for name, member := range op.body {
		switch {
		case op.kindOf(name) != "":
			// Omitted: an id is optional.
		case name == "generation", name == "uid":
			// Omitted: without them, any policy or operation of that name is accepted.
		case len(member.Value.Enum) > 0:
			values[name] = fmt.Sprint(member.Value.Enum[len(member.Value.Enum)-1])
		case name == "payload":
			values[name] = m.payload
		case name == "signature":
			values[name] = m.signature
		case name == "expires_at":
			values[name] = "none"
		default:
			values[name] = "x"
		}
	}
	return text(values)
}

// shotAt aims the operation at ids.
func (op operation) shotAt(t *testing.T, ids map[string]string, m message) shot {
	t.Helper()
	return op.shotWith(op.idsFor(t, ids), m)
}

// shotWith aims the operation at the path's parameters, which must be percent-encoded.
func (op operation) shotWith(values map[string]string, m message) shot {
	s := shot{method: op.method, path: op.at(values), body: op.content(m)}
	if op.takesSARIF { // writes nothing, so that every organization stays unchanged
		s.path += "?dry_run=true"
		s.header = http.Header{"Content-Type": {sarifType}}
	}
	return s
}

// withHead adds the shot's HEAD form, because HEAD is answered wherever GET is.
func withHead(s shot) []shot {
	if s.method != http.MethodGet {
		return []shot{s}
	}
	head := s
	head.method = http.MethodHead
	return []shot{s, head}
}
