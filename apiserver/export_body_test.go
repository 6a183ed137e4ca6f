package apiserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// chunkOf is the chunk that a test's streamed body consists of.
var chunkOf = bytes.Repeat([]byte("a"), streamedBytes)

// streams serves a streamed body; closed returns how often it was closed.
func streams(t *testing.T, log *bytes.Buffer, write func(io.Writer) error) (server *httptest.Server, closed func() int) {
	t.Helper()
	var mu sync.Mutex
	count := 0
	server = httptest.NewUnstartedServer(routerWith(log, func(c *gin.Context) {
		sendStreamed(c, &handlers.Streamed{MediaType: "text/csv", FileName: "a.csv", Write: write, Close: func() {
			mu.Lock()
			defer mu.Unlock()
			count++
		}}, func() error { return nil })
	}))
	server.Config.ConnContext = withConnection
	server.Start()
	t.Cleanup(server.Close)
	return server, func() int {
		server.Close() // waits for the requests
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// A body that cannot be completed does not look complete, compressed or not, and the log has the reason.
func TestAStreamedBodyThatFailsIsCutOff(t *testing.T) {
	for _, coding := range []string{"identity", "gzip"} {
		var log bytes.Buffer
		server, closed := streams(t, &log, func(w io.Writer) error {
			_, err := w.Write(chunkOf)
			return errors.Join(err, errors.New("the model is gone"))
		})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		harness.Must(t, err)
		request.Header.Set("Accept-Encoding", coding)
		response, err := server.Client().Do(request)
		if err == nil { // else it ended before anything was sent
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close() //nolint:errcheck // only read from
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			t.Errorf("%s: the body ended with %v, as if it were whole", coding, err)
		}
		harness.Same(t, coding+": times closed", 1, closed())
		harness.Contains(t, coding+": the log", log.String(), "level=ERROR", "status=500", "the answer was cut off",
			"the model is gone")
		harness.Lacks(t, coding+": the log, which holds no stack", log.String(), "goroutine")
	}
}

// HTTP/1.0, which proxies use, takes the end of a connection for the end of the body.
func TestAStreamedBodyThatFailsIsCutOffToHTTP10(t *testing.T) {
	for failure, want := range map[error]error{nil: nil, errors.New("the model is gone"): syscall.ECONNRESET} {
		server, _ := streams(t, &bytes.Buffer{}, func(w io.Writer) error {
			_, err := w.Write(chunkOf)
			return errors.Join(err, failure)
		})
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		harness.Must(t, err)
		defer conn.Close() //nolint:errcheck // the test's own
		_, err = io.WriteString(conn, "GET / HTTP/1.0\r\nHost: x\r\n\r\n")
		harness.Must(t, err)
		if _, err := io.Copy(io.Discard, conn); !errors.Is(err, want) {
			t.Errorf("after %v the connection ended with %v, want %v", failure, err, want)
		}
	}
}

func TestAStreamedBodyIsCompressedAndHasAName(t *testing.T) {
	server, closed := streams(t, &bytes.Buffer{}, func(w io.Writer) error { _, err := w.Write(chunkOf); return err })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	harness.Must(t, err)
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := server.Client().Do(request)
	harness.Must(t, err)
	defer response.Body.Close() //nolint:errcheck // only read from
	unfolded, err := gzip.NewReader(response.Body)
	harness.Must(t, err)
	if body, err := io.ReadAll(unfolded); err != nil || !bytes.Equal(body, chunkOf) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	for name, want := range map[string]string{"Content-Type": "text/csv", "Content-Disposition": "attachment; filename=a.csv", "Vary": "Accept-Encoding"} {
		harness.Same(t, name, want, response.Header.Get(name))
	}
	harness.Same(t, "times closed", 1, closed())
}

// pacedServer serves one handler that writes that many chunks, each within a patience.
func pacedServer(t *testing.T, chunks int, patience time.Duration) (conn net.Conn, ended <-chan error) {
	t.Helper()
	end := make(chan error, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paced := &pacedWriter{to: w, control: http.NewResponseController(w), patience: patience}
		var err error
		for i := 0; i < chunks && err == nil; i++ {
			if _, err = paced.Write(chunkOf); err == nil {
				err = r.Context().Err()
			}
		}
		end <- err
	}))
	server.Config.WriteTimeout = 100 * time.Millisecond
	server.Config.ReadTimeout = 100 * time.Millisecond
	server.Listener = tinyBuffers{server.Listener}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	harness.Must(t, err)
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck,gosec // the test's own
	harness.Must(t, conn.(*net.TCPConn).SetReadBuffer(tinyBuffer))
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	harness.Must(t, err)
	server.Start() // the request is there when it is accepted, however slow the test is
	t.Cleanup(server.Close)
	return conn, end
}

