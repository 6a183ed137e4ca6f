package policies

import (
	"sync"

	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// maxBytes bounds what compiled expressions take in memory. Beyond it all are compiled anew as they are needed.
const maxBytes = 128 << 20

// programs are those of the process: every controller that evaluates policies has the same.
var programs = &compiler{known: map[string]compiled{}, most: maxBytes}

// compiler keeps what it has compiled.
type compiler struct {
	most int

	mu    sync.Mutex
	known map[string]compiled
	bytes int
}

// compiled is a program, or why there is none.
type compiled struct {
	program *triagepolicy.Program
	err     error
}

func (c *compiler) compile(match string) (*triagepolicy.Program, error) {
	c.mu.Lock()
	known, found := c.known[match]
	c.mu.Unlock()
	if found {
		return known.program, known.err
	}
	program, err := triagepolicy.Compile(match)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.known[match]; found {
		return program, err // somebody else was faster
	}
	size := triagepolicy.Footprint(match, program)
	if c.bytes+size > c.most {
		clear(c.known)
		c.bytes = 0
	}
	c.known[match] = compiled{program, err}
	c.bytes += size
	return program, err
}
