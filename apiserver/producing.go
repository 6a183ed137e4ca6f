package apiserver

import (
	"context"
	"io"

	"github.com/appsec-dev/findings-operator/apiserver/slots"
)

// maxProducing is how many streamed bodies are produced at the same time, since each keeps a core busy.
const maxProducing = 4

// producing holds the turns of streamed bodies, one per organization. Whoever produces a body has a turn, except while
// its client is sent a chunk, which may take as long as the client likes.
var producing = slots.NewTurns(maxProducing)

// produced is the client of a streamed body, which is produced in turns.
type produced struct {
	to           io.Writer
	ctx          context.Context // of the request; io.Writer takes none
	organization string
	end          func() // gives the turn back; nil without one
}

// takeTurn waits for a turn. Its error is the cause of the request's end.
func (p *produced) takeTurn() (err error) {
	p.end, err = producing.Take(p.ctx, p.organization)
	return err
}

func (p *produced) endTurn() {
	if p.end != nil {
		p.end()
	}
	p.end = nil
}

// Write sends a chunk without holding a turn.
func (p *produced) Write(chunk []byte) (int, error) {
	p.endTurn()
	n, err := p.to.Write(chunk)
	if err != nil {
		return n, err
	}
	return n, p.takeTurn()
}
