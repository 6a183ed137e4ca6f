package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// tinyBuffer is the size of a test's socket buffers, so that little data is in flight.
const tinyBuffer = 4 << 10

// tinyBuffers makes the system buffer little of a response that nobody reads.
type tinyBuffers struct{ net.Listener }

func (l tinyBuffers) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if tcp, ok := connection.(*net.TCPConn); ok {
		err = tcp.SetWriteBuffer(tinyBuffer)
	}
	return connection, err
}

// While a client does not read its response, all others can read and write.
func TestASlowReaderBlocksNobody(t *testing.T) {
	f := facadeOf(t, 2000)
	var slow atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		slow.Add(1)
		defer slow.Add(-1)
		f.ServeHTTP(struct{ http.ResponseWriter }{w}, r) // without deadlines
	}))
	server.Listener = tinyBuffers{server.Listener}
	server.Start()
	const readers = 8
	readNoFurther(t, server, readers, f.request(http.MethodGet, "/v2/findings?size=1000", ""))

	others := make(chan error, 1)
	go func() { others <- f.readAndWrite(50) }()
	select {
	case err := <-others:
		harness.NoError(t, "the others", err)
	case <-time.After(2 * time.Minute):
		t.Fatal("others wait for a client that does not read")
	}
	harness.Same(t, "answers under way at the end, else nobody was slow", int32(readers), slow.Load())
}

// A client that reads nothing is given up after one chunk's time, not the server's.
func TestEachChunkOfAnAnswerHasItsTime(t *testing.T) {
	f := facadeOf(t, 2000)
	for _, encoding := range []string{"identity", "gzip"} {
		request := f.request(http.MethodGet, "/v2/findings?size=1000", "")
		request.Header.Set("Accept-Encoding", encoding)
		answer := &timed{ResponseRecorder: httptest.NewRecorder()}
		before := time.Now()
		f.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK || answer.writes == 0 || len(answer.deadlines) < answer.writes {
			t.Fatalf("%s: %d, %d deadlines for %d writes", encoding, answer.Code, len(answer.deadlines), answer.writes)
		}
		for _, deadline := range answer.deadlines {
			if !deadline.After(before) || deadline.After(time.Now().Add(chunkPatience)) {
				t.Errorf("%s: a chunk has until %s, %s after the request", encoding, deadline, deadline.Sub(before))
			}
		}
	}
}

// A part has chunks of its own, each with its time.
func TestALongPartIsSentInChunks(t *testing.T) {
	long := bytes.Repeat([]byte("finding "), chunkBytes/2)
	answer := &timed{ResponseRecorder: httptest.NewRecorder()}
	context, _ := gin.CreateTestContext(answer)
	context.Request = httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	sendBody(context, http.StatusOK, content.Of([]byte("[")), content.Of(long), content.Of([]byte("]")))
	harness.Same(t, "it came whole", true, answer.Body.String() == "["+string(long)+"]")
	if answer.writes < len(long)/(chunkBytes+pieceBytes) || answer.longest > chunkBytes+pieceBytes {
		t.Errorf("%d bytes came in %d writes of at most %d", len(long), answer.writes, answer.longest)
	}
	harness.Same(t, "deadlines", answer.writes, len(answer.deadlines))
}

// The read model holds a repository with its projects as one part, which has no bound.
func TestAClientThatDoesNotReadALongRepositoryHoldsOneChunk(t *testing.T) {
	repository := builder.Repository("mono").Build()
	objects := []client.Object{repository}
	for i := range 1000 {
		project := builder.Project(fmt.Sprint("project-", i)).Repository(repository.Name).Build()
		project.Spec.Purpose = strings.Repeat("x", 4096)
		objects = append(objects, project)
	}
	server := serverOf(t, nothingStored{}, objects...)
	for _, target := range []string{"/v2/repos/mono", "/v2/repos?size=1"} {
		client, done := newUnread(), make(chan struct{})
		before := harness.Heap()
		go func() {
			defer close(done)
			server.ServeHTTP(client, httptest.NewRequest(http.MethodGet, target, http.NoBody))
		}()
		<-client.asks
		if held := harness.Heap() - before; held > 4*chunkBytes {
			t.Errorf("%s: %d bytes more on the heap while nobody reads, want about %d", target, held, chunkBytes)
		}
		close(client.reads)
		<-done
		if client.Code != http.StatusOK || client.Body.Len() < 16*chunkBytes {
			t.Errorf("%s: %d, %d bytes: the answer must be long", target, client.Code, client.Body.Len())
		}
	}
}

