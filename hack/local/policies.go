package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// The operator's namespace and the service accounts there, as in config/rbac.
const (
	systemNamespace   = "findings-system"
	controllerAccount = "findings-controller"
	apiAccount        = "findings-api"
)

// waitForPolicies returns when the admission policies are in force: the API server takes them
// up some time after it has accepted them, and until then lets everything pass. It is asked,
// in dry runs, for what one validating policy must refuse and one mutating policy must change.
func waitForPolicies(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	facade, err := impersonate(config, scheme, "system:serviceaccount:"+systemNamespace+":"+apiAccount)
	if err != nil {
		return err
	}
	person, err := impersonate(config, scheme, "canary")
	if err != nil {
		return err
	}
	// A kind that is established may still be missing from discovery, so an error is no verdict.
	var last error
	err = eventually(ctx, func(ctx context.Context) (bool, error) {
		var refused, stamped bool
		if refused, last = forgeryRefused(ctx, facade); !refused {
			return false, nil
		}
		stamped, last = signatureStamped(ctx, person)
		return stamped, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the admission policies of config/admission to be in force: %w",
			errors.Join(err, last))
	}
	return nil
}

// impersonate returns a client that may do anything under another name.
func impersonate(config *rest.Config, scheme *runtime.Scheme, user string) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return client.NewDryRunClient(c), nil
}

func canary() *v1alpha1.Finding {
	return &v1alpha1.Finding{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "canary"},
		Spec: v1alpha1.FindingSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: "canary"},
			ProjectRef:    v1alpha1.ProjectReference{Name: "canary"},
			Details:       v1alpha1.FindingDetails{Title: "canary", Severity: v1alpha1.LevelLow},
			Triage:        v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "forged"},
		},
	}
}

func forgeryRefused(ctx context.Context, facade client.Client) (bool, error) {
	err := facade.Create(ctx, canary())
	if apierrors.IsForbidden(err) {
		return true, nil
	}
	return false, err
}

func signatureStamped(ctx context.Context, person client.Client) (bool, error) {
	finding := canary()
	// Refused while the policy that checks the stamp is in force and the one that stamps is not.
	if err := person.Create(ctx, finding); err != nil && !apierrors.IsForbidden(err) {
		return false, err
	}
	return finding.Spec.Triage.By == "canary", nil
}
