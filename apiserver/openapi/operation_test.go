package openapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func operations(t testing.TB) (*openapi3.T, map[string]*openapi.Operation) {
	t.Helper()
	spec, err := openapi.Load()
	harness.Must(t, err)
	all, err := openapi.Operations(spec)
	harness.Must(t, err)
	return spec, all
}

func TestWhichQueriesAreTaken(t *testing.T) {
	_, all := operations(t)
	long := strings.Repeat("a", openapi.MaxIDBytes)
	for _, test := range []struct {
		reason, query string
		refused       bool
	}{
		{"nothing need be given", "", false},
		{"every parameter may be given", "cursor=x&sort=updated_at&order=asc&size=1000&status=open_muted&user_status=active&severity=low&repo_id=r&project_id=p&class=CWE-22", false},
		{"unknown names are ignored", "page=7&Size=0&filter%5Ba%5D=b", false},
		{"an unknown name may come twice", "page=1&page=2", false},
		{"an empty value is none, so another may follow it", "size=&size=7&size", false},
		{"the smallest size is 1", "size=1", false},
		{"an id may be 253 bytes", "repo_id=" + long, false},
		{"an id that cannot exist is simply not there", "repo_id=..%2F..%2F", false},
		{"size 0 is out of range", "size=0", true},
		{"size 1001 is out of range", "size=1001", true},
		{"a negative size is out of range", "size=-1", true},
		{"a word is no integer", "size=ten", true},
		{"a fraction is no integer", "size=1.0", true},
		{"an exponent is no integer", "size=1e2", true},
		{"a plus sign is no integer", "size=%2B5", true},
		{"a leading zero is no integer", "size=007", true},
		{"digits of other scripts are no integer", "size=%D9%A3", true},
		{"a number past 64 bits is out of range", "size=99999999999999999999", true},
		{"an unknown sort is refused", "sort=title", true},
		{"values are compared with their case", "order=DESC", true},
		{"an unknown status is refused", "status=muted", true},
		{"an unknown user status is refused", "user_status=closed", true},
		{"an unknown severity is refused", "severity=critical", true},
		{"a parameter must not come twice", "size=1&size=1", true},
		{"a filter must not come twice", "status=open&status=closed", true},
		{"an id may not be 254 bytes", "repo_id=" + long + "a", true},
		{"an id holds no control characters", "project_id=a%00", true},
		{"an id holds no C1 control characters", "project_id=a%C2%85", true},
		{"an id is UTF-8", "repo_id=%ff", true},
		{"a class is UTF-8", "class=%ff", true},
		{"a class is bounded", "class=" + strings.Repeat("a", 257), true},
		{"a cursor is bounded", "cursor=" + strings.Repeat("a", 4097), true},
		{"percent signs must encode something", "size=%zz", true},
		{"semicolons join nothing", "size=1;order=asc", true},
		{"an unknown name may have any value", "foo=%zz&a;b=c&%=%&=&&", false},
		{"a known name is known however it is written", "%73ize=0", true},
		{"it is the same name however it is written", "%73ize=1&size=1", true},
		{"a name without a value has an empty one", "order", false},
	} {
		for _, id := range []string{"listFindingsV1", "listFindingsV2"} {
			_, err := all[id].ParseQuery(test.query)
			if refused := err != nil; refused != test.refused {
				t.Errorf("%s: %s ?%.80s: error %v", test.reason, id, test.query, err)
			}
		}
	}
}

func TestAStrictOperationRefusesParametersThatItDoesNotHave(t *testing.T) {
	_, all := operations(t)
	upload := all["uploadScan"]
	for query, want := range map[string]string{
		"dryrun=true":              `there is no parameter "dryrun": the parameters are analysis, `,
		"tool=gosec&=true":         `there is no parameter ""`,
		"tool=gosec&dry_run%=true": `there is no parameter "dry_run%"`,
		"tool=gosec&Force=true":    `there is no parameter "Force"`,
		"dry_run=true&tool=gosec":  "", "": "", "&&": "",
	} {
		_, err := upload.ParseQuery(query)
		harness.ErrorContains(t, "?"+query, err, want)
	}
}

