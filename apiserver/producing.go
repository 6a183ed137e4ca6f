package apiserver

import (
	"context"
	"io"

	"golang.org/x/sync/semaphore"
)

// maxProducing is how many streamed bodies are produced at the same time, since each keeps a core busy.
const maxProducing = 4

// producing holds the turns of streamed bodies. Whoever produces one has a turn, except while its client is sent a
// chunk.
var producing = semaphore.NewWeighted(maxProducing)

// takeTurn waits for a turn. The wait is short, even for a client that is gone: whoever has a turn produces one chunk.
func takeTurn() { _ = producing.Acquire(context.Background(), 1) } // it fails only if its context ends

// yielding gives up the turn of a body while its client is sent a chunk, which may take as long as the client likes.
type yielding struct{ to io.Writer }

func (y yielding) Write(chunk []byte) (int, error) {
	producing.Release(1)
	defer takeTurn()
	return y.to.Write(chunk)
}
