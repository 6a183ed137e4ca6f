package triagepolicy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/internal/truncate"
)

// maxQuoted is the maximum length of a compiler's message in a condition, in characters that %q prints of it.
const maxQuoted = 512

// Quotable returns the error without double quotes, truncated to fit a condition's message.
func (e *CompileError) Quotable() string {
	return truncate.Quotable(strings.ReplaceAll(e.Error(), `"`, "'"), maxQuoted, "")
}

// ParseQuoted parses the error from a message that quotes it with %q. ok is false for any other message.
func ParseQuoted(message string) (e CompileError, ok bool) {
	from, to := strings.IndexByte(message, '"'), strings.LastIndexByte(message, '"')
	if from < 0 || from == to {
		return CompileError{}, false
	}
	text, err := strconv.Unquote(message[from : to+1])
	if err != nil {
		return CompileError{}, false
	}
	e.Message = text
	if place, rest, found := strings.Cut(text, ": "); found {
		if n, err := fmt.Sscanf(place, "line %d, column %d", &e.Line, &e.Column); err == nil && n == 2 {
			e.Message = rest
		}
	}
	return e, true
}