func TestAQueryHasTheContractsDefaults(t *testing.T) {
	_, all := operations(t)
	for _, id := range []string{"listFindingsV1", "listFindingsV2"} {
		query, err := all[id].ParseQuery("")
		harness.Must(t, err)
		harness.Same(t, id+": defaults", []any{"created_at", "desc", 100}, []any{query.Get("sort"), query.Get("order"), query.Int("size")})
		if _, there := query.Lookup("status"); there {
			t.Errorf("%s: a filter that was not given is there", id)
		}
	}
}

// Covers every parameter in the contract that does not refuse it, and every optional id of a body, including future
// ones.
func TestAnEmptyValueIsAsIfItWereNotGiven(t *testing.T) {
	spec, all := operations(t)
	parameters, ids := 0, 0
	for path, item := range spec.Paths.Map() {
		for method, described := range item.Operations() {
			operation := all[described.OperationID]
			for _, name := range queryOf(item, described) {
				if refusesEmpty(described, name) {
					continue
				}
				parameters++
				for _, empty := range []string{name + "=", name, name + "=&" + name + "="} {
					harness.Same(t, fmt.Sprintf("%s %s?%s is read as without it", method, path, empty),
						shown(t, operation, "", queryOf(item, described)), shown(t, operation, empty, queryOf(item, described)))
				}
			}
			if described.RequestBody == nil || operation.IsStream() {
				continue
			}
			schema := described.RequestBody.Value.Content.Get("application/json").Schema.Value
			for name, member := range schema.Properties {
				if member.Value.Format != "resource-id" || slices.Contains(schema.Required, name) {
					continue
				}
				ids++
				others := `{"user_status":"open","`
				if described.OperationID == "createTriageOperation" {
					others = `{"commit":true,"`
				}
				body, err := operation.ParseBody([]byte(others + name + `":""}`))
				if _, given := body.Lookup(name); err != nil || given {
					t.Errorf("%s %s: the empty %s is there: %t, error %v", method, path, name, given, err)
				}
			}
		}
	}
	if parameters < 30 || ids < 2 {
		t.Errorf("only %d parameters and %d ids were found", parameters, ids)
	}
}

func refusesEmpty(described *openapi3.Operation, name string) bool {
	parameter := described.Parameters.GetByInAndName(openapi3.ParameterInQuery, name)
	return parameter != nil && parameter.Extensions["x-empty-is-refused"] == true
}

// With an unset variable, the results of a pull request would be imported as those of the scan branch.
func TestAnUploadRefusesAnEmptyValueThatChangesWhatItWrites(t *testing.T) {
	_, all := operations(t)
	const alone, both = ": give a value, or leave the parameter out", " is not given: give one of the two; without both, " +
		"the results count as those of the scan branch"
	for name, reason := range map[string]string{
		"ref": ", and pull_request" + both, "pull_request": ", and ref" + both, "fail_on": alone, "dry_run": alone,
	} {
		for _, empty := range []string{name + "=", name, "tool=&" + name + "=&commit=8f3e1c2d"} {
			_, err := all["uploadScan"].ParseQuery(empty)
			if want := name + " is empty" + reason; err == nil || err.Error() != want {
				t.Errorf("?%s: error %v, want %q", empty, err, want)
			}
		}
	}
	if _, err := all["uploadScan"].ParseQuery("ref=&pull_request="); err == nil {
		t.Error("neither ref nor pull_request has a value")
	}
	for _, either := range []string{"ref=main&pull_request=", "pull_request=&ref=main", "ref=&pull_request=5", "pull_request=5&ref="} {
		if _, err := all["uploadScan"].ParseQuery(either); err != nil {
			t.Errorf("?%s: %v", either, err)
		}
	}
}

// queryOf returns the names of an operation's query parameters.
func queryOf(item *openapi3.PathItem, described *openapi3.Operation) (names []string) {
	for _, parameter := range slices.Concat(item.Parameters, described.Parameters) {
		if parameter.Value.In == openapi3.ParameterInQuery {
			names = append(names, parameter.Value.Name)
		}
	}
	return names
}

