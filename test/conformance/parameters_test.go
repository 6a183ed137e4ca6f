package conformance

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// forEachOperation runs a test for each operation in the contract, including new ones.
func forEachOperation(t *testing.T, test func(t *testing.T, path string, operation *openapi3.Operation)) {
	t.Helper()
	spec, err := openapi.Load()
	harness.Must(t, err)
	for path, item := range spec.Paths.Map() {
		for _, operation := range item.Operations() {
			t.Run(operation.OperationID, func(t *testing.T) { test(t, path, operation) })
		}
	}
}

// parametersIn returns the names of an operation's parameters in that place.
func parametersIn(place string, operation *openapi3.Operation) (names []string) {
	for _, parameter := range operation.Parameters {
		if parameter.Value.In == place {
			names = append(names, parameter.Value.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Every query parameter of every operation, including future ones, except those that an upload refuses.
func TestParameters_AnEmptyQueryParameterIsAsIfItWereNotGiven(t *testing.T) {
	rows, o := sampleOrganization(t), newOrganization(t)
	o.finding(builder.Finding("f-1"))
	operation := rows.operate(`{"filters":{"severity":"high"},"set":{"comments":"c"}}`, "preview").text("id")
	forEachOperation(t, func(t *testing.T, path string, described *openapi3.Operation) {
		names := parametersIn(openapi3.ParameterInQuery, described)
		path = strings.Replace(path, "/v2/reviews/{id}/", "/v2/reviews/rv-open/", 1)
		path = strings.Replace(path, operationsPath+"/{id}/", operationsPath+"/"+operation+"/", 1)
		if path == "/v2/repos/{id}/projects/{project_id}/scans" { // all at once, because each upload is imported
			names = slices.DeleteFunc(names, func(name string) bool {
				return described.Parameters.GetByInAndName(openapi3.ParameterInQuery, name).Extensions["x-empty-is-refused"] == true
			})
			for _, end := range []string{"=", ""} {
				o.in(t).upload(projectPath("repo", "proj")+"/scans?"+strings.Join(names, end+"&")+end, sarifOf("one", "alpha")).wants(200, "all of them empty")
			}
			return
		}
		without := sync.OnceValue(func() answer { return rows.in(t).get(path) })
		for _, name := range names {
			for _, query := range []string{name + "=", name} {
				if slices.Contains(names, "cursor") {
					harness.Same(t, "with ?"+query, without().page(), rows.in(t).get(with(path, query)).page())
					continue
				}
				switch path {
				case "/v2/finding-counts", "/v2/trends":
					harness.Same(t, "with ?"+query, without().object(), rows.in(t).get(with(path, query)).object())
					continue
				case "/v2/finding-export":
					if want, got := without().Body, rows.in(t).get(with(path, query)).Body; !bytes.Equal(want, got) {
						t.Errorf("without ?%s:\n%s\nwith it:\n%s", query, want, got)
					}
					continue
				case "/v2/events": // the answer to a GET does not end
					o.in(t).do("HEAD", with(path, query), "").wants(200, query)
					continue
				case "/v2/findings/{id}":
				default:
					t.Fatalf("%s has a query: add here how to call it", path)
				}
				o.in(t).patch(with("/v2/findings/f-1", query), `{"comments":"x"}`).wants(200, query)
			}
		}
	})
}

func TestParameters_AnEmptyValueBesideAnotherIsNoSecondOne(t *testing.T) {
	o := sampleOrganization(t)
	forEachList(t, func(t *testing.T, l list) {
		harness.Same(t, "rows", 1, len(o.in(t).get(with(l.path, "size=&size=1&size=")).page().Items))
	})
}

func TestParameters_AnEmptyConditionIsAsIfItWereNotGiven(t *testing.T) {
	o := newOrganization(t)
	finding := o.finding(builder.Finding("f-1"))
	for _, path := range []string{"/v1/findings/f-1", "/v2/findings/f-1"} {
		o.patch(path, `{"user_status":"muted"}`, apiclient.Header("If-Match", "")).wants(200, "an empty If-Match")
	}
	o.get(pathOf(finding), apiclient.Header("If-None-Match", "")).wants(200, "an empty If-None-Match")
}

func TestParameters_AnInvalidIDInThePathIsNotBlamedOnABody(t *testing.T) {
	c := anyKey(t)
	forEachOperation(t, func(t *testing.T, path string, operation *openapi3.Operation) {
		for _, name := range parametersIn(openapi3.ParameterInPath, operation) {
			if operation.RequestBody != nil || strings.HasSuffix(path, "/redeliver") { // a POST without a body
				continue
			}
			a := c.in(t).get(filled(path, operation, name, "a%00")).badQuery(name + " with a control character")
			harness.Same(t, "the detail", name+" in the path must hold no control characters", a.object().text("detail"))
		}
	})
}

// filled fills in a path with one encoded parameter, and some id for each of the others.
func filled(template string, operation *openapi3.Operation, name, value string) string {
	path := template
	for _, other := range parametersIn(openapi3.ParameterInPath, operation) {
		id := "none"
		if other == name {
			id = value
		}
		path = strings.ReplaceAll(path, "{"+other+"}", id)
	}
	return path
}
