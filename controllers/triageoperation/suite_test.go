package triageoperation

import (
	"testing"

	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var (
	env *testenv.Environment

	both   = []controllertest.Setup{finding.Settings{}.SetupWithManager, SetupWithManager}
	shared = controllertest.Share(both...)
)

func TestMain(m *testing.M) { controllertest.Main(m, &env) }
