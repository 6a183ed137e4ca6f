package openapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"
)

// fit fails the test for an error that no client should see.
func fit(t *testing.T, err error) {
	t.Helper()
	if !utf8.ValidString(err.Error()) || len(err.Error()) > 256 {
		t.Errorf("the error is not fit for a client: %q", err)
	}
}

// The values of an accepted body are those that any JSON parser finds in it.
func FuzzParseBody(f *testing.F) {
	_, all := operations(f)
	for _, seed := range []string{
		`{"user_status":"muted"}`, `{"user_status":"open","comments":"\ud83d\ude00"}`, `{"comments":"a","repo_id":"r","project_id":"p"}`,
		`{"payload":"{}","signature":"v1,x"}`, `{"payload":"a","payload":"b","signature":""}`, `{"Payload":"a"}`, `{}`, `[]`, `null`, ``, `{"user_status":null}`,
		`{"user_status":"muted"}{}`, `{"comments":"\ud800"}`, "{\"comments\":\"\xff\"}", `{"x":{"y":[{"z":1,"z":2}]},"user_status":"open"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		for _, id := range []string{"updateFindingV1", "updateFindingV2", "verifyWebhookDelivery", "createTriageOperation"} {
			body, err := all[id].ParseBody([]byte(content))
			if err != nil {
				fit(t, err)
				continue
			}
			var plain map[string]any
			if err := json.Unmarshal([]byte(content), &plain); err != nil {
				t.Fatalf("%s: %q is accepted and not a JSON object: %v", id, content, err)
			}
			for _, name := range []string{"user_status", "comments", "repo_id", "project_id", "payload", "signature"} {
				if value, given := body.Lookup(name); given && plain[name] != value {
					t.Errorf("%s: %s is %q in %q", id, name, value, content)
				}
			}
			if status, given := body.Lookup("user_status"); given && !slices.Contains([]string{"open", "active", "muted"}, status) {
				t.Errorf("%s: the status %q is accepted", id, status)
			}
		}
	})
}

// An accepted time is a valid one, and is used as it was given.
func FuzzParseReviewQuery(f *testing.F) {
	_, all := operations(f)
	for _, seed := range []string{
		"", "start_time=2026-03-01T00:00:00Z&end_time=2026-03-01T00:00:00%2B02:00", "start_time=2026-03-01T00:00:00.5z", "end_time=", "start_time=9999-12-31T23:59:60Z",
		"custom=reviewed&status=open&sort=pr_number", "size=1&size=1", "start_time=0000-01-01T00:00:00Z", "end_time=2026-02-30T00:00:00Z", "status=Open",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := all["listReviews"].ParseQuery(raw)
		if err != nil {
			fit(t, err)
			return
		}
		given, err := url.ParseQuery(raw)
		if err != nil {
			return // what is wrong is with a name that is ignored
		}
		for _, name := range []string{"start_time", "end_time"} {
			values := slices.DeleteFunc(given[name], func(value string) bool { return value == "" })
			at := query.Time(name)
			if len(values) > 0 != (at != nil) {
				t.Errorf("%q: %s is %v", raw, name, at)
				continue
			}
			if at == nil {
				continue
			}
			if want, err := time.Parse(time.RFC3339, strings.ToUpper(values[0])); err != nil || !want.Equal(*at) {
				t.Errorf("%q: %s is %v, given %v, %v", raw, name, at, want, err)
			}
		}
	})
}

// A body with a streamed member is read as any parser of JSON and base64 reads it, however it is split.
func FuzzOpenEnvelope(f *testing.F) {
	_, all := operations(f)
	for _, seed := range []string{
		`{"commit_sha":"abc","ref":"main","sarif":"YWJj"}`, `{"sarif":"YWJj","ref":"main","commit_sha":"abc","validate":true}`, ` {"sarif" : "" ,"ref":"x","commit_sha":"y"} `,
		`{"sarif":"YW\/j","ref":"a","commit_sha":"b"}`, `{"sarif":"YQ\u003d\u003D","ref":"a","commit_sha":"b"}`, `{"sarif":"YWJj\n","ref":null,"commit_sha":"b"}`,
		`{"sarif":"YWJj","sarif":"YWJj"}`, `{"sarif":null}`, `{"sarif":"YWJj"`, `{"x":{"sarif":"YWJj"},"ref":"a","commit_sha":"b","sarif":"YWJj"}{}`, `[]`, ``,
		`{"ref":"a","ref":"b"}`, `{"commit_sha":"b","ref":"a","sarif":"YWJj",}`, `{"sarif":"YWJj","ref":"a","commit_sha":"b","started_at":"2026-03-01T00:00:00Z"}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, content string, pieces bool) {
		var from io.Reader = strings.NewReader(content)
		if pieces {
			from = iotest.OneByteReader(from)
		}
		envelope := all["uploadSarif"].OpenEnvelope(from)
		streamed, err := io.ReadAll(envelope)
		if err != nil {
			fit(t, err)
			if _, again := envelope.Body(); again == nil {
				t.Errorf("%q is refused, and its members are complete", content)
			}
			return
		}
		body, err := envelope.Body()
		if err != nil {
			t.Fatalf("%q is read to its end: %v", content, err)
		}
		var plain map[string]any
		if err := json.Unmarshal([]byte(content), &plain); err != nil {
			t.Fatalf("%q is accepted and not a JSON object: %v", content, err)
		}
		encoded, _ := plain["sarif"].(string)
		if want, err := base64.StdEncoding.DecodeString(encoded); err != nil || !bytes.Equal(want, streamed) {
			t.Errorf("%q is read as %q, want %q, %v", content, streamed, want, err)
		}
		for _, name := range []string{"commit_sha", "ref"} {
			if value, given := body.Lookup(name); !given || plain[name] != value {
				t.Errorf("%s is %q in %q", name, value, content)
			}
		}
	})
}
