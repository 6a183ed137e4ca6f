package scan

import (
	"testing"

	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

// both are the controllers of scans and of findings.
var both = []controllertest.Setup{Settings{}.SetupWithManager, finding.Settings{}.SetupWithManager}

var shared = controllertest.Share(both...)

func TestMain(m *testing.M) { controllertest.Main(m, &env) }
