package ownsecret

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxNameLength = 253
	// hashLength is in hexadecimal digits: 64 bits.
	hashLength = 16
)

// Name returns the owner's name with a suffix. If that is too long, the owner's name is cut, and a hash of it
// inserted.
func Name(owner, suffix string) string {
	if len(owner)+len(suffix) <= maxNameLength {
		return owner + suffix
	}
	sum := sha256.Sum256([]byte(owner))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	cut := owner[:maxNameLength-len(suffix)-hashLength-1]
	// Each part of a name between dots ends in a letter or a digit.
	return strings.TrimRight(cut, "-.") + "-" + hash + suffix
}
