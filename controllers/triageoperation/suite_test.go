package triageoperation

import (
	"testing"

	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var (
	env *testenv.Environment

	// shared are the controllers of findings and of operations.
	shared = controllertest.Share(finding.Settings{}.SetupWithManager, SetupWithManager)
)

func TestMain(m *testing.M) { controllertest.Main(m, &env) }
