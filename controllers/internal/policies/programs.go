package policies

import (
	"sync"

	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// maxBytes bounds the memory of compiled expressions. When it is exceeded, about half of them are dropped, at random:
// organizations take turns, so to drop all, or the oldest, would drop those that are needed next.
const maxBytes = 128 << 20

// programs is the process-wide cache, shared by all controllers that evaluate policies.
var programs = &compiler{known: map[string]compiled{}, most: maxBytes}

// Compile compiles the expression, or returns the cached program.
func Compile(match string) (*triagepolicy.Program, error) { return programs.compile(match) }

// compiler caches compiled programs.
type compiler struct {
	most int

	mu    sync.Mutex
	known map[string]compiled
	bytes int
}

// compiled is a program or a compile error.
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
		return program, err // another goroutine compiled it meanwhile
	}
	size := triagepolicy.Footprint(match, program)
	if c.bytes+size > c.most {
		c.dropHalf()
	}
	c.known[match] = compiled{program, err}
	c.bytes += size
	return program, err
}

// dropHalf drops programs, in the random order of a map, until half of the memory is free.
func (c *compiler) dropHalf() {
	for match, known := range c.known {
		if c.bytes <= c.most/2 {
			return
		}
		delete(c.known, match)
		c.bytes -= triagepolicy.Footprint(match, known.program)
	}
}
