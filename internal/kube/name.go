package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// IsName reports whether a resource can have the name. For some other names a client returns an error without a
// request.
func IsName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

const (
	maxNameLength = validation.DNS1123SubdomainMaxLength
	// hashLength is in hexadecimal digits: 64 bits.
	hashLength = 16
)

// SuffixedName returns the owner's name with a suffix. If that is too long, the owner's name is cut, and a hash of it
// inserted.
func SuffixedName(owner, suffix string) string {
	if len(owner)+len(suffix) <= maxNameLength {
		return owner + suffix
	}
	sum := sha256.Sum256([]byte(owner))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	cut := owner[:maxNameLength-len(suffix)-hashLength-1]
	// Each part of a name between dots ends in a letter or a digit.
	return strings.TrimRight(cut, "-.") + "-" + hash + suffix
}
