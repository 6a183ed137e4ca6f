package apiserver

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const fuzzPayload = `{"type":"webhook.ping"}`

// fuzzServer answers requests of acme's key. Fuzzing goes through the real routes, checks and operations. The API server
// holds nothing: it answers each read and write with 404.
type fuzzServer struct {
	http.Handler
	// signature is what the delivery "d-1" was sent with.
	signature string
}

func newFuzzServer(f *testing.F) fuzzServer {
	f.Helper()
	secret, _ := signatures.NewSecret()
	signed, err := signatures.Sign("d-1", time.Now(), fuzzPayload, []signatures.Expiring{{Secret: secret}})
	harness.Must(f, err)
	delivery := builder.WebhookDelivery("d-1", time.Now()).Payload(fuzzPayload).Build()
	delivery.Status.Attempts = []v1alpha1.WebhookAttempt{{
		At: v1alpha1.Now(), Outcome: v1alpha1.WebhookAttemptSucceeded, Code: http.StatusOK,
		Signatures: []v1alpha1.WebhookSignature{{Digest: signed[0].Digest(), SecretID: secret.ID()}},
	}}
	return fuzzServer{
		Handler:   routesOf(f, backendOf(f, fuzzModel(f, delivery), nothingStored{})),
		signature: signatures.Header(signed),
	}
}

// fuzzModel has five rows of each list, most of them with something in common, and these operations.
func fuzzModel(f testing.TB, delivery *v1alpha1.WebhookDelivery, operations ...client.Object) *readmodel.Model {
	f.Helper()
	at := time.Date(2026, 3, 1, 8, 30, 0, 0, time.UTC)
	project := builder.Project("proj").In(acmeNamespace).Build()
	objects := slices.Concat(operations, []client.Object{project, delivery})
	for i := range 5 {
		objects = append(objects, builder.Repository(fmt.Sprintf("repo-%d", i)).Build(),
			builder.Review(fmt.Sprintf("rv-%d", i)).PullRequest("repo", int32(i+1)).Reviewed("sha-1", at).Build(),
			builder.Finding(fmt.Sprintf("f-%d", i)).DetectedAt(at.Add(time.Duration(i/2)*time.Minute)).Build())
	}
	return modelOf(f, objects...)
}

// call sends a request and checks what must be true of every answer. A panic is
// not recovered.
func (s fuzzServer) call(t *testing.T, method, path, query, body string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(body))
	request.URL = &url.URL{Path: path, RawQuery: query}
	request.Header.Set("Content-Type", "application/json")
	answer := answerOf(s, request)
	if answer.Header().Get("Content-Disposition") != "" {
		return answer // a file
	}
	content := answer.Body.Bytes()
	if !json.Valid(content) || !utf8.Valid(content) || answer.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %q: %d with a body that is no JSON: %q", method, path, query, answer.Code, content)
	}
	if answer.Code < http.StatusMultipleChoices {
		return answer
	}
	var e openapi.Error
	if err := json.Unmarshal(content, &e); err != nil || !e.Error.Valid() || e.Detail == "" || len(e.Detail) > 512 {
		t.Errorf("%s %s %q: %d with an error that is not the contract's: %q", method, path, query, answer.Code, content)
	}
	if method == http.MethodGet && answer.Code != http.StatusBadRequest || answer.Code >= http.StatusInternalServerError {
		t.Errorf("%s %s %q: %d %q", method, path, query, answer.Code, content)
	}
	return answer
}

// fuzzPage is a page of any list.
type fuzzPage struct {
	Items []struct {
		ID string `json:"id"`
	} `json:"items"`
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"`
	Total      *int   `json:"total"`
}

