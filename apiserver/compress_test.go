package apiserver

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A compressor takes a megabyte, and a client that does not read must not occupy one for a body of usual size.
func TestABodyIsCompressedBeforeTheFirstOfItIsSent(t *testing.T) {
	random := make([]byte, 3*maxBuffered)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(random) // it never fails
	for _, c := range []struct {
		body     []byte
		in, most int
	}{
		{bytes.Repeat([]byte("finding "), minCompressedBytes), 1, 1},
		{bytes.Repeat([]byte("finding "), maxBuffered), 1, 1},
		{random[:maxBuffered*9/10], 1, 1},
		{random, 3, 4}, // more than is held back
	} {
		client := &timed{ResponseRecorder: httptest.NewRecorder()}
		context, _ := gin.CreateTestContext(client)
		context.Set(stateKey, &state{})
		context.Request = httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		context.Request.Header.Set("Accept-Encoding", "gzip")
		half := len(c.body) / 2
		sendBody(context, http.StatusOK, content.Of(c.body[:half]), content.Of(c.body[half:]))
		if client.writes < c.in || client.writes > c.most {
			t.Errorf("%d bytes came in %d writes, want %d to %d", len(c.body), client.writes, c.in, c.most)
		}
		unpacked, err := gzip.NewReader(client.Body)
		if err != nil {
			t.Fatalf("%d bytes: %v", len(c.body), err)
		}
		if got, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(got, c.body) {
			t.Errorf("of %d bytes %d came: %v", len(c.body), len(got), err)
		}
	}
}

// While others occupy the compressors, a body is sent as it is, with the entity tag of the plain body.
func TestABodyIsSentPlainWhileNoCompressorIsFree(t *testing.T) {
	before := compressions
	compressions = slots.New(2, 1)
	t.Cleanup(func() { compressions = before })
	body := bytes.Repeat([]byte("finding "), minCompressedBytes)
	answers := func(method, organization string) (coding, tag string, length int) {
		answer := httptest.NewRecorder()
		context, _ := gin.CreateTestContext(answer)
		context.Set(stateKey, &state{identity: auth.Identity{Organization: organization}})
		context.Request = httptest.NewRequest(method, "/", http.NoBody)
		context.Request.Header.Set("Accept-Encoding", "gzip")
		sendState(context, "tag", content.Of(body))
		harness.Same(t, "Vary", "Accept-Encoding", answer.Header().Get("Vary"))
		return answer.Header().Get("Content-Encoding"), answer.Header().Get("ETag"), answer.Body.Len()
	}
	free, err := compressions.Take("slow")
	harness.Must(t, err)
	if coding, tag, length := answers(http.MethodGet, "slow"); coding != "" || tag != `"tag"` || length != len(body) {
		t.Errorf("without a compressor: coding %q, tag %s, %d bytes", coding, tag, length)
	}
	if coding, tag, length := answers(http.MethodGet, "other"); coding != "gzip" || tag != `"tag-gzip"` || length >= len(body) {
		t.Errorf("another organization: coding %q, tag %s, %d bytes", coding, tag, length)
	}
	if coding, tag, _ := answers(http.MethodHead, "slow"); coding != "gzip" || tag != `"tag-gzip"` {
		t.Errorf("HEAD, which takes no compressor: coding %q, tag %s", coding, tag)
	}
	free()
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodGet} { // it is given back
		if coding, tag, _ := answers(method, "slow"); coding != "gzip" || tag != `"tag-gzip"` {
			t.Errorf("with a compressor: coding %q, tag %s", coding, tag)
		}
	}
}

func TestLongAnswersAreCompressedForWhoTakesIt(t *testing.T) {
	f := facadeOf(t, 2000)
	plain := f.body(t, "/v1/findings")
	for accepted, compressed := range map[string]bool{
		"gzip": true, "br, gzip;q=0.5": true, "*": true, "GZIP": true,
		"identity": false, "": false, "gzip;q=0": false, "br": false, "gzip;q=0, *": false, "gzip;q=x": false, "*;q=0": false,
	} {
		request := f.request(http.MethodGet, "/v1/findings", "")
		request.Header.Set("Accept-Encoding", accepted)
		answer := answerOf(f, request)
		harness.Same(t, "Vary", "Accept-Encoding", answer.Header().Get("Vary"))
		var body io.Reader = answer.Body
		if got := answer.Header().Get("Content-Encoding") == "gzip"; got != compressed {
			t.Errorf("Accept-Encoding %q: compressed is %t", accepted, got)
		} else if compressed {
			unpacked, err := gzip.NewReader(answer.Body)
			harness.Must(t, err)
			body = unpacked
		}
		if content, err := io.ReadAll(body); err != nil || !bytes.Equal(content, plain) {
			t.Errorf("Accept-Encoding %q: %v, %d bytes instead of %d", accepted, err, len(content), len(plain))
		}
	}
	short := answerOf(f, f.request(http.MethodGet, "/v1/findings?repo_id=none", ""))
	harness.Same(t, "a short answer varies by", "", short.Header().Get("Vary"))
}
