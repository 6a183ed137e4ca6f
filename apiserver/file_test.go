package apiserver

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// inPieces is a client's connection that keeps the pieces that were written to it, without a copy.
type inPieces struct {
	*httptest.ResponseRecorder
	pieces [][]byte
}

func (w *inPieces) Write(piece []byte) (int, error) {
	w.pieces = append(w.pieces, piece)
	return len(piece), nil
}

// Whoever does not read a file must not hold a copy of it, or a compressor.
func TestAFileIsSentStraightFromMemory(t *testing.T) {
	random := make([]byte, 3*chunkBytes) // stays as long when it is compressed
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(random) // it never fails
	sent := newFile(random)
	unpacked, err := gzip.NewReader(bytes.NewReader(sent.compressed))
	harness.Must(t, err)
	if got, err := io.ReadAll(unpacked); err != nil || !bytes.Equal(got, random) {
		t.Fatalf("of %d bytes %d were compressed: %v", len(random), len(got), err)
	}
	for coding, want := range map[string][]byte{"": sent.plain, "gzip": sent.compressed} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			client := &inPieces{ResponseRecorder: httptest.NewRecorder()}
			context, _ := gin.CreateTestContext(client)
			context.Request = httptest.NewRequest(method, "/", http.NoBody)
			context.Request.Header.Set("Accept-Encoding", coding)
			sent.send(context)
			header := client.Header()
			if header.Get("Content-Encoding") != coding || header.Get("Content-Length") != strconv.Itoa(len(want)) || header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s of coding %q: %v", method, coding, header)
			}
			at := 0
			for _, piece := range client.pieces {
				if len(piece) > chunkBytes || &piece[0] != &want[at] {
					t.Fatalf("%s of coding %q: %d bytes at %d are long or a copy", method, coding, len(piece), at)
				}
				at += len(piece)
			}
			harness.Same(t, "bytes of "+method+" of coding "+coding, map[string]int{http.MethodGet: len(want)}[method], at)
		}
	}
}

func TestAShortFileIsNotCompressed(t *testing.T) {
	answer := httptest.NewRecorder()
	context, _ := gin.CreateTestContext(answer)
	context.Request = httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	context.Request.Header.Set("Accept-Encoding", "gzip")
	newFile([]byte("short")).send(context)
	if answer.Body.String() != "short" || answer.Header().Get("Content-Encoding") != "" || answer.Header().Get("Vary") != "" {
		t.Errorf("got %q with %v", answer.Body, answer.Header())
	}
}