// Whatever the query, a list answers with the contract's 400 or with a page that keeps what a
// page promises, and whose cursor leads on to the rest of as many rows as it said.
func FuzzListQueries(f *testing.F) {
	s := newFuzzServer(f)
	paths := []string{"/v1/findings", "/v2/findings", "/v2/repos", "/v1/reviews"}
	for _, seed := range []string{
		"", "size=2", "size=1&order=asc", "sort=updated_at&size=3", "sort=last_committed_at&order=desc&size=1", "sort=severity&policy=mute-tests&size=1", "sort=pr_number&size=2",
		"status=open&severity=low&size=2", "repo_id=repo&project_id=proj&class=", "custom=reviewed&status=open", "start_time=2026-03-01T00:00:00Z&size=2",
		"start_time=2026-03-01T00:00:00%2B02:00&end_time=2027-01-01T00:00:00Z", "cursor=", "cursor=AQA", "size=%32", "a=b;c", "%=%", "size=1&size=2", "end_time=0000-01-01T00:00:00Z",
	} {
		for i := range paths {
			f.Add(uint8(i), seed)
		}
	}
	f.Fuzz(func(t *testing.T, list uint8, query string) {
		path := paths[int(list)%len(paths)]
		var seen []string
		for next := query; ; {
			answer := s.call(t, http.MethodGet, path, next, "")
			if answer.Code != http.StatusOK {
				if len(seen) > 0 {
					t.Errorf("%s?%q: the cursor of the page before is refused: %s", path, next, answer.Body)
				}
				return
			}
			page := harness.Decoded[fuzzPage](t, answer.Body.Bytes())
			for _, item := range page.Items {
				seen = append(seen, item.ID)
			}
			if page.Items == nil || page.Total == nil || page.HasMore != (page.NextCursor != "") || page.HasMore && len(page.Items) == 0 {
				t.Fatalf("%s?%q: no page: %s", path, next, answer.Body)
			}
			given, err := url.ParseQuery(query)
			if !page.HasMore {
				if *page.Total != len(seen) && given.Get("cursor") == "" {
					t.Errorf("%s?%q: total is %d, and the pages hold %q", path, query, *page.Total, seen)
				}
				return
			}
			if err != nil || given.Get("cursor") != "" || len(seen) > 5 {
				return // a query that cannot be led on from here
			}
			given.Set("cursor", page.NextCursor)
			next = given.Encode()
		}
	})
}

// Whatever the query, counts are refused as the list is, or have its total and nothing above it.
func FuzzCountQueries(f *testing.F) {
	s := newFuzzServer(f)
	for _, seed := range []string{
		"", "field=severity", "values=1", "status=open&severity=low", "tool=&rule=x", "created_since=2026-03-01T08:31:00Z&text=a+b",
		"min_score=0", "stale=false&suppressed=true", "package=pkg:npm/a@1", "vulnerability=cve-1", "field=none", "values=0", "a=b", "%=%",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		answer := s.call(t, http.MethodGet, "/v2/finding-counts", query, "")
		if answer.Code != http.StatusOK {
			return
		}
		counts := harness.Decoded[openapi.FindingCounts](t, answer.Body.Bytes())
		given, err := url.ParseQuery(query)
		if err != nil {
			return // a semicolon, which net/url does not take
		}
		given.Del("field")
		given.Del("values")
		page := harness.Decoded[fuzzPage](t, s.call(t, http.MethodGet, "/v1/findings", given.Encode(), "").Body.Bytes())
		if page.Total == nil || *page.Total != int(counts.Total) {
			t.Errorf("%q: %d findings are counted, and the list is %+v", query, counts.Total, page)
		}
		for _, field := range counts.Fields {
			for _, v := range field.Values {
				if _, asked := given[field.Field]; v.Count <= 0 || v.Count > counts.Total && !asked {
					t.Errorf("%q: %s=%s is counted %d times of %d", query, field.Field, v.Value, v.Count, counts.Total)
				}
			}
		}
	})
}

