package triagepolicy

import (
	"fmt"
	"strconv"
	"strings"
)

// maxQuoted is how much of a compiler's message a condition has room for, in characters.
const maxQuoted = 512

// Quotable is the error without what would end a quotation, as long as the message of a condition may hold it.
func (e *CompileError) Quotable() string {
	message := []rune(strings.ReplaceAll(e.Error(), `"`, "'"))
	return string(message[:min(len(message), maxQuoted)])
}

// ParseQuoted reads the error back from a message that quotes it, as %q does. ok is false for any other message.
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