func TestAClientThatReadsNothingIsGivenUp(t *testing.T) {
	_, ended := pacedServer(t, 1<<20, 100*time.Millisecond)
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the body ended with %v", err)
	}
}

// A client that keeps reading gets everything, however much longer that takes than the server's timeouts.
func TestAClientThatReadsSlowlyGetsAll(t *testing.T) {
	t.Parallel() // it mostly waits
	const chunks = 2
	conn, ended := pacedServer(t, chunks, time.Minute)
	begun, ticker := time.Now(), time.NewTicker(5*time.Millisecond)
	defer ticker.Stop()
	piece := make([]byte, streamedBytes)
	for {
		select {
		case err := <-ended:
			if took := time.Since(begun); err != nil || took < 200*time.Millisecond {
				t.Errorf("after %s it ended with %v", took, err)
			}
			return
		case <-ticker.C:
			if _, err := conn.Read(piece); err != nil {
				t.Fatalf("cut off after %s: %v", time.Since(begun), err)
			}
		}
	}
}

// slowClient takes each chunk after a while.
type slowClient struct {
	timed
	perChunk time.Duration
}

func (c *slowClient) Write(chunk []byte) (int, error) {
	select {
	case <-time.After(c.perChunk):
		return c.timed.Write(chunk)
	case <-time.After(time.Until(c.deadlines[len(c.deadlines)-1])):
		return 0, os.ErrDeadlineExceeded
	}
}

// A client that takes one chunk after the other, but each just in time, would keep its place for days.
func TestAStreamedBodyMustBeReadAtALowestPace(t *testing.T) {
	const chunks, atPace = 100, streamedBytes / streamedPace * time.Second
	for name, c := range map[string]struct {
		perChunk, atMost time.Duration
		sent             int
	}{
		"at the pace": {atPace, chunks * atPace, chunks * streamedBytes},
		"slower":      {writeTimeout - time.Second, 2 * writeTimeout, streamedBytes},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := &slowClient{timed{ResponseRecorder: httptest.NewRecorder()}, c.perChunk}
			handler := routerWith(&bytes.Buffer{}, func(c *gin.Context) {
				sendStreamed(c, &handlers.Streamed{MediaType: "text/csv", FileName: "a.csv", Close: func() {}, Write: func(w io.Writer) (err error) {
					for i := 0; i < chunks && err == nil; i++ {
						_, err = w.Write(chunkOf)
						if i == 0 || err != nil { // the first chunk is sent with the second
							continue
						}
						if left := time.Until(client.deadlines[len(client.deadlines)-1]); left < writeTimeout {
							t.Errorf("%s: the service has %s to produce the next chunk", name, left)
						}
					}
					return err
				}}, func() error { return nil })
			})
			began := time.Now()
			func() {
				defer func() { _ = recover() }()
				handler.ServeHTTP(client, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
			}()
			harness.Same(t, name+": bytes sent", c.sent, client.Body.Len())
			if took := time.Since(began); took > c.atMost {
				t.Errorf("%s: it took %s", name, took)
			}
		})
	}
}

