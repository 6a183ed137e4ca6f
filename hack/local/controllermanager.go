package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// startControllerManager starts the controllers for garbage collection, namespaces and service accounts. Nothing here
// runs pods, so Kubernetes' other controllers stay off.
func startControllerManager(ctx context.Context, o options, children *supervisor, p *plane, keys *pki) error {
	kubeconfig := o.state("kubeconfigs", "kube-controller-manager")
	if err := harness.WriteKubeconfig(kubeconfig, p.as(keys.tokens[controllerManagerUser]), "default"); err != nil {
		return err
	}
	controllers := []string{
		"garbage-collector-controller",
		"namespace-controller",
		"resourcequota-controller",
		"serviceaccount-controller",
		"serviceaccount-token-controller",
		"root-ca-certificate-publisher-controller",
		"clusterrole-aggregation-controller",
		"validatingadmissionpolicy-status-controller",
	}
	return children.start(ctx, command{
		name: "kube-controller-manager",
		path: filepath.Join(o.assets(), "kube-controller-manager"),
		arguments: []string{
			"--kubeconfig=" + kubeconfig,
			"--controllers=" + strings.Join(controllers, ","),
			"--use-service-account-credentials",
			"--service-account-private-key-file=" + keys.ServiceAccountKeyFile,
			"--root-ca-file=" + keys.CertificateFile,
			"--leader-elect=false",
			// Nothing here uses its endpoints.
			"--secure-port=0",
		},
	})
}
