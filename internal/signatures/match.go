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

// Tokens splits a signature or a whole header value. It returns nothing for a value that exceeds the bounds,
// because such a value was never sent.
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

// Match reports for each recorded digest whether it belongs to one of the tokens. Each token is
// compared with each digest, in constant time.
func Match(tokens, digests []string) []bool {
	recorded := make([][]byte, len(digests))
	for i, text := range digests {
		// A value of another length than a digest matches nothing: the comparison needs equal lengths.
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