// Whatever the query, an export is refused, or has as many rows as the list has in total.
func FuzzExportQueries(f *testing.F) {
	s := newFuzzServer(f)
	for _, seed := range []string{
		"", "format=csv&sort=updated_at&order=asc", "format=sarif", "format=xml", "status=open&severity=low", "tool=&rule=x",
		"created_since=2026-03-01T08:31:00Z&text=a+b", "stale=false&suppressed=true", "format=sarif&tool=x", "cursor=x", "size=1", "a=b", "%=%",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		answer := s.call(t, http.MethodGet, "/v2/finding-export", query, "")
		given, err := url.ParseQuery(query)
		if answer.Code != http.StatusOK || err != nil {
			return
		}
		rows := 0
		if given.Get("format") == "sarif" {
			log, err := sarif.Parse(answer.Body, sarif.Options{})
			if err != nil {
				return // without runs: nothing matches
			}
			for _, run := range log.Runs {
				rows += len(run.Results)
			}
		} else {
			all, err := csv.NewReader(answer.Body).ReadAll()
			harness.Must(t, err)
			rows = len(all) - 1
		}
		given.Del("format")
		page := harness.Decoded[fuzzPage](t, s.call(t, http.MethodGet, "/v1/findings", given.Encode(), "").Body.Bytes())
		if page.Total == nil || *page.Total != rows {
			t.Errorf("%q: %d findings are exported, and the list is %+v", query, rows, page)
		}
	})
}

// Whatever a PATCH says, it is refused by the contract or asks for something that it may ask for.
func FuzzPatchBodies(f *testing.F) {
	s := newFuzzServer(f)
	for _, seed := range []string{
		`{"user_status":"muted"}`, `{"user_status":"open","comments":"\ud83d\ude00"}`, `{"comments":"a","repo_id":"repo","project_id":"proj"}`,
		`{"comments":""}`, `{}`, `[]`, `null`, ``, `{"user_status":null}`, `{"user_status":"muted"}{}`, `{"comments":"\ud800"}`, "{\"comments\":\"\xff\"}",
		`{"comments":"\u0000"}`, `{"user_status":"closed"}`, `{"user_status":"open","user_status":"muted"}`, `{"comments":1}`,
	} {
		f.Add(true, "f-1", seed)
		f.Add(false, "f-1", seed)
	}
	f.Add(false, "f-none", `{"comments":"x"}`)
	f.Add(true, "\x00", `{"user_status":"open"}`)
	f.Fuzz(func(t *testing.T, v1 bool, id, body string) {
		path := "/v2/findings/"
		if v1 {
			path = "/v1/findings/"
		}
		if id == "" || strings.Contains(id, "/") {
			return // another path
		}
		answer := s.call(t, http.MethodPatch, path+id, "", body)
		var given struct {
			UserStatus *string `json:"user_status"`
			Comments   *string `json:"comments"`
		}
		switch answer.Code {
		case http.StatusBadRequest:
		case http.StatusNotFound: // read to its end and understood
			if err := json.Unmarshal([]byte(body), &given); err != nil || given.UserStatus == nil && (v1 || given.Comments == nil) {
				t.Errorf("%s%q: %q is accepted", path, id, body)
			}
		default:
			t.Errorf("%s%q: %q is answered with %d %s", path, id, body, answer.Code, answer.Body)
		}
	})
}

// operationStored is an API server that takes an operation, and has it previewed at once.
type operationStored struct{ last *v1alpha1.TriageOperation }

func (o *operationStored) RoundTrip(request *http.Request) (*http.Response, error) {
	operation := &v1alpha1.TriageOperation{}
	if err := json.NewDecoder(request.Body).Decode(operation); err != nil {
		return nil, err
	}
	o.last = operation.DeepCopy()
	operation.Status.Phase = v1alpha1.OperationCompleted
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusCreated)
	err := json.NewEncoder(answer).Encode(operation)
	return answer.Result(), err
}

