package conformance

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The full shape of findings and their history are additions to the contract.

func TestFull_AFindingHasExactlyTheDescribedMembers(t *testing.T) {
	o := sampleOrganization(t)
	for _, path := range []string{"/v2/findings/f-full", "/v2/findings/f-bare"} {
		got := o.get(path).wants(200, "a finding").object()
		wantsShape(t, path, got, findingFullShape)
		wantsShape(t, "details", got.object("details"), detailsShape)
		facts := got.object("facts")
		wantsShape(t, "facts", facts, factsShape)
		wantsShape(t, "facts.package", facts.object("package"), packageShape)
		wantsShape(t, "verdict", got.object("verdict"), verdictShape)
		wantsShape(t, "facts.suppression", facts.object("suppression"), suppressionShape)
		wantsShape(t, "facts.vulnerability", facts.object("vulnerability"), vulnerabilityShape)
	}
	wantsShapes(t, "fingerprints", o.get("/v2/findings/f-full").object().records("fingerprints"), fingerprintShape)
}

func TestFull_AFindingShowsWhatTheDocumentedShapeDoesNot(t *testing.T) {
	o := sampleOrganization(t)
	got := o.get("/v2/findings/f-full").object()
	want := record{
		"category": "Code", "class": "CWE-22", "confidence": "medium", "rule_id": "G304", "score": 7.5, "secret_type": "none of these",
		"tool": "gosec", "tool_severity": "HIGH",
		"package":       map[string]any{"fixed_version": "1.1.1d-r0", "name": "openssl", "purl": "pkg:apk/alpine/openssl@1.1.1c-r0", "version": "1.1.1c-r0"},
		"suppression":   map[string]any{"justification": "", "kind": nil},
		"vulnerability": map[string]any{"aliases": []any{"GHSA-29mw-wpgm-hmr9"}, "id": "CVE-2019-1549"},
	}
	harness.Same(t, "facts", want, got.object("facts"))
	wantsMembers(t, "the finding", record{"commit_hash": "8f3e1c2d", "closed_at": nil}, got)
	closed := o.get("/v2/findings/f-closed").object()
	wantsMembers(t, "a closed finding", record{"closed_at": fullDetectedAt.Format(time.RFC3339), "closed_scan_id": "scan-2"}, closed)
	harness.Same(t, "the score of a finding without one", nil, o.get("/v2/findings/f-bare").object().object("facts")["score"])
}

// Members of the documented shape have the same values in the full one, both singly and in the list.
func TestFull_ContainsTheDocumentedShape(t *testing.T) {
	o := sampleOrganization(t)
	full := o.listed("/v2/full-findings", "f-full")
	harness.Same(t, "listed, where alone is wanted", o.get("/v2/findings/f-full").object(), full)
	wantsMembers(t, "the full shape", o.get(findingPath("full", "full", "f-full")).object(), full)
}

// A client that has read the full shape may make a conditional change with its tag.
func TestFull_TheTagIsThatOfTheDocumentedShape(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	full := o.get("/v2/findings/f-1")
	tag := strings.Replace(full.Header.Get("Etag"), `-gzip"`, `"`, 1) // the longer answer may be compressed
	harness.Same(t, "the tag of the documented shape", tag, o.get(findingPath("repo", "proj", "f-1")).Header.Get("Etag"))
	o.get("/v2/findings/f-1", apiclient.Header("If-None-Match", tag)).wants(304, "the same state")
	changed := o.patch("/v2/findings/f-1", `{"user_status":"muted"}`, apiclient.Header("If-Match", tag)).wants(200, "the tag of the full shape")
	harness.Same(t, "decided_by", "apikey/conformance", o.get("/v2/findings/f-1").object().text("decided_by"))
	if changed.Header.Get("Etag") == tag {
		t.Error("a decision has left the tag as it was")
	}
}

func TestHistory_ListsWhatHappenedInOrder(t *testing.T) {
	o := newOrganization(t)
	o.finding(builder.Finding("f-1"))
	o.patch("/v2/findings/f-1", `{"user_status":"muted","comments":"The gateway validates it."}`).wants(200, "a decision")
	var got record
	harness.Eventually(t, func(g Gomega) {
		got = o.get("/v2/findings/f-1/history").wants(200, "a history").object()
		g.Expect(got.list("transitions")).To(HaveLen(2))
	})
	wantsShape(t, "history", got, historyShape)
	transitions := got.records("transitions")
	wantsShapes(t, "transitions", transitions, transitionShape)
	created, decided := transitions[0], transitions[1]
	wantsMembers(t, "first", record{"type": "created", "seq": 1.0, "to": "open"}, created)
	delete(decided, "at")
	want := record{
		"type": "triaged", "seq": 2.0, "from": "open", "to": "muted", "by": "apikey/conformance", "author": "", "comment": "The gateway validates it.", "imported_by": "", "scan_id": "",
		"reason": nil, "expires_at": nil,
	}
	harness.Same(t, "decided", want, decided)
	tag := o.get("/v2/findings/f-1/history").Header.Get("Etag")
	o.get("/v2/findings/f-1/history", apiclient.Header("If-None-Match", tag)).wants(304, "the same history")
}
