package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// replicas returns two callers with a key of one organization, each at its own facade.
func replicas(t *testing.T) (*organization, [2]*caller) {
	t.Helper()
	o := newOrganization(t)
	second := o.on(ownServer(t, apiserver.Options{}))
	return o, [2]*caller{o.key("ci"), second.key("cd")}
}

// reconcile records the status of a finding, as its controller does, until ctx ends.
func (o *organization) reconcile(ctx context.Context, name string) error {
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		finding := &v1alpha1.Finding{}
		if err := controller.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: name}, finding); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		before := finding.DeepCopy()
		finding.Status = findingstate.Observe(finding, nil, time.Now())
		// After a conflict, the next round retries.
		_ = controller.Status().Patch(ctx, finding, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
			client.FieldOwner(v1alpha1.ControllerFieldManager))
		return false, nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Each of two replicas has four writers of the same finding, while its controller also writes: each
// patch is answered with the resulting state, none with 500, and no writer gets much less throughput
// than another.
func TestWritersOfOneFindingAllSucceed(t *testing.T) {
	o, callers := replicas(t)
	finding := o.finding(callers[0], builder.Finding("f-1"))
	o.shows(callers[1], finding)
	ctx, stop := context.WithCancel(t.Context())
	var controllers, writers sync.WaitGroup
	controllers.Go(func() { harness.NoError(t, "the controller", o.reconcile(ctx, "f-1")) })
	const enough = 25
	var mu sync.Mutex
	var written [8]int
	total := func() (sum int) {
		for _, n := range written {
			sum += n
		}
		return sum
	}
	more := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return total() < enough*len(written) && !t.Failed()
	}
	begun := time.Now()
	for n := range written {
		writers.Go(func() {
			for i := 0; more(); i++ {
				want := shown{UserStatus: []string{"muted", "active"}[i%2], Comments: fmt.Sprintf("writer %d, patch %d", n, i)}
				body := fmt.Sprintf(`{"user_status":%q,"comments":%q}`, want.UserStatus, want.Comments)
				a, err := callers[n%2].try(http.MethodPatch, "/v2/findings/f-1", body, header("Content-Type", "application/json"))
				if err != nil {
					t.Error(err)
					return
				}
				if got := decoded[shown](a); a.status != 200 || got.UserStatus != want.UserStatus || got.Comments != want.Comments {
					t.Errorf("%s: got %d %.200s", body, a.status, a.body)
				}
				mu.Lock()
				written[n]++
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	took := time.Since(begun)
	stop()
	controllers.Wait()
	harness.Same(t, "patches that were written, as they were answered", int64(total()), o.stored("f-1").Generation-1)
	least, most := slices.Min(written[:]), slices.Max(written[:])
	t.Logf("%d patches in %s: %v", total(), took.Round(time.Millisecond), written)
	if most > 3*least {
		t.Errorf("the writers had %v patches", written)
	}
}

// A finding with many writers does not delay writers of other findings: each finding has its own
// queue.
func TestABusyFindingDoesNotDelayOthers(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	busy := o.finding(c, builder.Finding("f-busy"))
	other := o.finding(c, builder.Finding("f-other"))
	findings := facadeClient(t).Findings
	done, err := findings.Turn(t.Context(), busy)
	harness.Must(t, err)
	defer done()
	doneOther, err := findings.Turn(t.Context(), other)
	harness.Must(t, err)
	doneOther()
	waits, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := findings.Turn(waits, busy); err == nil {
		t.Error("two writers have one finding")
	}
}

// A repository with an empty spec has no field owners, and therefore no time in managedFields: both
// replicas must still show the same time.
func TestTwoReplicasAndTheStatusShowOneTime(t *testing.T) {
	o, callers := replicas(t)
	repository := &v1alpha1.Repository{}
	repository.Namespace, repository.Name = o.namespace, "empty"
	o.create(repository)
	expect := func(reason string, want time.Time) {
		t.Helper()
		for _, c := range callers {
			harness.Eventually(t, func(g Gomega) {
				var got string
				for _, r := range decoded[listOf[shown]](c.get("/v2/repos")).Items {
					if r.ID == "empty" {
						got = r.UpdatedAt
					}
				}
				g.Expect(got).To(Equal(want.UTC().Format(time.RFC3339)), reason)
			})
		}
	}
	expect("at first it is the creation", repository.CreationTimestamp.Time)
	record := func(now time.Time) time.Time {
		t.Helper()
		status := &repository.Status
		at := lastwrite.UpdatedAt(repository, lastwrite.Observed{Generation: status.ObservedGeneration, UpdatedAt: status.UpdatedAt}, now)
		status.ObservedGeneration, status.UpdatedAt = repository.Generation, &at
		harness.Must(t, controller.Status().Update(t.Context(), repository))
		return at.Time
	}
	expect("and stays it", record(time.Now().Add(time.Hour)))
	repository.Spec.Description = "Once"
	harness.Must(t, env.Client.Update(t.Context(), repository, client.FieldOwner("kubectl")))
	before := record(time.Now())
	repository.Spec.Description = ""
	harness.Must(t, env.Client.Update(t.Context(), repository, client.FieldOwner("kubectl")))
	expect("nothing records a removal", before)
	expect("only the controllers' clock shows it", record(time.Now().Add(time.Minute)))
}

// Whoever commits an operation while others do gets it committed, by the one who was first.
func TestConcurrentCommitsAllSucceed(t *testing.T) {
	o, c := newOrganization(t), facadeClient(t)
	operation := builder.TriageOperation("op-1", "R1").In(o.namespace).Build()
	operation.Spec.By = "apikey/ci"
	_, err := c.CreateOperation(t.Context(), operation)
	harness.Must(t, err)
	var committers [8]string
	var group sync.WaitGroup
	for i := range committers {
		group.Go(func() {
			committed, err := c.CommitOperation(t.Context(), o.namespace, "op-1", "", fmt.Sprintf("apikey/ci-%d", i))
			if err != nil || !committed.Spec.Commit {
				t.Errorf("committer %d: %v, %v", i, committed, err)
				return
			}
			committers[i] = committed.Spec.CommittedBy
		})
	}
	group.Wait()
	if who := slices.Compact(committers[:]); len(who) != 1 || who[0] == "" {
		t.Errorf("committed by %q, want one", who)
	}
}

func TestAnOperationWhoseDecisionWouldHaveEndedIsNotCommitted(t *testing.T) {
	o, c := newOrganization(t), facadeClient(t)
	operation := builder.TriageOperation("op-1", "R1").In(o.namespace).Build()
	past := v1alpha1.NewTime(time.Unix(0, 0))
	operation.Spec.By, operation.Spec.Set.ExpiresAt = "apikey/ci", &past
	_, err := c.CreateOperation(t.Context(), operation)
	harness.Must(t, err)
	_, err = c.CommitOperation(t.Context(), o.namespace, "op-1", "", "apikey/ci")
	if p := problem.Of(err); p.Status != http.StatusBadRequest || p.Field != "set.expires_at" {
		t.Errorf("got %v", err)
	}
}
