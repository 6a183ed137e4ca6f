package signatures

import (
	"crypto/subtle"
	"encoding/hex"
	"strings"
)

// Bounds of a header value from outside. Ours hold two signatures of 47 bytes.
const (
	maxHeaderLength = 4096
	maxTokens       = 16
)

// Tokens splits a signature or a whole header value. A value over the bounds has none: it is
// not one that was sent.
func Tokens(header string) []string {
	if len(header) > maxHeaderLength {
		return nil
	}
	tokens := strings.Fields(header)
	if len(tokens) > maxTokens {
		return nil
	}
	return tokens
}

// Match reports for each recorded digest whether it is that of one of the tokens. Each token is
// compared with each digest, and each comparison takes the same time whatever it finds.
func Match(tokens, digests []string) []bool {
	recorded := make([][]byte, len(digests))
	for i, text := range digests {
		// What is no digest matches nothing: the comparison wants equal lengths.
		recorded[i], _ = hex.DecodeString(text)
	}
	matched := make([]int, len(digests))
	for _, token := range tokens {
		given := digest(token)
		for i := range recorded {
			matched[i] |= subtle.ConstantTimeCompare(given, recorded[i])
		}
	}
	out := make([]bool, len(digests))
	for i, m := range matched {
		out[i] = m == 1
	}
	return out
}