// Two clients of an organization that do not read prevent a third from exporting, but affect nothing else. Once
// they are gone, their exports release everything.
func TestAFewExportsAreUnderWayAtATime(t *testing.T) {
	f := facadeOf(t, 2000)
	requests := make(chan struct{}, 2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { requests <- struct{}{} }()
		f.ServeHTTP(w, r)
	}))
	server.Listener = tinyBuffers{server.Listener}
	server.Start()
	t.Run("while they do not read", func(t *testing.T) {
		readNoFurther(t, server, 2, f.request(http.MethodGet, "/v2/finding-export?format=sarif", ""))
		answer := answerOf(f, f.request(http.MethodGet, "/v2/finding-export", ""))
		if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" || !strings.Contains(answer.Body.String(), `"code":"busy"`) {
			t.Errorf("a third export gets %d %s", answer.Code, answer.Body)
		}
		harness.NoError(t, "read and write during the exports", f.readAndWrite(5))
	})
	<-requests
	<-requests
	harness.Same(t, "exports under way", 0, f.exports.InUse())
	for range 3 { // HEAD needs no slot
		answer := answerOf(f, f.request(http.MethodHead, "/v2/finding-export", ""))
		if answer.Code != http.StatusOK || answer.Body.Len() != 0 || answer.Header().Get("Content-Type") == "" {
			t.Errorf("HEAD gets %d %v %s", answer.Code, answer.Header(), answer.Body)
		}
	}
}

// heapOf accepts a response and records the largest heap size meanwhile, at every third write: each takes long.
type heapOf struct {
	header http.Header
	body   bytes.Buffer
	writes int
	most   int64
}

func (h *heapOf) Header() http.Header { return h.header }
func (h *heapOf) WriteHeader(int)     {}
func (h *heapOf) Flush()              {}
func (h *heapOf) Write(chunk []byte) (int, error) {
	if h.writes++; h.writes%3 == 0 {
		h.most = max(h.most, harness.Heap())
	}
	return h.body.Write(chunk)
}

// An export of all findings holds one finding at a time.
func TestAnExportHoldsLittle(t *testing.T) {
	f := facadeOf(t, 2000)
	answer := &heapOf{header: http.Header{}}
	answer.body.Grow(16 << 20)
	for format, rows := range map[string]func(io.Reader) int{
		"csv": func(r io.Reader) int {
			all, err := csv.NewReader(r).ReadAll()
			harness.NoError(t, "read CSV", err)
			return len(all) - 1
		},
		"sarif": func(r io.Reader) (rows int) {
			log, err := sarif.Parse(r, sarif.Options{})
			harness.Must(t, err)
			for _, run := range log.Runs {
				rows += len(run.Results)
			}
			return rows
		},
	} {
		answer.body.Reset()
		before := harness.Heap()
		answer.writes, answer.most = 0, before
		f.ServeHTTP(answer, f.request(http.MethodGet, "/v2/finding-export?format="+format, ""))
		harness.Same(t, format+": findings", 2000, rows(bytes.NewReader(answer.body.Bytes())))
		const most = 1 << 20
		if answer.most > before+most {
			t.Errorf("%s: %d bytes more on the heap, want at most %d", format, answer.most-before, most)
		}
		if answer.writes < 6 {
			t.Errorf("%s: the heap was measured too seldom, in %d writes: export more findings", format, answer.writes)
		}
	}
}

// An export ends with its client, and when the service stops.
func TestAnExportEndsWithItsClient(t *testing.T) {
	f := facadeOf(t, 2000)
	ctx, gone := context.WithCancel(t.Context())
	gone()
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("got %v, want the connection to be aborted", err)
		}
		harness.Same(t, "places that are not given back", 0, f.exports.InUse())
	}()
	f.ServeHTTP(httptest.NewRecorder(), f.request(http.MethodGet, "/v2/finding-export", "").WithContext(ctx))
}
