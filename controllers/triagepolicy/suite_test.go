package triagepolicy

import (
	"testing"

	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/controllers/reviewissue"
	"github.com/appsec-dev/findings-operator/controllers/scan"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

// shared are the controllers that have to do with policies.
var shared = controllertest.Share(finding.Settings{}.SetupWithManager, scan.Settings{}.SetupWithManager,
	review.Settings{}.SetupWithManager, reviewissue.SetupWithManager, SetupWithManager)

func TestMain(m *testing.M) { controllertest.Main(m, &env) }
