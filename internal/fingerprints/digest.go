package fingerprints

import (
	"crypto/sha256"
	"strings"
	"unicode"
)

// shortBytes are 40 bits: enough to tell results of one rule apart, and no copy of what may be a secret.
const shortBytes = 5

// ShortDigest is 8 characters that stand for a text; "" for "".
func ShortDigest(s string) string {
	if s == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(s))
	return lowerBase32.EncodeToString(sum[:shortBytes])
}

// CodeDigest stands for code, white space aside. Code that its tool hides is none.
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
