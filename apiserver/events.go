package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/changes"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
)

const (
	// eventPatience is how long a client may take to receive one write. A client that does not read is
	// disconnected, and can resume.
	eventPatience = 5 * time.Second
	// heartbeat is how often something is sent without changes, because proxies treat a silent connection as dead.
	heartbeat = 15 * time.Second
	// eventBatch is the maximum number of changes per write.
	eventBatch = 256
	// maxKept is the size up to which a stream keeps its buffer for the next write.
	maxKept = 16 << 10
	// firstReconnect and lastReconnect bound the delay after which clients are told to reconnect. It is random,
	// so that they do not all return at once.
	firstReconnect, lastReconnect = time.Second, 4 * time.Second
)

// eventStream sends changes to one client.
type eventStream struct {
	events *handlers.Events
	client *pacedWriter
	flush  func()
	resets func()

	// at is the position that was last sent to the client; positionSent is set unless a later one is due.
	at           changes.Position
	positionSent bool
	// wake is closed once there are more changes.
	wake <-chan struct{}
	out  bytes.Buffer
}

// sendEvents sends changes as they come, until the client disconnects, the key expires or changes, or the
// process stops. An open stream costs only this goroutine and a small buffer.
func (r *router) sendEvents(c *gin.Context, events *handlers.Events) {
	defer events.Close()
	kind, silence := r.silenceBehind(events)
	if err := r.checkSilence(c, kind, silence); err != nil {
		fail(c, err)
		return
	}
	header := c.Writer.Header()
	header.Set("Content-Type", "text/event-stream")
	// Without this header Nginx would buffer the events.
	header.Set("X-Accel-Buffering", "no")
	c.Status(http.StatusOK)
	if c.Request.Method == http.MethodHead {
		c.Writer.WriteHeaderNow()
		return
	}
	stateOf(c).lasting = !events.Once
	control := http.NewResponseController(c.Writer)
	// The request was read, so its read deadline must not end the connection. The error is ignored: a writer
	// without deadlines has no connection.
	_ = control.SetReadDeadline(time.Time{})
	client := &pacedWriter{to: c.Writer, control: control, patience: eventPatience}
	if events.Once { // it takes no stream's place, but the changes of a busy organization may never end
		client.end = time.Now().Add(writeTimeout)
	}
	stream := &eventStream{events: events, client: client, flush: c.Writer.Flush, resets: r.metrics.resets.Inc}
	fmt.Fprintf(&stream.out, "retry: %d\n\n", (firstReconnect + rand.N(lastReconnect-firstReconnect)).Milliseconds()) //nolint:gosec // to spread load
	r.follow(c, stream)
}

func (r *router) follow(c *gin.Context, stream *eventStream) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		changed := r.auth.Changed()
		left, admitted := r.stillAdmitted(c)
		if !admitted || !stream.send() {
			return
		}
		if stream.wake == nil { // there is more to send
			continue
		}
		if stream.events.Once {
			return
		}
		select {
		case <-stream.wake:
		case <-changed:
		case <-time.After(left):
		case <-beat.C:
			if !r.beat(stream) {
				return
			}
			r.auth.MarkUsed(stateOf(c).identity)
		case <-c.Request.Context().Done():
			return
		case <-r.leaving:
			stream.positionSent = false
			stream.send()
			return
		}
	}
}

// beat keeps the client informed that the stream is alive. It returns false if one of the stream's kinds has been
// silent for too long: the stream then ends, and the client connects again and is told that the data is stale.
func (r *router) beat(stream *eventStream) bool {
	if _, silence := r.silenceBehind(stream.events); r.isStale(silence) {
		return false
	}
	stream.beat()
	return true
}

// stillAdmitted reports whether the key is still valid with the same scopes, and for how long if nobody changes it.
func (r *router) stillAdmitted(c *gin.Context) (left time.Duration, ok bool) {
	now, s := time.Now(), stateOf(c)
	identity, err := s.authenticate()
	ok = err == nil && identity.KeyUID == s.identity.KeyUID && identity.Organization == s.identity.Organization &&
		slices.Equal(identity.Allowed(), s.identity.Allowed())
	return identity.ExpiresAt.Sub(now), ok
}

// send sends the next batch, and reports whether the stream continues.
func (e *eventStream) send() bool {
	batch := e.events.Reader.Next(eventBatch)
	if batch.Ended {
		return false
	}
	if batch.Reset {
		e.resets()
		id := batch.At
		if len(batch.After) > 0 { // the place before the first change
			id = batch.After[0]
			id[batch.Changes[0].Kind] = batch.Changes[0].Version - 1
		}
		e.event("reset", id, []byte("{}"))
	}
	for i := range batch.Changes {
		data, err := json.Marshal(&batch.Changes[i])
		if err != nil {
			panic(err) // strings always encode
		}
		e.event(batch.Changes[i].Kind.String(), batch.After[i], data)
	}
	e.wake = batch.Wake
	if !e.positionSent && batch.Wake != nil {
		e.place(batch.At)
	}
	return e.write()
}

// beat keeps the connection alive, and lets send advance the client's position past changes that are not meant for it,
// so that the log still holds the position even if the client gets no events for long.
func (e *eventStream) beat() {
	e.out.WriteString(":\n\n")
	e.positionSent = false
}

func (e *eventStream) event(name string, at changes.Position, data []byte) {
	fmt.Fprintf(&e.out, "event: %s\nid: %s\ndata: %s\n\n", name, e.events.ID(at), data)
	e.at, e.positionSent = at, true
}

// place advances the client's position without an event.
func (e *eventStream) place(at changes.Position) {
	if e.positionSent = true; e.at != at {
		fmt.Fprintf(&e.out, "id: %s\n\n", e.events.ID(at))
		e.at = at
	}
}

// write sends the buffered output, and reports whether the client received it.
func (e *eventStream) write() bool {
	if e.out.Len() == 0 {
		return true
	}
	_, err := e.client.Write(e.out.Bytes())
	e.out.Reset()
	if e.out.Cap() > maxKept {
		e.out = bytes.Buffer{}
	}
	if err == nil {
		e.flush()
	}
	// HTTP/2 would end a silent stream when its deadline passes.
	_ = e.client.control.SetWriteDeadline(time.Time{})
	return err == nil
}
