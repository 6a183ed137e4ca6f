package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// comparePolicy writes the status of half of the findings directly, then runs the policy over all, then writes the
// status of the other half: if the machine becomes slower or faster, both are affected.
func (m *many) comparePolicy(ctx context.Context) error {
	half := len(m.ofPolicy) / 2
	writeHalf := func(findings []manyFinding) error {
		return m.underControllers(ctx, func(ctx context.Context) error { return m.writeStatuses(ctx, findings) })
	}
	if err := writeHalf(m.ofPolicy[:half]); err != nil {
		return err
	}
	if err := m.underControllers(ctx, m.policyAtWork); err != nil {
		return err
	}
	// The findings keep their verdicts until they are restored: no controller runs.
	if err := removeAll(ctx, m.Fixture, []client.Object{&v1alpha1.TriagePolicy{}}); err != nil {
		return err
	}
	return writeHalf(m.ofPolicy[half:])
}

// policyAtWork applies a policy, and then checks what is written at rest.
func (m *many) policyAtWork(ctx context.Context) error {
	if err := m.turn(ctx, policyTurn, len(m.ofPolicy), func(ctx context.Context) error {
		revision, err := dataset.Revision(ctx, m.EtcdURL())
		if err != nil {
			return err
		}
		if err := m.Client.Create(ctx, m.policy(manyPolicy, 100)); err != nil {
			return err
		}
		return m.awaitWritten(ctx, revision, m.ofPolicy)
	}); err != nil {
		return err
	}
	if err := m.checkVerdicts(ctx); err != nil {
		return err
	}
	return m.policyAtRest(ctx)
}

// awaitWritten returns once each of the findings was written after that revision. It checks them again only when as
// many writes as are missing may have happened: requesting all keys costs etcd as much as many writes.
func (m *many) awaitWritten(ctx context.Context, revision int64, findings []manyFinding) error {
	return eventually(ctx, manyInterval, manyTimeout, func(ctx context.Context) error {
		now, err := dataset.Revision(ctx, m.EtcdURL())
		if err != nil {
			return err
		}
		written, err := dataset.RevisionsSince(ctx, m.EtcdURL(), revision, m.Organization.Namespace, "findings")
		if err != nil {
			return err
		}
		left := 0
		for _, finding := range findings {
			if written[finding.name] == 0 {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		return errors.Join(fmt.Errorf("%d of %d findings have no verdict", left, len(findings)),
			m.awaitRevision(ctx, now+int64(left)))
	})
}

func (m *many) awaitRevision(ctx context.Context, wanted int64) error {
	return eventually(ctx, manyInterval, manyTimeout, func(ctx context.Context) error {
		now, err := dataset.Revision(ctx, m.EtcdURL())
		if err == nil && now < wanted {
			err = fmt.Errorf("etcd is at revision %d, and not at %d", now, wanted)
		}
		return err
	})
}

// checkVerdicts returns an error unless the REST API shows that the policy has decided about all
// findings.
func (m *many) checkVerdicts(ctx context.Context) error {
	return eventually(ctx, manyInterval, settleTimeout, func(ctx context.Context) error {
		content, err := m.Get(ctx, "/v2/findings?user_status=open&status=open_muted&size=1")
		if err == nil && !strings.Contains(string(content), fmt.Sprintf(`"total":%d`, len(m.ofPolicy))) {
			err = fmt.Errorf("%d findings are to be muted by the policy: %.400s", len(m.ofPolicy), content)
		}
		return err
	})
}

// writeStatuses writes as much into the findings' status as a verdict does, with the controllers'
// identity.
func (m *many) writeStatuses(ctx context.Context, findings []manyFinding) error {
	config, err := m.Environment.Controller(ctx)
	if err != nil {
		return err
	}
	writer, err := m.NewClient(config)
	if err != nil {
		return err
	}
	patches, err := m.statusPatches(ctx, findings)
	if err != nil {
		return err
	}
	return m.turn(ctx, bareStatusTurn, len(findings), func(ctx context.Context) error {
		_, err := callAll(ctx, verdictWriters, len(findings), func(ctx context.Context, i int) error {
			finding := &metav1.PartialObjectMetadata{ObjectMeta: named(m.Organization.Namespace, findings[i].name)}
			finding.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Finding"))
			return writer.Status().Patch(ctx, finding, client.RawPatch(types.MergePatchType, patches[i]),
				client.FieldOwner(v1alpha1.ControllerFieldManager))
		})
		return err
	})
}

// statusPatches returns the patches for bareStatus.
func (m *many) statusPatches(ctx context.Context, findings []manyFinding) ([][]byte, error) {
	revisions, err := dataset.RevisionsSince(ctx, m.EtcdURL(), 0, m.Organization.Namespace, "findings")
	if err != nil {
		return nil, err
	}
	policy, now := m.policy(manyPolicy, 0), time.Now()
	patches := make([][]byte, len(findings))
	for i := range findings {
		before := m.Data.Finding(findings[i].index)
		before.ResourceVersion = fmt.Sprint(revisions[before.Name])
		if patches[i], err = statusPatch(before, bareStatus(verdictStatus(before, policy, now), &before.Status)); err != nil {
			return nil, err
		}
	}
	return patches, nil
}

// verdictStatus returns the status that the controllers write when the policy decides about the
// finding.
func verdictStatus(finding *v1alpha1.Finding, policy *v1alpha1.TriagePolicy, now time.Time) v1alpha1.FindingStatus {
	verdict := findingstate.NewVerdict(v1alpha1.ResourceName(policy.Name), &policy.Spec)
	status := findingstate.Observe(finding, verdict, now)
	status.EmittedSeq = findingstate.History(&status).LastSeq()
	return status
}

// bareStatus replaces the verdict with a condition message of the same length: while the controllers reconcile
// people's decisions, they would remove a verdict but keep the message.
func bareStatus(status v1alpha1.FindingStatus, before *v1alpha1.FindingStatus) v1alpha1.FindingStatus {
	bare := *status.DeepCopy()
	bare.Conditions[0].Message = strings.Repeat("-", len(encoded(status.Verdict)))
	bare.Verdict, bare.State = nil, before.State
	return bare
}

func statusPatch(before *v1alpha1.Finding, status v1alpha1.FindingStatus) ([]byte, error) {
	after := before.DeepCopy()
	after.Status = status
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after)
}

// policy returns a policy that matches m.ofPolicy.
func (m *many) policy(name string, priority int32) *v1alpha1.TriagePolicy {
	return manyPolicyOf(named(m.Organization.Namespace, name), priority, m.policySince, len(m.ofPolicy))
}

// manyPolicyOf returns a policy for findings detected at or after since.
func manyPolicyOf(meta metav1.ObjectMeta, priority int32, since time.Time, most int) *v1alpha1.TriagePolicy {
	return &v1alpha1.TriagePolicy{
		ObjectMeta: meta,
		Spec: v1alpha1.TriagePolicySpec{
			Match: fmt.Sprintf("!finding.path.split('/').exists(part, part in ['test', 'testdata']) && "+
				"finding.detectedAt >= timestamp('%s')", since.UTC().Format(time.RFC3339)),
			Set: v1alpha1.PolicyDecision{UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted), Reason: manyReason,
				Comment: manyNote},
			Mode: v1alpha1.PolicyApply, Priority: priority, MaxFindings: int32(most), //nolint:gosec // bounded
			By: "system:serviceaccount:bench:bench",
		},
	}
}
