package testenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// probeName is the name of every object that the probes create.
const probeName = "testenv-probe"

// probers holds the clients that probe the policies.
type probers struct {
	// admin may do everything.
	admin client.Client
	// user may create and patch every resource, but has no custom verb other than report on findings and provision
	// on projects.
	user client.Client
	// facade has the facade's username, and the user's rights in addition to its own.
	facade client.Client
}

// A probe returns nil once its policy is in force. It writes only with dry-run.
type probe func(context.Context, probers) error

// policyProbes holds a probe for each policy of config/admission, by the policy's name.
var policyProbes = map[string]probe{
	"findings-facts.appsec.dev": func(ctx context.Context, as probers) error {
		repository := &v1alpha1.Repository{ObjectMeta: probeMeta()}
		return wantRefusal(as.user.Create(ctx, repository, client.DryRunAll))
	},
	"findings-decisions.appsec.dev": func(ctx context.Context, as probers) error {
		finding := probeFinding()
		finding.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted
		return wantRefusal(as.user.Create(ctx, finding, client.DryRunAll))
	},
	"findings-metadata.appsec.dev": func(ctx context.Context, as probers) error {
		finding := probeFinding()
		finding.Finalizers = []string{"appsec.dev/" + probeName}
		return wantRefusal(as.user.Create(ctx, finding, client.DryRunAll))
	},
	"findings-status.appsec.dev": func(ctx context.Context, as probers) error {
		organization := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: probeName}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"namespace":"x"}}`))
		return wantRefusal(as.user.Status().Patch(ctx, organization, patch, client.DryRunAll))
	},
	"findings-adoption.appsec.dev": func(ctx context.Context, as probers) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:        v1alpha1.NamespacePrefix + probeName,
			Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "x"},
		}}
		return wantRefusal(as.user.Create(ctx, namespace, client.DryRunAll))
	},
	"findings-events.appsec.dev": func(ctx context.Context, as probers) error {
		event := &eventsv1.Event{
			ObjectMeta:          probeMeta(),
			Regarding:           corev1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: probeName},
			Type:                corev1.EventTypeNormal,
			Reason:              "Probe",
			Action:              "Probe",
			EventTime:           metav1.NowMicro(),
			ReportingController: probeName,
			ReportingInstance:   probeName,
		}
		return wantRefusal(as.facade.Create(ctx, event, client.DryRunAll))
	},
	"findings-keys.appsec.dev": func(ctx context.Context, as probers) error {
		return wantRefusal(as.user.Create(ctx, &v1alpha1.APIKey{ObjectMeta: probeMeta()}, client.DryRunAll))
	},
	// These policies concern only the controllers, and no prober is a controller.
	"findings-access.appsec.dev":     func(context.Context, probers) error { return nil },
	"findings-leases.appsec.dev":     func(context.Context, probers) error { return nil },
	"findings-namespaces.appsec.dev": func(context.Context, probers) error { return nil },
	"findings-secrets.appsec.dev":    func(context.Context, probers) error { return nil },
	// The policy applies per existing Organization, and a probe creates none: tests of the policy wait until it
	// refuses.
	"findings-provision.appsec.dev": func(context.Context, probers) error { return nil },
	"findings-provision-namespace.appsec.dev": func(ctx context.Context, as probers) error {
		project := &v1alpha1.Project{ObjectMeta: probeMeta(), Spec: v1alpha1.ProjectSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: probeName},
		}}
		return wantRefusal(as.user.Create(ctx, project, client.DryRunAll))
	},
	"findings-operations.appsec.dev": func(ctx context.Context, as probers) error {
		return wantRefusal(as.user.Create(ctx, probeOperation(), client.DryRunAll))
	},
	"findings-operation-parts.appsec.dev": func(ctx context.Context, as probers) error {
		part := &v1alpha1.TriageOperationPart{ObjectMeta: probeMeta()}
		part.Spec.Operation = probeName
		return wantRefusal(as.user.Create(ctx, part, client.DryRunAll))
	},
	"findings-operations-stamp.appsec.dev": func(ctx context.Context, as probers) error {
		operation := probeOperation()
		if err := as.admin.Create(ctx, operation, client.DryRunAll); err != nil {
			return err
		}
		if operation.Spec.By == "x" {
			return errors.New("a forged spec.by of a triage operation went through")
		}
		return nil
	},
	// The policy applies to deletions of what exists, and a probe creates nothing: tests of the policy wait until it
	// refuses.
	"findings-orphans.appsec.dev": func(context.Context, probers) error { return nil },
	"findings-policies.appsec.dev": func(ctx context.Context, as probers) error {
		return wantRefusal(as.user.Create(ctx, probePolicy(), client.DryRunAll))
	},
	"findings-policies-stamp.appsec.dev": func(ctx context.Context, as probers) error {
		policy := probePolicy()
		if err := as.admin.Create(ctx, policy, client.DryRunAll); err != nil {
			return err
		}
		if policy.Spec.By == "" {
			return errors.New("a triage policy was created without a spec.by")
		}
		return nil
	},
	// The policy applies in labelled namespaces alone.
	"findings-reasons.appsec.dev": func(context.Context, probers) error { return nil },
	// The policy only warns, and only in releases; it refuses nothing.
	"findings-skew.appsec.dev": func(context.Context, probers) error { return nil },
	"findings-trends.appsec.dev": func(ctx context.Context, as probers) error {
		trend := &v1alpha1.FindingTrend{ObjectMeta: probeMeta(), Spec: v1alpha1.FindingTrendSpec{
			ProjectRef: v1alpha1.ProjectReference{Name: probeName}, Quarter: "2026q1", UpdatedAt: v1alpha1.NewTime(time.Now()),
		}}
		return wantRefusal(as.user.Create(ctx, trend, client.DryRunAll))
	},
	"findings-triage-author.appsec.dev": func(ctx context.Context, as probers) error {
		finding := probeFinding()
		finding.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "x"}
		return wantRefusal(as.facade.Create(ctx, finding, client.DryRunAll))
	},
	"findings-triage-stamp.appsec.dev": func(ctx context.Context, as probers) error {
		finding := probeFinding()
		finding.Spec.Triage.UserStatus = v1alpha1.UserStatusMuted
		if err := as.admin.Create(ctx, finding, client.DryRunAll); err != nil {
			return err
		}
		if finding.Spec.Triage.By == "" {
			return errors.New("a finding was triaged without a spec.triage.by")
		}
		return nil
	},
}

// probeAccess is a right that must have reached the authorizer's cache before a test starts.
type probeAccess struct{ account, verb, group, resource string }

var probeAccesses = []probeAccess{
	{ControllerServiceAccount, "adopt", v1alpha1.GroupName, "organizations"},
	{APIServiceAccount, "triage", v1alpha1.GroupName, "findings"},
	{APIServiceAccount, "create", eventsv1.GroupName, "events"},
}

// AwaitPolicies returns when every admission policy is in force. It is for API servers that this
// package did not start. The config is that of an administrator.
func AwaitPolicies(ctx context.Context, config *rest.Config) error {
	e := &Environment{Config: config, Scheme: NewScheme()}
	var err error
	if e.Client, err = e.NewClient(config); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return e.waitForPolicies(ctx)
}

// waitForPolicies returns when every installed admission policy is in force: the API server loads policies
// some time after it has accepted them. It leaves nothing behind.
func (e *Environment) waitForPolicies(ctx context.Context) (err error) {
	remove, err := e.makeProbeObjects(ctx)
	defer func() { err = errors.Join(err, remove()) }()
	if err != nil {
		return err
	}
	as := probers{admin: e.Client}
	if as.user, err = e.NewClient(e.Impersonate(probeName, probeName)); err != nil {
		return err
	}
	facade := ServiceAccountUsername(SystemNamespace, APIServiceAccount)
	if as.facade, err = e.NewClient(e.Impersonate(facade, probeName)); err != nil {
		return err
	}
	installed, err := e.installedPolicies(ctx)
	if err != nil {
		return err
	}
	for _, policy := range slices.Sorted(maps.Keys(policyProbes)) {
		if !installed.Has(policy) {
			continue
		}
		check := func(ctx context.Context) error { return policyProbes[policy](ctx, as) }
		if err := harness.Until(ctx, "the admission policy "+policy+" is in force", check); err != nil {
			return err
		}
	}
	for _, access := range probeAccesses {
		check := func(ctx context.Context) error { return e.checkAccess(ctx, access) }
		if err := harness.Until(ctx, access.account+" may "+access.verb+" "+access.resource, check); err != nil {
			return err
		}
	}
	return nil
}

// installedPolicies returns the names of the admission policies that the API server has. An earlier commit has fewer
// than there are probes.
func (e *Environment) installedPolicies(ctx context.Context) (sets.Set[string], error) {
	names := sets.New[string]()
	for _, kind := range []string{"ValidatingAdmissionPolicyList", "MutatingAdmissionPolicyList"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
		if err := e.Client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list the admission policies: %w", err)
		}
		for i := range list.Items {
			names.Insert(list.Items[i].Name)
		}
	}
	return names, nil
}

// makeProbeObjects creates the objects that the probes need, and returns a function that removes
// them.
func (e *Environment) makeProbeObjects(ctx context.Context) (remove func() error, err error) {
	objects := append(Grant(probeName, Group(probeName), []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"*"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"findings"}, Verbs: []string{"report"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"projects"}, Verbs: []string{"provision"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create"}},
	}...), &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: probeName}})
	remove = func() error {
		// Use a separate context: the objects must be removed even after the time ran out.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		var errs []error
		for _, object := range objects {
			errs = append(errs, client.IgnoreNotFound(e.Client.Delete(ctx, object)))
		}
		return errors.Join(errs...)
	}
	for _, object := range objects {
		if err := e.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return remove, fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	return remove, nil
}

func probeMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: probeName}
}

func probeFinding() *v1alpha1.Finding {
	return &v1alpha1.Finding{
		ObjectMeta: probeMeta(),
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: probeName},
			ProjectRef:    v1alpha1.ProjectReference{Name: probeName},
			Details:       v1alpha1.FindingDetails{Title: probeName, Severity: v1alpha1.LevelLow},
		},
	}
}

func probePolicy() *v1alpha1.TriagePolicy {
	return &v1alpha1.TriagePolicy{ObjectMeta: probeMeta(), Spec: v1alpha1.TriagePolicySpec{
		Match: "false", Set: v1alpha1.PolicyDecision{UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusActive)},
	}}
}

func probeOperation() *v1alpha1.TriageOperation {
	return &v1alpha1.TriageOperation{ObjectMeta: probeMeta(), Spec: v1alpha1.TriageOperationSpec{
		Undo: probeName, By: "x",
	}}
}

// wantRefusal turns a refusal by a policy into nil and anything else into an error. Each probe
// sends a request that only its own policy refuses.
func wantRefusal(err error) error {
	switch {
	case err == nil:
		return errors.New("a request went through that the policy refuses")
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
		return nil
	default:
		return err
	}
}
