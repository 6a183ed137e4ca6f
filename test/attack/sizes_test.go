package attack

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/apiclient"
)

// edge sends a shot at or beyond a limit, which must be answered exactly as designed.
func edge(t *testing.T, o *tenant, what string, s shot, want int) *answer {
	t.Helper()
	a := target.facade.send(t, o.token, s)
	attempt(t, inputOf, a.status == want, "%s: got %s, want %d", what, a, want)
	return a
}

// padded pads a body to exactly that many bytes, with an undescribed member.
func padded(body string, size int) string {
	open := strings.TrimSuffix(body, "}") + `,"pad":"`
	return open + strings.Repeat("a", size-len(open)-2) + `"}`
}

func TestInput_SizesAtTheirEdges(t *testing.T) {
	o := tenants(t)[0]
	verify := "/v2/webhook-deliveries/" + o.sent.id + "/verify"
	for _, version := range []string{"v1", "v2"} {
		path := "/" + version + "/findings/" + o.ids["finding"]
		for size, want := range map[int]int{256<<10 - 1: 200, 256 << 10: 200, 256<<10 + 1: 400, 1 << 20: 400} {
			edge(t, o, fmt.Sprintf("a PATCH of %d bytes", size), shot{method: "PATCH", path: path, body: padded(`{"user_status":"open"}`, size)}, want)
		}
	}
	for size, want := range map[int]int{1<<20 - 1: 200, 1 << 20: 200, 1<<20 + 1: 400, 8 << 20: 400} {
		edge(t, o, fmt.Sprintf("a verification of %d bytes", size), shot{method: "POST", path: verify, body: padded(o.sent.verification(), size)}, want)
	}
	for _, op := range operations(t) {
		for _, name := range op.inPath {
			for length, want := range map[int]int{252: 404, 253: 404, 254: 400} {
				values := op.idsFor(t, o.ids)
				values[name] = strings.Repeat("a", length)
				s := op.shotWith(values, o.sent)
				edge(t, o, fmt.Sprintf("%s: an id of %d bytes", op.id, length), s, want)
			}
			values := op.idsFor(t, o.ids)
			values[name] = url.PathEscape(strings.Repeat("é", 127)) // 254 bytes, 127 characters
			edge(t, o, op.id+": an id that is too long in bytes alone", op.shotWith(values, o.sent), 400)
		}
		if !op.isList() {
			continue
		}
		list := op.listOf(t, o)
		for size, want := range map[string]int{
			"1": 200, "2": 200, "999": 200, "1000": 200, "1001": 400, "0": 400, "-1": 400, "": 200, "1e3": 400, "0x10": 400, "010": 400, "+1": 400, "\x201": 400, "1.0": 400, "١": 400,
			"9223372036854775807": 400, "9223372036854775808": 400, "-9223372036854775808": 400, strings.Repeat("9", 5000): 400, "NaN": 400, "1_000": 400,
		} {
			edge(t, o, op.id+": size "+size, withQuery(shot{method: "GET", path: list}, "size", size), want)
		}
		for _, length := range []int{1, 4095, 4096, 4097, 20_000} {
			edge(t, o, fmt.Sprintf("%s: a cursor of %d bytes", op.id, length), withQuery(shot{method: "GET", path: list}, "cursor", strings.Repeat("A", length)), 400)
		}
		edge(t, o, op.id+": a size twice", shot{method: "GET", path: list + "?size=1&size=1000"}, 400)
		edge(t, o, op.id+": 2,000 parameters", shot{method: "GET", path: list + "?" + strings.Repeat("a=b&", 2000)}, 200)
		edge(t, o, op.id+": a query that decodes to nothing", shot{method: "GET", path: list + "?size=%zz"}, 400)
	}
}

