package fingerprints

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// nameLength is how many base32 characters of the hash a name keeps: 130 bits.
const nameLength = 26

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// defaultPrefix is the prefix of findings.
const defaultPrefix = "f-"

// name returns the name of the finding, a DNS label.
func name(scope Scope, r *Result, fingerprint string, ordinal int) string {
	fields := []string{
		scope.Repository, scope.Project, scope.Tool, scope.Category, r.Rule, r.Path, fingerprint, strconv.Itoa(ordinal),
	}
	if scope.Analysis != "" { // only if set: names without an analysis must never change
		fields = append(fields, scope.Analysis)
	}
	return cmp.Or(scope.Prefix, defaultPrefix) + Hash(fields...)
}

// Next returns the n-th alternative, from 1, for a name that another object has.
func Next(name string, n int) string { return derived(name, "taken", n) }

// derived returns the n-th name, from 1, that is derived from another for a reason.
func derived(name, reason string, n int) string {
	prefix, _, _ := strings.Cut(name, "-")
	return prefix + "-" + Hash(name, reason, strconv.Itoa(n))
}

// Hash returns 26 characters, valid in a DNS label, of the SHA-256 of the fields. Different lists of fields are always
// encoded as different bytes.
func Hash(fields ...string) string {
	sum := sha256.Sum256([]byte(frame(fields...)))
	return lowerBase32.EncodeToString(sum[:])[:nameLength]
}

// frame joins fields unambiguously: each is preceded by its length.
func frame(fields ...string) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(strconv.Itoa(len(f)))
		b.WriteByte(':')
		b.WriteString(f)
	}
	return b.String()
}
