// Package export writes any number of findings in the formats of other programs. Writers hold one finding at a
// time.
package export

import (
	"iter"

	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// Findings yields findings one by one. After an error it yields nothing more.
type Findings = iter.Seq2[*openapi.FindingFull, error]

// text returns an enumerated value, or "" for nil.
func text[T ~string](value *T) string { return string(ptr.Deref(value, "")) }
