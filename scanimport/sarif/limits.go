package sarif

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
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

// What is read is bounded too, because a file can be small and stand for much: a list of empty
// objects takes thirty times its size in memory, and a message with a thousand places to fill in, or
// a path on a long base, comes once for each result. No scanner writes what these bounds refuse or
// cut. Together they keep what Parse holds within a small multiple of Limits.Bytes.
const (
	// mostElement is how large one value may be that is read as a whole, in bytes.
	mostElement = 4 << 20
	// mostText is how much of a text is kept, in bytes: all of the 16,000 characters that the
	// longest text of a finding has.
	mostText = 64 << 10
	// mostURI is how much of a location's URI is kept, in bytes: four for each character of a path.
	mostURI = 4 << 10
	// mostRules of a file, all components together.
	mostRules = 100_000
	// mostArtifacts of a run.
	mostArtifacts = 1_000_000
	// mostParts of a run: extensions, invocations, provenance.
	mostParts = 1_000
	// mostValues of a short list of one rule or result: tags, arguments, fingerprints.
	mostValues = 256
	// mostLogical of the logical locations of one location.
	mostLogical = 16
	// mostLevels of a hierarchical rule id that are looked up.
	mostLevels = 16
)

// budget is how much text may be made that is not in the file as it is: it is refused with more.
type budget struct{ left int64 }

// spend takes n bytes, and reports whether they are there.
func (b *budget) spend(n int) bool {
	b.left -= int64(n)
	return b.left >= 0
}

// keep drops what is behind the first entries.
func keep[T any](list []T, most int) []T {
	if len(list) <= most {
		return list
	}
	return slices.Clone(list[:most])
}

// keepOf is keep for a map, by its names in order.
func keepOf[T any](from map[string]T, most int) map[string]T {
	if len(from) <= most {
		return from
	}
	out := make(map[string]T, most)
	for _, name := range slices.Sorted(maps.Keys(from))[:most] {
		out[name] = from[name]
	}
	return out
}

// shorten keeps the beginning of a text, in memory of its own.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:most], ""))
}

// TooLargeError is for a file that is larger than Limits.Bytes.
type TooLargeError struct{ Bytes int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("larger than %d MiB: split the file, or have the scanner report less", e.Bytes>>20)
}

// mostBlanks is how many blanks between two tokens are passed on. The decoder looks at all of them again with each
// piece that it reads: the time would grow with their square.
const mostBlanks = 64 << 10

// boundedReader fails once its source is longer, or nested deeper, than the limits say, and leaves out blanks behind
// mostBlanks. Depth is counted as the bytes go by, so that no deep value is ever held in memory.
type boundedReader struct {
	source    io.Reader
	limits    Limits
	read      int64
	depth     int
	blanks    int
	inString  bool
	escaped   bool
	violation error
}

func (r *boundedReader) Read(p []byte) (int, error) {
	for {
		n, err := r.source.Read(p)
		if n, err = r.pass(p[:n], err); n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// pass counts what was read, and returns how much of it is passed on.
func (r *boundedReader) pass(read []byte, err error) (int, error) {
	if r.violation != nil {
		return 0, r.violation
	}
	r.read += int64(len(read))
	if r.read > r.limits.Bytes {
		r.violation = &TooLargeError{Bytes: r.limits.Bytes}
		return 0, r.violation
	}
	kept := 0
	for _, b := range read {
		if r.step(b); r.depth > r.limits.Depth {
			r.violation = fmt.Errorf("nested deeper than %d levels: no scanner writes that", r.limits.Depth)
			return 0, r.violation
		}
		if r.blanks <= mostBlanks {
			read[kept] = b
			kept++
		}
	}
	return kept, err
}

func (r *boundedReader) step(b byte) {
	if !r.inString && (b == ' ' || b == '\t' || b == '\n' || b == '\r') {
		r.blanks++
		return
	}
	r.blanks = 0
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
