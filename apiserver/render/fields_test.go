package render_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// shape is a schema of the contract, and its place in docs/decisions/fields.md.
type shape struct {
	schema, section string
	// column holds the name of the member, or a dash.
	column int
	// yes is the column that states whether the shape has the member; 0 if all rows apply.
	yes int
	// containers are objects that are described in a sentence below the table, or in another section.
	containers []string
}

var documented = []shape{
	{schema: "FindingV1", section: "Finding", column: 0, containers: []string{"project"}},
	{schema: "FindingV2", section: "Finding", column: 1,
		containers: []string{"agent", "details", "project", "project.context", "repo", "scan_details"}},
	{schema: "FindingFull", section: "Finding, the full shape", containers: []string{"facts", "facts.package", "facts.suppression", "facts.vulnerability", "verdict"}},
	{schema: "FindingHistory", section: "Finding, its history"},
	{schema: "Transition", section: "Change, of a history"},
	{schema: "FindingCounts", section: "Findings, counted"},
	{schema: "Trends", section: "Findings, day by day", containers: []string{"days[].open", "groups[].after", "groups[].before"}},
	{schema: "Repository", section: "Repository"},
	{schema: "RepositoryProject", section: "Project", yes: 1},
	{schema: "Project", section: "Project", yes: 2},
	{schema: "Review", section: "Review"},
	{schema: "ReviewFull", section: "Review, the full shape"},
	{schema: "ReviewIssue", section: "Review issue"},
	{schema: "ReviewIssueHistory", section: "Review issue, its history"},
	{schema: "ReviewIssueFull", section: "Review issue, the full shape", containers: []string{"verdict"}},
	{schema: "Scan", section: "Scan", containers: []string{"counts", "progress"}},
	{schema: "Upload", section: "Upload"},
	{schema: "SarifStatus", section: "Upload, as GitHub shows it"},
	{schema: "TriageOperation", section: "Triage operation", containers: []string{"set"}},
	{schema: "TriageOperationFinding", section: "Triage operation, its findings"},
	{schema: "TriagePolicy", section: "Triage policy", containers: []string{"set", "failure", "compile_error"}},
	{schema: "WebhookDelivery", section: "Webhook delivery"},
	{schema: "WebhookVerification", section: "Webhook verification"},
	{schema: "WhoAmI", section: "API key"},
	{schema: "APIKey", section: "API key, of the list"},
}

// docs/decisions/fields.md has one row for each member of each shape that the contract describes, and no other
// rows.
func TestEveryMemberHasARow(t *testing.T) {
	spec := loadSpec(t)
	content := harness.RepositoryFile(t, "docs", "decisions", "fields.md")
	for _, s := range documented {
		members := membersOf(t, spec, s)
		for _, row := range rowsOf(content, s.section) {
			member := strings.Trim(row[s.column], "`")
			if s.yes > 0 && row[s.yes] == "no" || member == "-" {
				if s.yes > 0 && members[member] {
					t.Errorf("%s has the member %q, and the table says that it has not", s.schema, member)
				}
				continue
			}
			if !members[member] {
				t.Errorf("docs/decisions/fields.md, section %q: %s has no member %q, or it has two rows", s.section, s.schema, member)
			}
			delete(members, member)
		}
		for _, member := range slices.Sorted(maps.Keys(members)) {
			if !slices.Contains(s.containers, member) {
				t.Errorf("docs/decisions/fields.md: add a row for %q of %s to the section %q", member, s.schema, s.section)
			}
		}
	}
}

// Every shape that an operation may return is in the table above.
func TestEveryShapeIsDocumented(t *testing.T) {
	var names []string
	for _, s := range documented {
		names = append(names, s.schema)
	}
	for path, item := range loadSpec(t).Paths.Map() {
		for method, operation := range item.Operations() {
			ok := operation.Responses.Status(200)
			if ok == nil || ok.Value.Content.Get("application/json") == nil {
				continue
			}
			schema := ok.Value.Content.Get("application/json").Schema
			if items := schema.Value.Properties["items"]; items != nil {
				schema = items.Value.Items
			}
			if name := nameOf(schema); !slices.Contains(names, name) {
				t.Errorf("%s %s answers with %q: add its section to docs/decisions/fields.md and to documented", method, path, name)
			}
		}
	}
}

func loadSpec(t *testing.T) *openapi3.T {
	t.Helper()
	spec, err := openapi.Load()
	harness.Must(t, err)
	return spec
}

func nameOf(schema *openapi3.SchemaRef) string {
	return schema.Ref[strings.LastIndexByte(schema.Ref, '/')+1:]
}

// rowsOf returns the cells of the rows of a section's table.
func rowsOf(content, section string) [][]string {
	_, text, _ := strings.Cut(content, "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var rows [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| `") && !strings.HasPrefix(line, "| - ") {
			continue
		}
		rows = append(rows, strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | "))
	}
	return rows
}

// membersOf returns the members of a schema by their path; an array's items have the path of the array and
// "[]". Another documented shape within it counts as a member without members.
func membersOf(t *testing.T, spec *openapi3.T, of shape) map[string]bool {
	t.Helper()
	schema := spec.Components.Schemas[of.schema]
	if schema == nil {
		t.Fatalf("the contract has no schema %s", of.schema)
	}
	members := map[string]bool{}
	collect(schema, of.section, "", members)
	return members
}

// sectionOf returns the section that documents a schema, if any.
func sectionOf(schema *openapi3.SchemaRef) string {
	i := slices.IndexFunc(documented, func(s shape) bool { return s.schema == nameOf(schema) })
	if i < 0 {
		return ""
	}
	return documented[i].section
}

func collect(schema *openapi3.SchemaRef, section, path string, into map[string]bool) {
	if path != "" && sectionOf(schema) != "" {
		return
	}
	for _, part := range slices.Concat(schema.Value.AllOf, schema.Value.AnyOf, schema.Value.OneOf) {
		if of := sectionOf(part); of == "" || of == section { // else its members have rows in another section
			collect(part, section, path, into)
		}
	}
	if schema.Value.Items != nil {
		collect(schema.Value.Items, section, path+"[]", into)
	}
	for name, member := range schema.Value.Properties {
		if path != "" {
			name = path + "." + name
		}
		into[name] = true
		collect(member, section, name, into)
	}
}
