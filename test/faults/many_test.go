package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	decidePause = 120 * time.Millisecond
	policyPause = time.Second
	policyName  = "many"
)

func manyPolicy() *v1alpha1.TriagePolicy {
	return builder.TriagePolicy(policyName, "finding.path.contains('/many-')").In(namespace).Build()
}

// patchMany patches an object as an administrator, and reports whether the patch was acknowledged.
func (s *trial) patchMany(object client.Object, patch string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), requestTimeout)
	defer cancel()
	return s.Client.Patch(ctx, object, testenv.MergePatch(patch)) == nil
}

// decideByHand makes decisions about the findings that operations and a policy also decide about.
func (s *trial) decideByHand(ctx context.Context) {
	ids, reasons := s.staged[byMany], v1alpha1.DecisionReasons()
	for n := 0; harness.Pause(ctx, decidePause); n++ {
		status, reason := userStatuses[n%len(userStatuses)], fmt.Sprintf("%q", reasons[n%len(reasons)])
		if status == v1alpha1.UserStatusOpen {
			reason = "null"
		}
		id := ids[rand.IntN(len(ids))] //nolint:gosec // no secret
		if s.patchMany(builder.Finding(id).In(namespace).Build(),
			fmt.Sprintf(`{"spec":{"triage":{"userStatus":%q,"reason":%s}}}`, status, reason)) {
			s.journal.count("decisions by hand")
		}
	}
}

// changePolicy repeatedly changes the policy's decision.
func (s *trial) changePolicy(ctx context.Context) {
	for n := 0; harness.Pause(ctx, policyPause); n++ {
		status := userStatuses[n%2] // muted and active
		if s.patchMany(manyPolicy(), fmt.Sprintf(`{"spec":{"set":{"userStatus":%q}}}`, status)) {
			s.journal.count("policies changed")
		}
	}
}

// operate runs operations that decide about all these findings at once, commits previews, and undoes every
// other operation.
func (s *trial) operate(ctx context.Context, phase int) {
	for n := 0; harness.Pause(ctx, decidePause); n++ {
		operation := builder.TriageOperation(fmt.Sprintf("p%d-o%d", phase, n), "").In(namespace).Spec(func(o *v1alpha1.TriageOperationSpec) {
			o.Select = &v1alpha1.FindingSelection{Text: "src/many-"}
			o.Set.UserStatus, o.Commit = userStatuses[n%2], n%3 == 0
		}).Build()
		if !s.operateOnce(ctx, operation) || n%2 == 0 {
			continue
		}
		s.operateOnce(ctx, builder.TriageOperation(operation.Name+"-undo", "").In(namespace).Undoes(operation.Name).Committed().Build())
	}
}

// operateOnce creates the operation, commits it if it is a preview, and reports whether it completed before the load
// ended.
func (s *trial) operateOnce(ctx context.Context, operation *v1alpha1.TriageOperation) bool {
	err := s.Client.Create(context.WithoutCancel(ctx), operation.DeepCopy())
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return false // it may have been created nevertheless, and then must end
	}
	for harness.Pause(ctx, decidePause) {
		now := &v1alpha1.TriageOperation{}
		if s.Client.Get(ctx, client.ObjectKeyFromObject(operation), now) != nil {
			continue
		}
		switch now.Status.Phase {
		case v1alpha1.OperationCompleted:
			s.journal.count("triage operations")
			return true
		case v1alpha1.OperationFailed:
			return false
		case v1alpha1.OperationPreview:
			s.patchMany(operation.DeepCopy(), `{"spec":{"commit":true}}`)
		case v1alpha1.OperationSelecting, v1alpha1.OperationRunning:
		}
	}
	return false
}

func (s *trial) operationsEnded(ctx context.Context) error {
	list := &v1alpha1.TriageOperationList{}
	if err := s.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		o := &list.Items[i]
		if o.Spec.Commit && o.Status.CompletedAt == nil || o.Status.SelectedAt == nil && o.Status.CompletedAt == nil {
			return fmt.Errorf("operation %s is %q with %d of %d parts", o.Name, o.Status.Phase, o.Status.DoneParts, o.Status.Parts)
		}
	}
	return nil
}

// policyDecides returns an error while a finding without a person's decision differs from the policy.
func (s *trial) policyDecides(ctx context.Context) error {
	policy := manyPolicy()
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
		return err
	}
	in := policy.Status.InForce
	if in == nil || in.Generation != policy.Generation {
		return fmt.Errorf("generation %d of the policy is not in force", policy.Generation)
	}
	for _, id := range s.staged[byMany] {
		f := &v1alpha1.Finding{}
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: id}, f); err != nil {
			return err
		}
		want := findingstate.VerdictCounts(f)
		if verdict := f.Status.Verdict; (verdict != nil) != want || want && verdict.UserStatus != in.Spec.Set.UserStatus {
			return fmt.Errorf("%s is %s by a person and has the verdict %+v; the policy says %s", id, findingstate.UserStatus(f), verdict,
				in.Spec.Set.UserStatus)
		}
	}
	return nil
}
