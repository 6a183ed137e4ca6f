package sarif

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Limits bounds the input of Parse.
type Limits struct {
	// Bytes is the size of the file.
	Bytes int64
	// Depth is how deep arrays and objects are nested.
	Depth int
	// Results counts those of all runs.
	Results int
	// Runs counts the runs of the file.
	Runs int
}

// DefaultLimits allows any file whose findings a cluster could hold.
var DefaultLimits = Limits{Bytes: 256 << 20, Depth: 256, Results: 100_000, Runs: 1_000}

// These bound what is kept of a file, because a small file can expand to much more: a list of empty objects takes
// thirty times its size in memory, and a message with a thousand placeholders, or a path with a long base, expands once
// per result. No scanner writes what these bounds refuse or cut. Together they keep the memory that Parse uses to a
// small multiple of the file's size, apart from the results and rules themselves, which Limits.Results and maxRules
// bound.
const (
	// maxElement bounds a value that is read as a whole, in bytes.
	maxElement = 4 << 20
	// maxText bounds the stored part of a text, in bytes: enough for the 16,000 characters of a finding's longest
	// text.
	maxText = 64 << 10
	// maxURI bounds the stored part of a location's URI, in bytes: four for each character of a path.
	maxURI = 4 << 10
	// maxRules bounds the rules of a file, all components together.
	maxRules = 100_000
	// maxArtifacts bounds the artifacts of a run.
	maxArtifacts = 1_000_000
	// maxParts bounds the extensions, invocations and provenance of a run.
	maxParts = 1_000
	// maxValues bounds the short lists of a rule or result: tags, arguments, fingerprints.
	maxValues = 256
	// maxLogical bounds the logical locations of one location.
	maxLogical = 16
	// spareLists is how many bytes of memory the entries of a file's lists may take, and listsPerByte how many more per
	// byte of the file. Those of real results take less than one.
	spareLists   = 32 << 20
	listsPerByte = 2
	// spareMessage is how many bytes of a rule's message each result that refers to it by id may use for free: those of
	// most tools are shorter.
	spareMessage = 512
	// maxLevels bounds how many levels of a hierarchical rule id are looked up.
	maxLevels = 16
)

// budget is how much text may be generated from the file's own. A file that needs more is refused. This also bounds the
// time: text that is generated again for each reference is counted each time, even if little of it remains.
type budget struct{ left int64 }

// spend takes n bytes and reports whether the budget allows them.
func (b *budget) spend(n int) bool {
	b.left -= int64(n)
	return b.left >= 0
}

// listed returns how many bytes of memory the entries of all lists and maps in a value take, without their texts.
func listed(v reflect.Value) int64 {
	var n int64
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			n += listed(v.Field(i))
		}
	case reflect.Map: // map values hold no lists
		n = int64(v.Len()) * (sizeOf(v.Type().Key()) + sizeOf(v.Type().Elem()))
	case reflect.Slice:
		n = int64(v.Cap()) * sizeOf(v.Type().Elem())
		for i := range v.Len() {
			n += listed(v.Index(i))
		}
	}
	return n
}

func sizeOf(t reflect.Type) int64 { return int64(t.Size()) } //nolint:gosec // the size of a type of this package

// keep drops all entries after the first ones.
func keep[T any](list []T, most int) []T {
	if len(list) <= most {
		return list
	}
	return slices.Clone(list[:most])
}

// keepOf is keep for a map, in the order of its keys.
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

// shorten returns a copy of the beginning of a text.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:most], ""))
}

// MinEntry is a third of the memory that a result or rule takes while a file is read, even if it is empty, in bytes:
// usual files take about three times their size.
const MinEntry = 640

// reportLess is the advice in errors about files that are too large.
const reportLess = "have the scanner report less, or split the file and pass all parts to one command of kubectl " +
	"findings: what an import does not contain counts as fixed"

// TooLargeError reports a file that is larger than Limits.Bytes.
type TooLargeError struct{ Bytes int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("larger than %d MiB: %s", e.Bytes>>20, reportLess)
}

// maxBlanks bounds the blanks between two tokens that are passed on. The decoder scans all of them again for each piece
// that it reads, which would take quadratic time.
const maxBlanks = 64 << 10

// boundedReader fails if its source is longer, or nested deeper, than the limits, and drops blanks beyond maxBlanks. It
// counts the depth while reading, so that a deeply nested value is never held in memory.
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

// pass checks what was read against the limits, and returns how much of it to pass on.
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
		if r.blanks <= maxBlanks {
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
