// Package export writes findings, as many as there are, in the formats of other programs. Writers hold one finding at a
// time.
package export

import (
	"iter"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// Findings are yielded one by one; an error is the last that is yielded.
type Findings = iter.Seq2[*openapi.FindingFull, error]

// text is the value of a fixed set, "" where it is not known.
func text[T ~string](value *T) string {
	if value == nil {
		return ""
	}
	return string(*value)
}
