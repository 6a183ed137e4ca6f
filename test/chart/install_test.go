package chart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// TestInstallUpgradeUninstall covers the life of a release that has neither the default name nor the default namespace.
// It runs from an empty API server to one that contains what an uninstall leaves, so it is one test.
func TestInstallUpgradeUninstall(t *testing.T) {
	makeNamespace(t, releaseNamespace)
	env.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-acme",
		Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "x"}}})
	// The last objects that the API server creates for itself.
	for _, last := range []string{"endpoints/kubernetes", "endpointslices/kubernetes"} { // kubectl gives up if both are missing
		env.Kubectl(t, metav1.NamespaceDefault, "wait", "--for=create", last, "--timeout=1m")
	}
	before := everything(t)

	release := NewRelease(t, env, "renamed", releaseNamespace)
	release.Install(t, "--set", "controller.replicas=3")
	waitForKinds(t)
	checkPods(t, release)

	organization := testenv.Create(t, env, &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	checkAccounts(t, release, organization)
	harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(organization), organization))
	crds := uids(t)

	// As docs/install.md stops the controllers before an upgrade: helm refuses one after other numbers.
	env.Kubectl(t, releaseNamespace, "scale", "deployment/renamed-controller", "--replicas=0")
	upgrade := []string{"upgrade", release.Name, Folder(), "--set", "api.replicas=4"}
	release.KillUpgrade(t)
	_, err := release.Helm(t, upgrade...)
	harness.ErrorContains(t, "an upgrade after one that was killed", err, "another operation (install/upgrade/rollback) is in progress")
	inTheDocs := strings.NewReplacer("findings-system", release.Namespace, "name=findings", "name="+release.Name)
	commands := strings.Fields(inTheDocs.Replace(harness.Commands(t, "install.md", "killed upgrade")))
	env.Kubectl(t, release.Namespace, commands[slices.Index(commands, "kubectl")+1:]...)
	_, err = release.Helm(t, upgrade...)
	harness.Must(t, err)
	checkKept(t, "the upgrade", organization, crds)

	_, err = release.Helm(t, "uninstall", release.Name)
	harness.Must(t, err)
	checkKept(t, "uninstalling", organization, crds)
	var left []string
	for _, name := range everything(t) {
		if !slices.Contains(before, name) {
			left = append(left, name)
		}
	}
	want := []string{"apikeys.appsec.dev org-acme/first", "organizations.appsec.dev acme"}
	for name := range crds {
		want = append(want, "customresourcedefinitions.apiextensions.k8s.io "+name)
	}
	slices.Sort(want)
	harness.Same(t, "left behind are others than the CRDs and what is in them", want, left)

	// What remains does not prevent another install.
	release.Install(t)
	checkKept(t, "installing again", organization, crds)
	held := []string{v1alpha1.CleanupFinalizer}
	env.Create(t, &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "held", Namespace: "org-acme", Finalizers: held}},
		&v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: held}})
	_, err = release.Helm(t, "uninstall", release.Name)
	harness.Must(t, err)
	removeWithoutControllers(t)
}

// releaseNamespace is a number for YAML, unless it is quoted.
const releaseNamespace = "10042"

// waitForKinds waits until resources of every kind can be listed. If a CRD is removed before its
// first use, it can remain for minutes: the API server looks for its instances in a storage that is
// still starting, and retries with growing delays.
func waitForKinds(t *testing.T) {
	t.Helper()
	for _, crd := range crdList(t) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.ListKind})
		eventually(t, func() error { return env.Client.List(context.WithoutCancel(t.Context()), list) })
	}
}

// checkPods creates the pods of the Deployments in a namespace that accepts only restricted pods: a
// Deployment itself is never refused.
func checkPods(t *testing.T, release *Release) {
	t.Helper()
	namespace := release.Namespace
	for _, file := range valueSets(t) {
		for _, object := range Render(t, release.Name, namespace, "--values", file) {
			template := podOf(object)
			if template == nil {
				continue
			}
			pod := &unstructured.Unstructured{Object: map[string]any{"metadata": template["metadata"], "spec": template["spec"]}}
			pod.SetAPIVersion("v1")
			pod.SetKind("Pod")
			pod.SetNamespace(namespace)
			pod.SetName(object.GetName() + "-try")
			// The test pod uses the namespace's default account, which a controller would create.
			if account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName"); account == "" { //nolint:errcheck // no account
				account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
				harness.Must(t, client.IgnoreAlreadyExists(env.Client.Create(t.Context(), account)))
			} else if !strings.HasPrefix(account, release.Name+"-") {
				account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
				harness.Must(t, env.Client.Create(t.Context(), account, client.DryRunAll))
				continue // created by a release of another name
			}
			harness.NoError(t, file, env.Client.Create(t.Context(), pod, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)))
		}
	}
}

func checkKept(t *testing.T, reason string, organization *v1alpha1.Organization, crds map[string]string) {
	t.Helper()
	harness.Same(t, "the CRDs after "+reason, crds, uids(t))
	now := &v1alpha1.Organization{}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(organization), now); err != nil {
		t.Fatalf("%s lost data: %v", reason, err)
	}
	harness.Same(t, "data after "+reason, organization, now)
}

// crdList returns this project's CRDs.
func crdList(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	harness.Must(t, apiextensionsv1.AddToScheme(env.Scheme))
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	harness.Must(t, env.Client.List(context.WithoutCancel(t.Context()), list))
	return list.Items
}

