package triageoperation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Each finding stores the comments again, in etcd and in the memory of every process that watches findings.
func TestAnOperationWhoseCommentsTakeTooMuchInAllFailsBeforeItKeepsASet(t *testing.T) {
	long := strings.Repeat("c", 10_000)
	for _, c := range []struct {
		reason, comments string
		findings         int
		phase            v1alpha1.OperationPhase
		parts            int
	}{
		{"as many as the longest comments allow", long, maxCommentBytes / len(long), v1alpha1.OperationPreview, 7},
		{"one more", long, maxCommentBytes/len(long) + 1, v1alpha1.OperationFailed, 0},
		{"bytes count, of which a character may have four", strings.Repeat("\U0001F600", 10_000), 1000, v1alpha1.OperationFailed, 0},
	} {
		r, _ := line(t, 0, "", v1alpha1.TriageOperationStatus{})
		harness.Must(t, r.Client.Create(t.Context(), builder.TriageOperation("mute", "G1").In("org-acme").
			Spec(func(s *v1alpha1.TriageOperationSpec) { s.Set.Comments = &c.comments }).Build()))
		found := make([]v1alpha1.Finding, c.findings)
		for i := range found {
			found[i] = *builder.Finding(fmt.Sprintf("f-%d", i)).In("org-acme").Build()
			found[i].Spec.RuleID = "G1"
		}
		r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{List: func(ctx context.Context,
			c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if into, ok := into.(*v1alpha1.FindingList); ok {
				into.Items = found
				return nil
			}
			return c.List(ctx, into, options...)
		}})
		operation, _ := reconciled(t, r, "mute")
		harness.Same(t, "phase: "+c.reason, c.phase, operation.Status.Phase)
		parts := &v1alpha1.TriageOperationPartList{}
		harness.Must(t, r.Client.List(t.Context(), parts))
		harness.Same(t, "parts: "+c.reason, c.parts, len(parts.Items))
	}
}

// Whoever names a finding may have created it a moment ago, and must learn if it does not exist.
func TestANamedFindingIsReadLiveIfTheCacheDoesNotHoldItAndStaysInTheSetIfItDoesNotExist(t *testing.T) {
	r, _ := line(t, 0, "", v1alpha1.TriageOperationStatus{})
	harness.Must(t, r.Client.Create(t.Context(), builder.Finding("f-cached").In("org-acme").Build()))
	live, _ := line(t, 0, "", v1alpha1.TriageOperationStatus{})
	r.Live = interceptor.NewClient(live.Client.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context,
		c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
		if _, typed := into.(*v1alpha1.Finding); typed {
			return errors.New("a finding that cannot be decoded would never end the selection")
		}
		return c.Get(ctx, key, into, options...)
	}})
	harness.Must(t, live.Client.Create(t.Context(), builder.Finding("f-new").In("org-acme").Build()))
	operation := builder.TriageOperation("mute", "").In("org-acme").Spec(func(s *v1alpha1.TriageOperationSpec) {
		s.Select.IDs = []v1alpha1.ResourceName{"f-new", "f-none", "f-cached"}
	}).Build()
	for _, c := range []client.Client{r.Client, live.Client} {
		harness.Must(t, c.Create(t.Context(), operation.DeepCopy()))
	}
	made, _ := reconciled(t, r, "mute")
	harness.Same(t, "matched and would change", "3 2; 0 0 0 0", counts(made))
	part := &v1alpha1.TriageOperationPart{}
	harness.Must(t, r.Client.Get(t.Context(), client.ObjectKey{Namespace: "org-acme", Name: "mute-000"}, part))
	entries, err := rules.Decode(part)
	harness.Must(t, err)
	harness.Same(t, "the entry of the one that does not exist", rules.Absent("f-none"), entries[2])
}

// A finding that only a verdict confirms is muted by the operation: whoever commits it must see whom that overrules.
func TestAPreviewCountsWhoDecidedAboutAFindingInAPullRequest(t *testing.T) {
	r, _ := line(t, 1, "", v1alpha1.TriageOperationStatus{})
	for name, change := range map[string]func(*v1alpha1.Finding){
		"f-decided": func(f *v1alpha1.Finding) {
			f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "ann@example.com"}
		},
		"f-pull-request": func(f *v1alpha1.Finding) {
			f.Status.Verdict = &v1alpha1.FindingVerdict{ReviewIssue: "i-1", UserStatus: "active", By: "ann@example.com"}
		},
		"f-both": func(f *v1alpha1.Finding) {
			f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "bob@example.com"}
			f.Status.Verdict = &v1alpha1.FindingVerdict{ReviewIssue: "i-2", UserStatus: "active", By: "ann@example.com"}
		},
		"f-policy": func(f *v1alpha1.Finding) {
			f.Status.Verdict = &v1alpha1.FindingVerdict{Policy: "p", UserStatus: "muted", By: "cat@example.com"}
		},
		"f-open": func(*v1alpha1.Finding) {},
	} {
		harness.Must(t, r.Client.Create(t.Context(), builder.Finding(name).In("org-acme").Mutate(change).Mutate(func(f *v1alpha1.Finding) {
			f.Spec.RuleID = "G1"
		}).Build()))
	}
	operation, _ := reconciled(t, r, "o-0")
	harness.Same(t, "who had decided", []v1alpha1.OperationDecider{{By: "ann@example.com", Count: 2}, {By: "bob@example.com", Count: 1}},
		operation.Status.Decided)
}

// A watch that delivers nothing is renewed only after minutes.
func TestASetThatTheCacheDoesNotShowIsLookedForOnceASecond(t *testing.T) {
	r, writes := line(t, 1, "", v1alpha1.TriageOperationStatus{})
	made, _ := line(t, 1, "", v1alpha1.TriageOperationStatus{SelectedAt: new(v1alpha1.NewTime(noon))})
	r.Live = made.Client
	_, result := reconciled(t, r, "o-0")
	harness.Same(t, "reconciled again after", time.Second, result.RequeueAfter)
	harness.Same(t, "writes of the status", 0, *writes)
}

// A leader that was suspended while it kept the set must not replace what the next one has selected since.
func TestNoPartIsKeptAgainOnceTheSetIsMade(t *testing.T) {
	now := v1alpha1.NewTime(time.Now())
	for _, selectedAt := range []*v1alpha1.Time{nil, &now} {
		r, _ := line(t, 1, "", v1alpha1.TriageOperationStatus{SelectedAt: selectedAt})
		operation, made := stored(t, r, "o-0"), selectedAt != nil
		parts := func(finding string) *v1alpha1.TriageOperationPart {
			parts, _, err := rules.Parts(operation, []rules.Entry{rules.NewEntry(builder.Finding(finding).Build())})
			harness.Must(t, err)
			return parts[0]
		}
		next, late := parts("f-1"), parts("f-2")
		harness.Must(t, r.Client.Create(t.Context(), next.DeepCopy()))
		err := r.savePart(t.Context(), operation, late)
		harness.Same(t, "refused", made, apierrors.IsConflict(err))
		kept, want := &v1alpha1.TriageOperationPart{}, late.Spec
		if made {
			want = next.Spec
		}
		harness.Must(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(next), kept))
		harness.Same(t, "the part", want, kept.Spec)
	}
}
