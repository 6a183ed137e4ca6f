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

	"github.com/appsec-dev/findings-operator/apiserver/content"
)

// inWrites is a client's connection that counts the writes to it.
type inWrites struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *inWrites) Write(data []byte) (int, error) {
	w.writes++
	return w.ResponseRecorder.Write(data)
}

// A compressor takes a megabyte, and a client that does not read must not occupy one for a body of usual size.
func TestABodyIsCompressedBeforeTheFirstOfItIsSent(t *testing.T) {
	random := make([]byte, 3*mostHeldBack)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(random) // it never fails
	for _, c := range []struct {
		body     []byte
		in, most int
	}{
		{bytes.Repeat([]byte("finding "), minCompressedBytes), 1, 1},
		{bytes.Repeat([]byte("finding "), mostHeldBack), 1, 1},
		{random[:mostHeldBack*9/10], 1, 1},
		{random, 3, 4}, // more than is held back
	} {
		client := &inWrites{ResponseRecorder: httptest.NewRecorder()}
		context, _ := gin.CreateTestContext(client)
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
