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

// defaultPrefix is that of findings.
const defaultPrefix = "f-"

// name of the finding, a DNS label.
func name(scope Scope, r *Result, fingerprint string, ordinal int) string {
	fields := []string{
		scope.Repository, scope.Project, scope.Tool, scope.Category, r.Rule, r.Path, fingerprint, strconv.Itoa(ordinal),
	}
	if scope.Analysis != "" { // names are for ever, and those of no analysis are of before there was one
		fields = append(fields, scope.Analysis)
	}
	return cmp.Or(scope.Prefix, defaultPrefix) + Hash(fields...)
}

// Next returns the n-th name, from 1, to take in the place of one that another object has.
func Next(name string, n int) string {
	prefix, _, _ := strings.Cut(name, "-")
	return prefix + "-" + Hash(name, "taken", strconv.Itoa(n))
}

// Hash returns 26 characters, fit for a DNS label, of the SHA-256 of the fields. Two
// different lists of fields never hash the same bytes.
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