func uids(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, crd := range crdList(t) {
		out[crd.Name] = string(crd.UID)
	}
	if len(out) == 0 {
		t.Fatal("there is no CRD")
	}
	return out
}

// removeCRDs removes all CRDs with their objects, for the next test. It also works in a cleanup,
// when the test's context has ended.
func removeCRDs(t *testing.T) {
	t.Helper()
	deleteCRDs(t)
	awaitNoCRDs(t)
}

func deleteCRDs(t *testing.T) {
	t.Helper()
	waitForKinds(t)
	for _, crd := range crdList(t) {
		harness.Must(t, env.Client.Delete(context.WithoutCancel(t.Context()), &crd))
	}
}

func awaitNoCRDs(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		var left error
		for _, crd := range crdList(t) {
			left = errors.Join(left, fmt.Errorf("%s is still there: %+v", crd.Name, crd.Status.Conditions))
		}
		return left
	})
}

// removeWithoutControllers removes all CRDs with their objects, as the page has it if no controller is left to remove
// the finalizers.
func removeWithoutControllers(t *testing.T) {
	t.Helper()
	deleteCRDs(t)
	shell := exec.CommandContext(t.Context(), "bash", "-c", harness.Commands(t, "install.md", "remove finalizers")) //nolint:gosec // the page's
	shell.Env = append(os.Environ(), "KUBECONFIG="+testenv.WriteKubeconfig(t, env.Config, metav1.NamespaceDefault),
		"PATH="+filepath.Dir(testenv.Binary(t, "kubectl"))+":"+os.Getenv("PATH"))
	harness.Run(t, shell).Wants("organization.appsec.dev/held patched", "repository.appsec.dev/held patched")
	awaitNoCRDs(t)
}

// everything lists all listable objects as "resource name", sorted, except for those that API
// servers create for themselves, such as their Leases.
func everything(t *testing.T) []string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(env.Config)
	harness.Must(t, err)
	all, err := dynamic.NewForConfig(env.Config)
	harness.Must(t, err)
	lists, err := client.ServerPreferredResources()
	harness.Must(t, err)
	seen := map[string]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		harness.Must(t, err)
		for i := range list.APIResources {
			resource := list.APIResources[i]
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			objects, err := all.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("list %s: %v", resource.Name, err)
			}
			for _, object := range objects.Items {
				if object.GetNamespace() == "kube-system" || object.GetNamespace() == "kube-public" || version.Group == "apiregistration.k8s.io" {
					continue
				}
				if object.GetNamespace() == releaseNamespace && object.GetName() == "default" && resource.Name == "serviceaccounts" {
					continue // created by the test itself
				}
				seen[strings.TrimSuffix(resource.Name+"."+version.Group, ".")+" "+strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// checkAccounts checks that the accounts of the release may do what the contract between writers gives them, and those
// with the default names may not.
func checkAccounts(t *testing.T, release *Release, organization *v1alpha1.Organization) {
	t.Helper()
	key := testenv.Create(t, env, &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: "org-acme", Name: "first"}})
	impostor := impersonate(t, testenv.ServiceAccountUsername(testenv.SystemNamespace, testenv.ControllerServiceAccount))
	eventually(t, func() error { return wantForbidden(setNamespace(t, impostor, organization)) })

	controller := clientOf(t, release.Controller)
	eventually(t, func() error { return setNamespace(t, controller, organization) })
	facade := clientOf(t, release.Facade)
	patchStatus := func(patch string) error {
		return facade.Status().Patch(t.Context(), key.DeepCopy(), testenv.MergePatch(patch))
	}
	eventually(t, func() error { return patchStatus(`{"status":{"lastUsedAt":"2026-01-01T00:00:00Z"}}`) })
	harness.NoError(t, "the facade sets more than lastUsedAt", wantForbidden(patchStatus(`{"status":{"keyID":"forged"}}`)))
	harness.NoError(t, "the facade reads Secrets", wantForbidden(facade.List(t.Context(), &corev1.SecretList{})))
}

func setNamespace(t *testing.T, as client.Client, organization *v1alpha1.Organization) error {
	t.Helper()
	return as.Status().Patch(t.Context(), organization.DeepCopy(), testenv.MergePatch(`{"status":{"namespace":"org-acme"}}`))
}

// TestKustomizeInstalls: config/default can be installed as documented; applied again it would change nothing, and
// deleting it removes everything it created.
func TestKustomizeInstalls(t *testing.T) {
	folder := filepath.Join(harness.Root(), "config", "default")
	kubeconfig := testenv.WriteKubeconfig(t, env.Config, "default")
	kubectl := func(arguments ...string) string {
		t.Helper()
		out, err := exec.CommandContext(context.WithoutCancel(t.Context()), testenv.Binary(t, "kubectl"),
			append(arguments, "--kubeconfig", kubeconfig, "-k", folder)...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %v: %v\n%s", arguments, err, out)
		}
		return string(out)
	}
	kubectl("apply", "--server-side")
	// No controller removes namespaces here, so do not wait for deletions.
	t.Cleanup(func() { kubectl("delete", "--wait=false") })
	waitForKinds(t)
	harness.Same(t, "what would change if it were applied again", "", kubectl("diff", "--server-side"))
}
