package finding

import (
	"context"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/controllers/reviewissue"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var (
	env *testenv.Environment

	// storing stores all statuses, and implying only those that do not follow from the creation of a finding.
	storing  = controllertest.Share(Settings{}.SetupWithManager, reviewissue.SetupWithManager)
	implying = controllertest.Share(func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
		impliedStatuses = NewImplied()
		return Settings{Implied: impliedStatuses}.SetupWithManager(ctx, mgr, options)
	})

	// impliedStatuses holds the findings that the running implying controllers left without a status. Only tests that
	// started these may read it.
	impliedStatuses *implied.Statuses
)

func TestMain(m *testing.M) { controllertest.Main(m, &env) }