// Whatever the body, the operation made from it has every condition of the body, so it selects no more findings.
func FuzzOperationBodies(f *testing.F) {
	stored := &operationStored{}
	s := fuzzServer{Handler: routesOf(f, backendOf(f, fuzzModel(f, builder.WebhookDelivery("d-1", time.Now()).Build()), stored))}
	for _, seed := range []string{
		`{"filters":{"severity":"low","tool":"gosec"},"set":{"user_status":"muted"}}`, `{"filters":{},"set":{"user_status":"muted"}}`,
		`{"filters":{"tool":"","text":" "},"set":{"user_status":"muted","reason":"duplicate"}}`, `{"ids":["f-1","f-2"],"set":{"user_status":"open"}}`,
		`{"undo":"op-1"}`, `{"undo":""}`, `{"ids":[],"set":{}}`, `{"ids":null,"filters":{"min_score":"7.5","stale":"true"},"set":{"comments":"x"}}`,
		`{"filters":{"created_since":"2026-03-01T00:00:00Z","min_score":0},"set":{"user_status":"active","expires_at":"2030-01-01T00:00:00Z"},"commit":true}`,
		`{"filters":{"stale":false,"suppressed":true,"class":"","status":null},"set":{"user_status":"muted"}}`, `[]`, ``, `{"filters":[]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		stored.last = nil
		answer := s.call(t, http.MethodPost, "/v2/triage-operations", "", body)
		if answer.Code == http.StatusBadRequest {
			return
		}
		var given struct {
			IDs     []string
			Filters map[string]any
			Undo    string
			Commit  bool
		}
		if err := json.Unmarshal([]byte(body), &given); err != nil || answer.Code != http.StatusCreated || stored.last == nil {
			t.Fatalf("%q is answered with %d %s", body, answer.Code, answer.Body)
		}
		spec, asked := &stored.last.Spec, 0
		for _, value := range given.Filters {
			if value != nil {
				asked++
			}
		}
		if string(spec.Undo) != given.Undo || spec.Commit != given.Commit || spec.By != "apikey/fuzz" {
			t.Errorf("%q makes %+v", body, spec)
		}
		if given.Undo != "" && spec.Select == nil && spec.Set == nil {
			return
		}
		if spec.Select == nil || spec.Set == nil || len(spec.Select.IDs) != len(given.IDs) {
			t.Fatalf("%q makes %+v", body, spec)
		}
		selected := 0
		for _, member := range reflect.ValueOf(*spec.Select).Fields() {
			if !member.IsZero() {
				selected++
			}
		}
		if want := asked + min(len(given.IDs), 1); selected != want || want == 0 {
			t.Errorf("%q asks for %d things, and selects by %d: %+v", body, want, selected, spec.Select)
		}
	})
}

// A delivery is verified for what was sent and for nothing else.
func FuzzVerifyBodies(f *testing.F) {
	s := newFuzzServer(f)
	const sent = "@" // stands for the signature
	quoted := harness.JSON(f, fuzzPayload)
	for _, seed := range []string{
		`{"payload":` + string(quoted) + `,"signature":"@"}`, `{"payload":` + string(quoted) + `,"signature":"v1,AAAA @"}`, `{"payload":"","signature":""}`,
		`{"payload":"x","signature":"@"}`, `{"signature":"@"}`, `{"payload":null,"signature":"@"}`, `{"payload":"x","payload":"y","signature":"@"}`,
		`{}`, `[]`, ``, "{\"payload\":\"\xff\",\"signature\":\"@\"}", `{"payload":"\ud800","signature":"@"}`, `{"payload":{},"signature":"@"}`,
	} {
		f.Add("d-1", seed)
	}
	f.Add("d-none", `{"payload":"x","signature":"y"}`)
	f.Fuzz(func(t *testing.T, id, body string) {
		if id == "" || strings.Contains(id, "/") {
			return // another path
		}
		body = strings.ReplaceAll(body, sent, s.signature)
		answer := s.call(t, http.MethodPost, "/v2/webhook-deliveries/"+id+"/verify", "", body)
		var given struct{ Payload, Signature *string }
		err := json.Unmarshal([]byte(body), &given)
		whole := err == nil && given.Payload != nil && given.Signature != nil
		switch answer.Code {
		case http.StatusOK:
			if !whole || id != "d-1" || *given.Payload != fuzzPayload || !strings.Contains(*given.Signature, s.signature) {
				t.Errorf("%q: %q is answered with %s", id, body, answer.Body)
			}
		case http.StatusBadRequest:
		case http.StatusNotFound:
			if !whole {
				t.Errorf("%q: %q is accepted", id, body)
			}
		default:
			t.Errorf("%q: %q is answered with %d %s", id, body, answer.Code, answer.Body)
		}
	})
}