// shown returns how a query is parsed.
func shown(t *testing.T, operation *openapi.Operation, raw string, names []string) string {
	t.Helper()
	query, err := operation.ParseQuery(raw)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, name := range names {
		if value, given := query.Lookup(name); given {
			fmt.Fprintf(&out, "%s=%q ", name, value)
		}
	}
	return out.String()
}

func TestTimesOfAQueryHaveTheGrammarOfResources(t *testing.T) {
	_, all := operations(t)
	const asInstant = "2026-03-01T08:30:00Z"
	for text, want := range map[string]string{
		"2026-03-01T08:30:00Z": asInstant, "2026-03-01t08:30:00z": asInstant, "2026-03-01T08:30:00.000Z": asInstant,
		"2026-03-01T10:30:00+02:00": asInstant, "2026-03-01T08:30:00-00:00": asInstant, "2026-02-28T08:31:00-23:59": asInstant,
		"2026-03-02T08:29:00+23:59": asInstant, "2026-03-01T08:30:00.50z": "2026-03-01T08:30:00.5Z", "2024-02-29T00:00:00Z": "2024-02-29T00:00:00Z",
		"0001-01-01T00:00:00Z": "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9Z": "9999-12-31T23:59:59.9Z",
	} {
		query, err := all["listReviews"].ParseQuery("start_time=" + url.QueryEscape(text))
		if got := query.Get("start_time"); got != want || err != nil {
			t.Errorf("%s is read as %q, %v; want %s", text, got, err, want)
			continue
		}
		if at := query.Time("start_time"); at == nil || at.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%s is the instant %v", text, at)
		}
	}
	const other, leap = "start_time must be a date-time of RFC 3339", "start_time must have seconds from 00 to 59"
	for text, want := range map[string]string{
		"2026-03-01T0:00:00Z": other, "2026-03-01T00:00:00,5Z": other, "2026-03-01T00:00:00+24:00": other, "2026-03-01T00:00:00+23:60": other,
		"2026-03-01T24:00:00Z": other, "2026-03-01T00:60:00Z": other, "2026-03-01T00:00:61Z": other, "2026-02-29T00:00:00Z": other,
		"2026-03-01 00:00:00Z": other, "2026-03-01T00:00:00": other, "2026-03-01T00:00:00.Z": other, "2026-03-01T00:00Z": other, "2026-03-01": other,
		"0000-12-31T00:00:00Z": other, "0001-01-01T00:00:00+00:01": other, "9999-12-31T23:59:59-00:01": other, "12026-03-01T00:00:00Z": other,
		"2026-03-01T00:00:00+02": other, "2026-03-01T00:00:00Z ": other, "2026-03-01T00:00:00." + strings.Repeat("0", 64) + "Z": other,
		"\u0662026-03-01T00:00:00Z": other, "2026-03-01T00:00:00 02:00": other, "2026-02-29T00:00:60Z": other, "2026-03-01T00:00:60": other,
		"2016-12-31T23:59:60Z": leap, "2017-01-01t00:59:60.5+01:00": leap,
	} {
		if _, err := all["listReviews"].ParseQuery("start_time=" + url.QueryEscape(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}

func TestWhichIDsOfAPathAreTaken(t *testing.T) {
	_, all := operations(t)
	for _, test := range []struct {
		reason, segment, want string
		refused               bool
	}{
		{"a name is a name", "f-1", "f-1", false},
		{"an encoded slash is part of the id", "a%2Fb", "a/b", false},
		{"a plus sign is no space", "a+b", "a+b", false},
		{"253 bytes are an id", strings.Repeat("a", 253), strings.Repeat("a", 253), false},
		{"254 bytes are none", strings.Repeat("a", 254), "", true},
		{"bytes are counted, not characters", strings.Repeat("%C3%A9", 127), "", true},
		{"a line break is a control character", "a%0Ab", "", true},
		{"DEL is a control character", "a%7F", "", true},
		{"bytes must be UTF-8", "a%FF", "", true},
	} {
		got, err := all["updateFindingV1"].ParsePath(map[string]string{"id": test.segment})
		if (err != nil) != test.refused || got.Get("id") != test.want {
			t.Errorf("%s: %.80s gave %q, error %v", test.reason, test.segment, got.Get("id"), err)
		}
	}
}

func TestWhichBodiesAreTaken(t *testing.T) {
	_, all := operations(t)
	for _, test := range []struct {
		reason, id, body string
		refused          bool
	}{
		{"v1 needs the user status", "updateFindingV1", `{"user_status":"muted"}`, false},
		{"v1 ignores other members", "updateFindingV1", `{"user_status":"open","comments":7,"x":null}`, false},
		{"v1 takes no other member for it", "updateFindingV1", `{"comments":"x"}`, true},
		{"names are compared with their case", "updateFindingV1", `{"User_Status":"open"}`, true},
		{"an empty object changes nothing", "updateFindingV1", `{}`, true},
		{"null is no status", "updateFindingV1", `{"user_status":null}`, true},
		{"closed is no user status", "updateFindingV1", `{"user_status":"closed"}`, true},
		{"values are compared with their case", "updateFindingV1", `{"user_status":"Open"}`, true},
		{"v2 takes the status alone", "updateFindingV2", `{"user_status":"active"}`, false},
		{"v2 takes comments alone", "updateFindingV2", `{"comments":""}`, false},
		{"v2 takes all members", "updateFindingV2", `{"user_status":"open","comments":"a","repo_id":"r","project_id":"p"}`, false},
		{"v2 needs one of the two", "updateFindingV2", `{"repo_id":"r","project_id":"p"}`, true},
		{"v2 has no use for an empty object", "updateFindingV2", `{}`, true},
		{"comments are a string", "updateFindingV2", `{"comments":1}`, true},
		{"null clears no comments", "updateFindingV2", `{"comments":null}`, true},
		{"an id is a string", "updateFindingV2", `{"comments":"a","repo_id":1}`, true},
		{"null is no id", "updateFindingV2", `{"comments":"a","project_id":null}`, true},
		{"an id holds no control characters", "updateFindingV2", `{"comments":"a","project_id":"\u0000"}`, true},
		{"10,000 characters are allowed", "updateFindingV2", `{"comments":"` + strings.Repeat("é", 10_000) + `"}`, false},
		{"characters are code points", "updateFindingV2", `{"comments":"` + strings.Repeat(`\ud83d\ude00`, 10_000) + `"}`, false},
		{"an empty id is none", "updateFindingV2", `{"comments":"a","repo_id":"","project_id":""}`, false},
		{"an empty id changes nothing", "updateFindingV2", `{"repo_id":""}`, true},
		{"an empty user status is no status", "updateFindingV2", `{"comments":"a","user_status":""}`, true},
		{"10,001 characters are not", "updateFindingV2", `{"comments":"` + strings.Repeat("a", 10_001) + `"}`, true},
		{"a second value is refused", "updateFindingV2", `{"comments":"a"}{}`, true},
		{"a name must not come twice", "updateFindingV2", `{"comments":"a","comments":"a"}`, true},
	} {
		_, err := all[test.id].ParseBody([]byte(test.body))
		if refused := err != nil; refused != test.refused {
			t.Errorf("%s: %s %.80s: error %v", test.reason, test.id, test.body, err)
		}
	}
}

// The table accepts and rejects the same bodies as a general validator that reads the document itself.
func TestBodiesAreTakenAsTheContractDescribesThem(t *testing.T) {
	spec, all := operations(t)
	value := rapid.OneOf(
		rapid.Just[any]("open"), rapid.Just[any]("muted"), rapid.Just[any]("closed"), rapid.Just[any](""),
		rapid.Just[any](nil), rapid.Just[any](1), rapid.Just[any](true), rapid.Just[any]([]any{}), rapid.Just[any](map[string]any{}),
		rapid.Just[any](strings.Repeat("a", 10_000)), rapid.Just[any](strings.Repeat("a", 10_001)),
	)
	name := rapid.SampledFrom([]string{"user_status", "comments", "repo_id", "project_id", "unknown"})
	for id, schema := range map[string]string{"updateFindingV1": "FindingV1Update", "updateFindingV2": "FindingV2Update"} {
		validator := spec.Components.Schemas[schema].Value
		rapid.Check(t, func(t *rapid.T) {
			given := rapid.MapOfN(name, value, 1, 5).Draw(t, "body")
			content := harness.JSON(t, given)
			plain := harness.Decoded[any](t, content)
			_, got := all[id].ParseBody(content)
			want := validator.VisitJSON(plain, openapi3.EnableJSONSchema2020())
			if (got == nil) != (want == nil) {
				t.Errorf("%s: %.100s: the table says %v, the contract %v", id, content, got, want)
			}
		})
	}
}

// Members may come in any order, and GitHub has members that this service does not know.
func TestTheBodyOfAnUploadIsReadAsGitHubReadsIt(t *testing.T) {
	_, all := operations(t)
	file := strings.Repeat("\xfb\xff\xfe SARIF", 10) // in base64 it has slashes and plus signs
	packed := base64.StdEncoding.EncodeToString([]byte(file))
	with := func(more string) string {
		return `{"commit_sha":"abc","ref":"refs/heads/main","sarif":"` + packed + `"` + more + `}`
	}
	sarif := func(value string) string { return `{"commit_sha":"abc","ref":"refs/heads/main","sarif":` + value + `}` }
	const notOne = "not exactly one JSON object"
	for name, tc := range map[string]struct{ body, want string }{
		"the file first":         {`{"sarif":"` + packed + `","ref":"refs/heads/main","commit_sha":"abc"}`, ""},
		"the file last":          {with(""), ""},
		"all members":            {with(`,"checkout_uri":"file:///src/","tool_name":"x","started_at":"2026-03-01T08:30:00Z","validate":true`), ""},
		"members unknown":        {with(`,"tool_names":["a",{"b":null}],"workflow_run_id":7`), ""},
		"members null":           {with(`,"checkout_uri":null,"started_at":null,"validate":null`), ""},
		"white space":            {" {\n\"sarif\" :\t\"" + packed + "\" , \"ref\": \"refs/heads/main\",\"commit_sha\":\"abc\" }\n", ""},
		"escaped":                {sarif(`"` + strings.NewReplacer("/", `\/`, "+", `\u002b`, "=", `\u003D`).Replace(packed) + `"`), ""},
		"in lines":               {sarif(`"` + packed[:40] + `\n` + packed[40:] + `\r\n"`), ""},
		"nothing":                {"", notOne},
		"no object":              {`[]`, notOne},
		"something behind":       {with("") + "{}", notOne},
		"no file":                {`{"commit_sha":"abc","ref":"refs/heads/main"}`, "sarif is required"},
		"no ref":                 {`{"commit_sha":"abc","sarif":"` + packed + `"}`, "ref is required"},
		"no commit":              {`{"sarif":"` + packed + `","ref":"x"}`, "commit_sha is required"},
		"the file twice":         {with(`,"sarif":""`), "given twice"},
		"an empty ref":           {strings.Replace(with(""), `"refs/heads/main"`, `""`, 1), "ref is empty"},
		"an empty commit":        {strings.Replace(with(""), `"abc"`, `""`, 1), "commit_sha is empty"},
		"a ref that is a number": {strings.Replace(with(""), `"refs/heads/main"`, "7", 1), "ref must be a string"},
		"a time that is none":    {with(`,"started_at":"yesterday"`), "started_at must be a date-time"},
		"validate is empty":      {with(`,"validate":""`), "validate must be a boolean"},
		"validate is a text":     {with(`,"validate":"true"`), "validate must be a boolean"},
		"a file that is null":    {sarif("null"), "sarif must be a string"},
		"an object for a file":   {sarif("{}"), "sarif must be a string"},
		"not base64":             {sarif(`"***"`), "not base64"},
	} {
		envelope := all["uploadSarif"].OpenEnvelope(strings.NewReader(tc.body))
		streamed, err := io.ReadAll(envelope)
		if err == nil {
			_, err = envelope.Body()
		}
		harness.ErrorContains(t, name, err, tc.want)
		if tc.want == "" {
			harness.Same(t, name+": the file", file, string(streamed))
		}
	}
}

func TestOnlyJSONInUTF8IsTaken(t *testing.T) {
	_, all := operations(t)
	for header, refused := range map[string]bool{
		"application/json":                   false,
		"Application/JSON":                   false,
		"application/json; charset=utf-8":    false,
		`application/json;charset="UTF-8"`:   false,
		"":                                   true,
		"text/plain":                         true,
		"application/merge-patch+json":       true,
		"application/x-www-form-urlencoded":  true,
		"application/json; charset=utf-16":   true,
		"application/json, application/json": true,
	} {
		if err := all["updateFindingV2"].CheckContentType(header); (err != nil) != refused {
			t.Errorf("Content-Type %q: error %v", header, err)
		}
	}
}

// Every accepted query conforms to the contract, and every error message is safe to show to a client.
func FuzzParseQuery(f *testing.F) {
	_, all := operations(f)
	for _, seed := range []string{"", "size=10&order=asc", "size=%30", "sort=created_at&sort=x", "a=b;c", "repo_id=%ff", "%=%", "cursor=a+b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := all["listFindingsV1"].ParseQuery(raw)
		if err != nil {
			fit(t, err)
			return
		}
		given, err := url.ParseQuery(raw)
		if err != nil {
			return // the error is in a name that is ignored
		}
		if size := query.Int("size"); size < 1 || size > 1000 {
			t.Errorf("%q: size %d", raw, size)
		}
		for name, fallback := range map[string]string{"sort": "created_at", "order": "desc", "repo_id": "", "class": "", "status": ""} {
			values := slices.DeleteFunc(given[name], func(value string) bool { return value == "" })
			want := fallback
			if len(values) > 0 {
				want = values[0]
			}
			if got := query.Get(name); got != want || len(values) > 1 {
				t.Errorf("%q: %s is %q, given %q", raw, name, got, given[name])
			}
		}
	})
}

// A filter in the body of a triage operation accepts the same values as the list's query, and parses them in
// the same way.
func TestFiltersInABodyAreThoseOfTheQuery(t *testing.T) {
	spec, all := operations(t)
	list, create := all["listFindingsV2"], all["createTriageOperation"]
	described := spec.Components.Schemas["TriageOperationFilters"].Value.Properties
	var names []string
	for _, name := range queryOf(spec.Paths.Value("/v2/findings"), spec.Paths.Value("/v2/findings").Get) {
		if !slices.Contains([]string{"cursor", "sort", "order", "size"}, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	harness.Same(t, "the members of TriageOperationFilters, which are the filters of the list", names, slices.Sorted(maps.Keys(described)))
	for _, name := range names {
		_, err := create.ParseBody([]byte(`{"filters":{"` + name + `":""}}`))
		harness.ErrorContains(t, name+": an empty text, which would widen a write", err, "filters."+name+" is empty")
		for _, value := range []string{"open", "closed", "muted", "high", "Code", "code", "7.50", "11", "1e1", "true", "True", "a", "a\u0000",
			"2026-03-01t10:30:00.50+02:00", "2026-02-30T00:00:00Z", strings.Repeat("a", 128), strings.Repeat("a", 600)} {
			query, err := list.ParseQuery(name + "=" + url.QueryEscape(value))
			content, _ := json.Marshal(map[string]any{"filters": map[string]string{name: value}}) //nolint:errchkjson // strings
			body, bodyErr := create.ParseBody(content)
			filters, _ := body.Parameters("filters")
			got, given := filters.Lookup(name)
			want, wanted := query.Lookup(name)
			if (err == nil) != (bodyErr == nil) || got != want || given != wanted {
				t.Errorf("%s=%.40q: the query has %q, %v; the body %q, %v", name, value, want, err, got, bodyErr)
			}
		}
	}
}
