package kinds

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/repository"
	"github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// countDelay is how long the controllers of repositories and reviews gather changes before they count.
const countDelay = time.Second

// The importer writes one object after the other; what counts them must not be written as often.

func TestManyFindingsLeadToFewWrites(t *testing.T) {
	controllertest.Start(t, env, repository.SetupWithManager)
	leadToFewWrites(t, builder.Repository("repo").Build(), &v1alpha1.RepositoryList{},
		func(name, ns string) client.Object { return builder.Finding(name).In(ns).Build() },
		func(written *v1alpha1.Repository) int32 { return written.Status.Counts.Findings })
}

func TestManyIssuesLeadToFewWrites(t *testing.T) {
	controllertest.Start(t, env, review.Settings{}.SetupWithManager)
	leadToFewWrites(t, builder.Review("review").Build(), &v1alpha1.ReviewList{},
		func(name, ns string) client.Object { return builder.ReviewIssue(name).In(ns).Build() },
		func(written *v1alpha1.Review) int32 { return written.Status.OpenIssueCount })
}

func leadToFewWrites[O testenv.Conditioned[S], S any](t *testing.T, parent O, list client.ObjectList,
	child func(name, ns string) client.Object, count func(written O) int32) {
	t.Helper()
	ns := env.Namespace(t)
	parent.SetNamespace(ns)
	env.Create(t, parent)
	harness.Eventually(t, func(g Gomega) { testenv.Ready(t, g, env, parent) })
	writes := testenv.Writes[O](t, env, list, ns)

	const n = 100
	var children []client.Object
	for i := range n {
		children = append(children, child(fmt.Sprintf("o-%d", i), ns))
	}
	began := time.Now()
	env.CreateAtOnce(t, children...)
	before := testenv.CountWrites(writes, func(written O) bool { return count(written) == n })
	NewWithT(t).Expect(before).To(BeNumerically("<=", int(time.Since(began)/countDelay)), "more than a write in each %s", countDelay)
}
