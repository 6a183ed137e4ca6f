// Package etag formats entity tags and evaluates the conditions of requests (RFC 9110, sections 8.8.3 and
// 13.1).
package etag

import (
	"slices"
	"strings"
)

// compressedSuffix distinguishes the tag of a compressed body from that of the plain one: they are the same
// state in different bytes.
const compressedSuffix = "-gzip"

// maxTags bounds the work that one header can cause.
const maxTags = 64

// Format returns the tag of a state as a header value. The state must not contain quotation marks.
func Format(state string, compressed bool) string {
	if compressed {
		state += compressedSuffix
	}
	return `"` + state + `"`
}

// Plain returns a tag from Format as that of the plain body.
func Plain(tag string) string { return strings.Replace(tag, compressedSuffix+`"`, `"`, 1) }

// Condition is the condition in the header If-Match or If-None-Match. The zero value is that of a request
// without the header, or with an empty one.
type Condition struct {
	given, any bool
	states     []string
}

// IfMatch parses the values of If-Match. A weak tag matches nothing there.
func IfMatch(values []string) Condition { return parse(values, false) }

// IfNoneMatch parses the values of If-None-Match. Weak tags match too: a proxy may have weakened a tag.
func IfNoneMatch(values []string) Condition { return parse(values, true) }

// parse treats an invalid tag as one that matches nothing: a condition must not get lost. No state contains a
// comma, so a tag with a comma does no harm.
func parse(values []string, weak bool) Condition {
	if !slices.ContainsFunc(values, func(value string) bool { return strings.Trim(value, " \t") != "" }) {
		return Condition{}
	}
	condition := Condition{given: true}
	for text := range strings.SplitSeq(strings.Join(values, ","), ",") {
		text = strings.TrimSpace(text)
		if text == "*" {
			condition.any = true
			continue
		}
		if weak {
			text = strings.TrimPrefix(text, "W/")
		}
		if len(condition.states) == maxTags {
			break
		}
		if state, ok := unquote(text); ok {
			condition.states = append(condition.states, strings.TrimSuffix(state, compressedSuffix))
		}
	}
	return condition
}

func unquote(text string) (string, bool) {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return "", false
	}
	return text[1 : len(text)-1], true
}

// Given reports whether the request has the header, with a value.
func (c Condition) Given() bool { return c.given }

// NamesStates reports whether the request has the header, and the header does not name "*".
func (c Condition) NamesStates() bool { return c.given && !c.any }

// Names reports whether the header names that state, or "*".
func (c Condition) Names(state string) bool { return c.any || slices.Contains(c.states, state) }
