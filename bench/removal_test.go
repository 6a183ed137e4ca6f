package bench_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/project"
	"github.com/appsec-dev/findings-operator/controllers/repository"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// removedDefault is the number of findings in the removed repository, unless
	// FINDINGS_REMOVED_COUNT sets another.
	removedDefault = 3_000
	// removedLeast is how many findings per second must be removed even on a busy machine: 50,000
	// take 17 minutes. An idle machine removes some 600 per second.
	removedLeast = 50
)

// Removing a repository takes minutes and not hours, reports its progress, and writes little for
// it.
func TestRemovingARepositoryWithManyFindings(t *testing.T) {
	n := count(t, "FINDINGS_REMOVED_COUNT", removedDefault)
	controllertest.Start(t, env, repository.SetupWithManager, project.SetupWithManager)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "removal-"}}
	repo := builder.Repository("repo").Build()
	env.Create(t, ns)
	repo.Namespace = ns.Name
	env.Create(t, repo, builder.Project("one").In(ns.Name).Build(), builder.Project("two").In(ns.Name).Build())
	load(t, ns.Name, n)

	g := NewWithT(t)
	g.Eventually(func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, repo).Status.Counts.Findings).To(BeEquivalentTo(n - n/10))
	}).WithTimeout(harness.Patience).WithPolling(time.Second).Should(Succeed())
	writes := follow(t, repo)
	began := time.Now()
	g.Expect(env.Client.Delete(t.Context(), repo)).To(Succeed())
	seen := writes(harness.Patience + time.Duration(n/removedLeast)*time.Second)
	took := time.Since(began)
	t.Logf("%d findings were removed in %s, %.0f a second; status.removal.remaining was %v", n, took.Round(time.Second/10), float64(n)/took.Seconds(), seen.told)

	g.Expect(seen.total).To(BeEquivalentTo(n+2), "the findings, closed ones too, and two projects")
	g.Expect(seen.told).NotTo(BeEmpty())
	g.Expect(seen.told[0]).To(BeNumerically(">", n/2))
	for i := 1; i < len(seen.told); i++ {
		g.Expect(seen.told[i]).To(BeNumerically("<", seen.told[i-1]), "told anew without anything to tell")
	}
	// Conditions and finalizers also change, some six times.
	g.Expect(seen.writes).To(BeNumerically("<=", n/5_000+int(took/(10*time.Second))+8), "a removal must not write for each batch")
	left := testenv.List(t, g, env, &v1alpha1.FindingList{}, client.InNamespace(ns.Name), client.Limit(1))
	g.Expect(left.Items).To(BeEmpty())
}

// count returns the number in the environment variable.
func count(t *testing.T, variable string, or int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return or
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is no number of findings", variable, text)
	}
	return n
}

// load creates n findings, half of them in each project, every tenth closed.
func load(t *testing.T, ns string, n int) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			f := builder.Finding(fmt.Sprintf("f-%06d", i)).In(ns).Project("repo", []string{"one", "two"}[i%2]).Tool("gosec", v1alpha1.CategoryCode)
			if i%10 == 9 {
				f.Closed(time.Now(), "s")
			}
			return env.Client.Create(ctx, f.Build())
		})
	}
	harness.Must(t, group.Wait())
}

// followed is the observed course of a removal.
type followed struct {
	// writes counts the writes of the repository.
	writes int
	// told holds the values of status.removal.remaining, and total is the last value of
	// status.removal.total.
	told  []int32
	total int32
}

// follow watches the repository. The returned function waits until the repository is gone.
func follow(t *testing.T, repo *v1alpha1.Repository) func(time.Duration) followed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events, err := env.Client.Watch(ctx, &v1alpha1.RepositoryList{}, &client.ListOptions{
		Namespace: repo.Namespace, Raw: &metav1.ListOptions{ResourceVersion: repo.ResourceVersion},
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	return func(within time.Duration) followed {
		defer cancel()
		defer events.Stop()
		var out followed
		deadline := time.After(within)
		for {
			select {
			case e := <-events.ResultChan():
				if e.Type == watch.Deleted {
					return out
				}
				out.see(e.Object.(*v1alpha1.Repository))
			case <-deadline:
				t.Fatalf("the repository is still there after %s: %+v", within, out)
			}
		}
	}
}

func (f *followed) see(repo *v1alpha1.Repository) {
	f.writes++
	removal := repo.Status.Removal
	if removal == nil {
		return
	}
	f.total = removal.Total
	if n := len(f.told); n == 0 || f.told[n-1] != removal.Remaining {
		f.told = append(f.told, removal.Remaining)
	}
}
