package leaks

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"time"
)

// minLength is the minimum length of a needle: a shorter one could match by chance.
const minLength = 16

// formsOf returns the texts in which a Secret's base64 value might appear. Public values have none.
func formsOf(key, value string) []string {
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil || strings.Contains(key, "public") {
		return nil
	}
	plain := string(decoded)
	if _, err := time.Parse(time.RFC3339, plain); err == nil {
		return nil // an expiry time is not secret
	}
	forms := []string{value, plain, url.QueryEscape(plain)}
	switch {
	case strings.HasPrefix(plain, "whsec_"):
		forms = append(forms, strings.TrimPrefix(plain, "whsec_"))
	case strings.HasPrefix(plain, "-----BEGIN"):
		// The first line is the same for all keys.
		forms = append(forms, strings.Split(plain, "\n")[1])
	case strings.Count(plain, ".") == 2:
		// The signature of a token.
		forms = append(forms, plain[strings.LastIndex(plain, ".")+1:])
	}
	forms = slices.DeleteFunc(forms, func(form string) bool { return len(form) < minLength })
	slices.Sort(forms)
	return slices.Compact(forms)
}
