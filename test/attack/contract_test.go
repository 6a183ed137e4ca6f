package attack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/test/apiclient"
)

const sarifMediaType = "application/sarif+json"

// operation is one of the contract, as somebody sees it who only has the document. So an
// operation that is new is attacked without anybody having to think of it.
type operation struct {
	id, method, path string
	// inPath and inQuery are the names of its parameters.
	inPath  []string
	inQuery []string
	// body has its members; nil where it takes none.
	body openapi3.Schemas
	// takesSARIF says that the body is a file of results.
	takesSARIF bool
}

// operations are all of the contract, in order.
func operations(t *testing.T) []operation {
	t.Helper()
	spec, err := apiclient.Contract()
	if err != nil {
		t.Fatal(err)
	}
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
				content := described.RequestBody.Value.Content
				if json := content.Get("application/json"); json != nil {
					op.body = json.Schema.Value.Properties
				}
				op.takesSARIF = content.Get(sarifMediaType) != nil
			}
			all = append(all, op)
		}
	}
	// The first two name nothing in their paths, so an attacker's request is one about the attacker's own. The third leaves
	// less room for the attempts of a delivery each time. operations_test.go and rights_test.go try them. Nor has the answer of the
	// stream of events an end: events_test.go tries it.
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

// isOfMany reports whether the operation answers about all that it finds, be that nothing, and has no resource that may
// not exist.
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

// kindOf says of what a parameter holds the id: by its name, or for a plain id by what it
// follows in the path. It is "" for what holds no id.
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

// at fills the path's parameters in; values are percent-encoded already.
func (op operation) at(values map[string]string) string {
	path := op.path
	for name, value := range values {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	return path
}

// listOf is the path of a list, below an organization's resources where it is of one.
func (op operation) listOf(t *testing.T, o *tenant) string {
	t.Helper()
	return op.at(op.idsFor(t, o.ids))
}

// idsFor chooses from ids the one of each parameter's kind.
func (op operation) idsFor(t *testing.T, ids map[string]string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range op.inPath {
		id, known := ids[op.kindOf(name)]
		if !known {
			t.Fatalf("%s: nobody knows what {%s} is the id of; say it in kindOf, and seed one", op.id, name)
		}
		out[name] = id
	}
	return out
}

// hits reports whether an answer is one to the organization's own ids. A file in base64 is none, so that nothing is
// written: that is found out once the repository is found.
func (op operation) hits(a *answer) bool {
	if op.body["sarif"] != nil {
		return a.status == http.StatusBadRequest
	}
	// An operation may not have been carried out yet.
	return a.status == http.StatusOK || op.id == "commitTriageOperation" && a.status == http.StatusAccepted
}

// content is a body that the operation takes.
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
			// Left out: an id may be there, and need not.
		case name == "generation":
			// Left out: any is meant then.
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
	body, err := json.Marshal(values)
	if err != nil {
		panic(err) // strings always encode
	}
	return string(body)
}

// shotAt aims the operation at ids.
func (op operation) shotAt(t *testing.T, ids map[string]string, m message) shot {
	t.Helper()
	return op.shotWith(op.idsFor(t, ids), m)
}

// shotWith aims the operation at the path's parameters, which are percent-encoded already.
func (op operation) shotWith(values map[string]string, m message) shot {
	s := shot{method: op.method, path: op.at(values), body: op.content(m)}
	if op.takesSARIF { // and writes nothing, so that every organization stays as it was made
		s.path += "?dry_run=true"
		s.header = http.Header{"Content-Type": {sarifMediaType}}
	}
	return s
}

// HEAD is answered wherever GET is.
func withHead(s shot) []shot {
	if s.method != http.MethodGet {
		return []shot{s}
	}
	head := s
	head.method = http.MethodHead
	return []shot{s, head}
}
