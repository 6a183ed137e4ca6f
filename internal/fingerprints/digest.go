package fingerprints

import (
	"crypto/sha256"
	"strings"
	"unicode"
)

// shortBytes is 40 bits: enough to distinguish the results of one rule, and too short to reveal a secret.
const shortBytes = 5

// ShortDigest returns a digest of 8 characters for a text; "" for "".
func ShortDigest(s string) string {
	if s == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(s))
	return lowerBase32.EncodeToString(sum[:shortBytes])
}

// CodeDigest returns a digest of code, ignoring white space; "" for code that its tool hides.
func CodeDigest(code string) string {
	if IsPlaceholder(code) {
		return ""
	}
	return ShortDigest(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, code))
}
