package import_test

import (
	"fmt"

	"github.com/appsec-dev/findings-operator/test/builder"
)

// document returns a SARIF file of tool "lint".
func document(results ...builder.Result) string { return builder.SARIF("lint", results...) }

// numbered returns n results, each in a separate file.
func numbered(n int) []builder.Result {
	out := make([]builder.Result, n)
	for i := range out {
		out[i] = builder.Result{Rule: "R1", Path: fmt.Sprintf("src/file%03d.go", i), Message: fmt.Sprintf("problem %03d", i), Line: 10 + i}
	}
	return out
}
