// Package bench_test measures how the controllers' costs grow with the number of findings.
package bench_test

import (
	"testing"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }
