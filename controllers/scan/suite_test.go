package scan

import (
	"testing"

	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

// shared are the controllers of scans and of findings.
var shared = controllertest.Share(Settings{}.SetupWithManager, finding.Settings{}.SetupWithManager)

func TestMain(m *testing.M) { controllertest.Main(m, &env) }
