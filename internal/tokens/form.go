package tokens

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Members of a token that are read, or that would restrict it in a way that is not implemented here.
var (
	headerMembers = []string{"alg", "kid", "typ", "crit"}
	claimMembers  = []string{"iss", "sub", "org", "jti", "iat", "exp", "nbf"}
)

// checkForm refuses correctly signed tokens that we never issue: with members that two readers could read differently,
// with times that are not numbers, and with conditions that are not checked here. RFC 7515, section 4.1.11, requires
// refusing a token with an unknown critical member; we never issue a token that is not valid yet.
func checkForm(token string) error {
	header, rest, _ := strings.Cut(token, ".")
	claims, _, _ := strings.Cut(rest, ".")
	given, err := members(header, headerMembers)
	if err != nil {
		return err
	}
	if given["crit"] != nil {
		return fmt.Errorf("%w: unknown critical header", ErrMalformed)
	}
	if given, err = members(claims, claimMembers); err != nil {
		return fmt.Errorf("%w: not an object with each member once", ErrClaims)
	}
	if given["nbf"] != nil {
		return fmt.Errorf("%w: nbf is not allowed", ErrClaims)
	}
	for _, name := range []string{"iat", "exp"} {
		if bytes.HasPrefix(given[name], []byte(`"`)) {
			return fmt.Errorf("%w: %s must be a number", ErrClaims, name)
		}
	}
	return nil
}

// members reads a part of a token. It refuses a duplicate name, and a name that differs from a known one
// only in case, which encoding/json would accept as that one.
func members(part string, known []string) (map[string]json.RawMessage, error) {
	content, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return nil, ErrMalformed
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	if opened, err := decoder.Token(); err != nil || opened != json.Delim('{') {
		return nil, ErrMalformed
	}
	out := map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, ErrMalformed
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, ErrMalformed
		}
		if _, again := out[name]; again || misspelt(name, known) {
			return nil, fmt.Errorf("%w: a member occurs twice", ErrMalformed)
		}
		out[name] = value
	}
	return out, nil
}

func misspelt(name string, known []string) bool {
	return slices.ContainsFunc(known, func(k string) bool { return name != k && strings.EqualFold(name, k) })
}
