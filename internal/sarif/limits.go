package sarif

import (
	"fmt"
	"io"
)

// Limits bound what Parse takes in.
type Limits struct {
	// Bytes of the file.
	Bytes int64
	// Depth of nested arrays and objects.
	Depth int
	// Results of all runs together.
	Results int
	// Runs of the file.
	Runs int
}

// DefaultLimits hold any file that a cluster could hold the findings of.
var DefaultLimits = Limits{Bytes: 256 << 20, Depth: 256, Results: 100_000, Runs: 1_000}

// boundedReader fails once its source is longer, or nested deeper, than the limits say.
// Depth is counted as the bytes go by, so that no deep value is ever held in memory.
type boundedReader struct {
	source    io.Reader
	limits    Limits
	read      int64
	depth     int
	inString  bool
	escaped   bool
	violation error
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.violation != nil {
		return 0, r.violation
	}
	n, err := r.source.Read(p)
	r.read += int64(n)
	if r.read > r.limits.Bytes {
		r.violation = fmt.Errorf("larger than %d MiB: split the file, or have the scanner report less", r.limits.Bytes>>20)
		return 0, r.violation
	}
	for _, b := range p[:n] {
		if r.step(b); r.depth > r.limits.Depth {
			r.violation = fmt.Errorf("nested deeper than %d levels: no scanner writes that", r.limits.Depth)
			return 0, r.violation
		}
	}
	return n, err
}

func (r *boundedReader) step(b byte) {
	switch {
	case r.escaped:
		r.escaped = false
	case r.inString && b == '\\':
		r.escaped = true
	case b == '"':
		r.inString = !r.inString
	case r.inString:
	case b == '{' || b == '[':
		r.depth++
	case b == '}' || b == ']':
		r.depth--
	}
}
