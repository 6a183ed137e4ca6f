package main

import (
	"context"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
)

// startControllerManager starts what makes removal, namespaces and service accounts real.
// Nothing here runs pods, so the rest of Kubernetes' controllers stay off.
func startControllerManager(ctx context.Context, o options, children *supervisor, cluster *rest.Config, keys *pki) error {
	kubeconfig := o.state("kubeconfigs", "kube-controller-manager")
	if err := writeKubeconfig(kubeconfig, cluster, controllerManagerUser, keys.tokens[controllerManagerUser], "default"); err != nil {
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
			"--service-account-private-key-file=" + keys.serviceAccountKeyFile,
			"--root-ca-file=" + keys.servingCAFile,
			"--leader-elect=false",
			// It serves nothing that is used here.
			"--secure-port=0",
		},
	})
}