// timed records the writes of an answer and their deadlines.
type timed struct {
	*httptest.ResponseRecorder
	writes, longest int
	deadlines       []time.Time
}

func (w *timed) Write(p []byte) (int, error) {
	w.writes++
	w.longest = max(w.longest, len(p))
	return w.ResponseRecorder.Write(p)
}

func (w *timed) SetWriteDeadline(at time.Time) error {
	w.deadlines = append(w.deadlines, at)
	return nil
}

// Clients that do not send the end of long bodies prevent others of their organization only from sending long ones.
func TestAFewLongBodiesAreReceivedAtATime(t *testing.T) {
	f := facadeOf(t, 2000)
	before := longBodies
	longBodies = slots.New(2, 1)
	t.Cleanup(func() { longBodies = before })
	const decision = `{"user_status":"active"}`
	long := decision + strings.Repeat(" ", longBody)
	patch := func(body io.Reader, length int) *httptest.ResponseRecorder {
		request := f.request(http.MethodPatch, "/v1/findings/f-00000001", decision)
		request.Body, request.ContentLength = io.NopCloser(body), int64(length)
		return answerOf(f, request)
	}
	slow, end := io.Pipe()
	answered := make(chan int, 1)
	go func() { answered <- patch(slow, -1).Code }()
	_, err := io.WriteString(end, long) // it is being received
	harness.Must(t, err)
	for what, c := range map[string]struct {
		body         string
		length, want int
	}{
		"a long body":              {long, len(long), http.StatusTooManyRequests},
		"a body of unknown length": {decision, -1, http.StatusTooManyRequests},
		"a short body":             {decision, len(decision), http.StatusOK},
	} {
		answer := patch(strings.NewReader(c.body), c.length)
		busy := strings.Contains(answer.Body.String(), `"code":"busy"`) && answer.Header().Get("Retry-After") != ""
		if answer.Code != c.want || busy != (c.want == http.StatusTooManyRequests) {
			t.Errorf("%s gets %d %.200s", what, answer.Code, answer.Body)
		}
	}
	harness.Must(t, end.Close())
	harness.Same(t, "status of the one whose end comes late", http.StatusOK, <-answered)
	if answer := patch(strings.NewReader(long), len(long)); answer.Code != http.StatusOK {
		t.Errorf("after that a long body gets %d %.200s", answer.Code, answer.Body)
	}
}

// readNoFurther lets clients send a request and read only the first byte of the response, which has several MB.
func readNoFurther(t *testing.T, server *httptest.Server, readers int, request *http.Request) {
	t.Helper()
	var connections []net.Conn
	for range readers {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		harness.Must(t, err)
		connections = append(connections, connection)
		harness.Must(t, connection.(*net.TCPConn).SetReadBuffer(tinyBuffer))
		harness.Must(t, request.Write(connection))
		_, err = connection.Read(make([]byte, 1))
		harness.Must(t, err)
	}
	t.Cleanup(func() {
		for _, connection := range connections {
			connection.Close() //nolint:errcheck // the test is over
		}
		server.Close()
	})
}

func (f *bigFacade) readAndWrite(times int) error {
	for i := range times {
		for _, ask := range []struct{ method, target, body string }{
			{http.MethodGet, "/v1/findings?size=100", ""},
			{http.MethodGet, "/v1/reviews?size=10", ""},
			{http.MethodPatch, fmt.Sprintf("/v1/findings/f-%08d", i), `{"user_status":"active"}`},
		} {
			answer := answerOf(f, f.request(ask.method, ask.target, ask.body))
			if answer.Code != http.StatusOK {
				return fmt.Errorf("%s %s: %d %s", ask.method, ask.target, answer.Code, answer.Body)
			}
		}
	}
	return nil
}