// Bodies that a parser may fail on, or that two parsers read differently.
func TestInput_OddBodiesAreRefused(t *testing.T) {
	o := tenants(t)[0]
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	bodies := maps.Clone(apiclient.BadBodies)
	maps.Copy(bodies, map[string]string{
		"true": "true", "a comment": `{/*x*/"user_status":"open"}`, "no quotes": `{user_status:"open"}`, "single quotes": `{'user_status':'open'}`,
		"a member twice, once escaped": `{"user_status":"open","user\u005fstatus":"muted"}`,
		"another case":                 `{"USER_STATUS":"muted"}`, "a value of null": `{"user_status":null}`,
		"a value of a list": `{"user_status":["open"]}`, "a value of an object": `{"user_status":{"$ne":"x"}}`, "an unknown value": `{"user_status":"closed"}`, "another case of a value": `{"user_status":"Open"}`,
		"invalid UTF-8 in comments": "{\"comments\":\"\xff\"}", "overlong UTF-8": "{\"comments\":\"\xc0\xae\"}", "a surrogate in UTF-8": "{\"comments\":\"\xed\xa0\x80\"}",
		"half a pair": `{"comments":"\ud800"}`, "the other half": `{"comments":"\udc00\ud800"}`, "a raw control character": "{\"comments\":\"a\x01b\"}", "UTF-16": "{\x00\"\x00a\x00\"\x00:\x001\x00}\x00",
		"a huge number in its place": `{"user_status":1e999999999}`, "a number with a million digits": `{"comments":` + strings.Repeat("9", 60_000) + `}`, "a number that is none": `{"comments":NaN}`,
		"deep lists": `{"x":` + deep("[", "]", 30_000) + `}`, "deep objects": `{"x":` + deep(`{"a":`, "}", 9_000) + `}`, "lists without an end": `{"user_status":"open","x":` + strings.Repeat("[", 60_000),
		"objects without an end": strings.Repeat(`{"a":`, 12_000), "a string without an end": `{"comments":"` + strings.Repeat("a", 60_000), "escapes without an end": `{"comments":"` + strings.Repeat(`\u`, 20_000),
	})
	for what, body := range bodies {
		for _, op := range operations(t) {
			if op.body == nil || op.bodyIsOptional && (body == "" || body == "{}") {
				continue
			}
			s := op.shotAt(t, o.ids, o.sent)
			s.body = body
			edge(t, o, op.id+": "+what, s, http.StatusBadRequest)
		}
	}
	triage := shot{method: "PATCH", path: "/v2/findings/" + o.ids["finding"]}
	for what, body := range map[string]string{
		"numbers that nobody reads": `{"user_status":"open","x":[1e999999999,-1e-999999999,` + strings.Repeat("9", 50_000) + `]}`,
		"thousands of members":      `{"user_status":"open"` + manyMembers(5_000) + `}`,
		"deep enough":               `{"user_status":"open","x":` + deep("[", "]", 5_000) + `}`,
		"a character of nothing":    `{"comments":"\u0000"}`,
	} {
		s := triage
		s.body = body
		a := target.facade.send(t, o.token, s)
		attempt(t, inputOf, a.status == 200 || a.status == 400, "%s: %s", what, a)
	}
}

func manyMembers(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `,"m%d":0`, i)
	}
	return out.String()
}

// Requests that two servers in a row could split differently are refused, or parsed in the one way
// that HTTP defines; no remainder is taken for another request.
func TestInput_SmuggledRequestsAreRefused(t *testing.T) {
	o := tenants(t)[0]
	key := "Authorization: Bearer " + o.token + "\r\n"
	patch := "PATCH /v2/findings/" + o.ids["finding"] + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + key
	hidden := "GET /v1/findings HTTP/1.1\r\nHost: x\r\n" + key + "\r\n"
	for what, request := range map[string]string{
		"two lengths":                 patch + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}" + hidden,
		"a length with a sign":        patch + "Content-Length: +2\r\n\r\n{}" + hidden,
		"a length of two values":      patch + "Content-Length: 2, 3\r\n\r\n{}" + hidden,
		"a negative length":           patch + "Content-Length: -1\r\n\r\n{}",
		"a huge length":               patch + "Content-Length: 99999999999999999999\r\n\r\n{}",
		"an unknown encoding":         patch + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"two encodings":               patch + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
		"a chunk of a negative size":  patch + "Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
		"a chunk of a huge size":      patch + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
		"a chunk with a long comment": patch + "Transfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("a", 70_000) + "\r\n{}\r\n0\r\n\r\n",
		"a folded header":             "GET /v1/findings HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n" + strings.Replace(key, ": ", " : ", 1) + "\r\n",
		"a blank before the colon":    "GET /v1/findings HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer " + o.token + "\r\n\r\n",
		"no host":                     "GET /v1/findings HTTP/1.1\r\n" + key + "\r\n",
		"two hosts":                   "GET /v1/findings HTTP/1.1\r\nHost: a\r\nHost: b\r\n" + key + "\r\n",
		"a control character":         "GET /v1/findings\x01 HTTP/1.1\r\nHost: x\r\n" + key + "\r\n",
		"a header with NUL":           "GET /v1/findings HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n" + key + "\r\n",
		"HTTP/9.9":                    "GET /v1/findings HTTP/9.9\r\nHost: x\r\n" + key + "\r\n",
	} {
		status, closed := rawly(t, request)
		refusal := status == 400 || status == 413 || status == 431 || status == 501 || status == 505 || status == 0 && closed
		attempt(t, inputOf, refusal, "%s: got %d", what, status)
	}
}
