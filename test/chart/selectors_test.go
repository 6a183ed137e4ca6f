package chart

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Services, budgets and policies that select no pods, or another component's, have no effect, and
// no error reveals it.
func TestEverySelectorSelectsThePodsOfOneObject(t *testing.T) {
	paths := map[string][]string{
		"Service":             {"spec", "selector"},
		"PodDisruptionBudget": {"spec", "selector", "matchLabels"},
		"NetworkPolicy":       {"spec", "podSelector", "matchLabels"},
		"Deployment":          {"spec", "selector", "matchLabels"},
	}
	for name, file := range valueSets(t) {
		objects := Render(t, "findings", "findings-system", "--values", file)
		pods := slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool { return podOf(object) == nil })
		for _, object := range objects {
			path := paths[object.GetKind()]
			if path == nil {
				continue
			}
			selector, _, _ := unstructured.NestedStringMap(object.Object, path...) //nolint:errcheck // none selects all, which fails below
			var selected []*unstructured.Unstructured
			for _, of := range pods {
				found, _, _ := unstructured.NestedStringMap(podOf(of), "metadata", "labels") //nolint:errcheck // none would match nothing
				if labels.SelectorFromSet(selector).Matches(labels.Set(found)) {
					selected = append(selected, of)
				}
			}
			if len(selected) != 1 || object.GetLabels()["app.kubernetes.io/component"] != selector["app.kubernetes.io/component"] {
				t.Errorf("%s: %s %s selects %v by %v", name, object.GetKind(), object.GetName(), names(selected), selector)
				continue
			}
			checkPorts(t, name, object, selected[0])
		}
	}
}

// checkPorts compares the ports in a Service or a policy with those of the pods.
func checkPorts(t *testing.T, set string, object, of *unstructured.Unstructured) {
	t.Helper()
	declared := map[string]bool{}
	for _, container := range containers(of) {
		ports, _ := container["ports"].([]any) //nolint:errcheck // those of the test pod declare none
		for _, port := range ports {
			declared[port.(map[string]any)["name"].(string)] = true
		}
	}
	var wanted []any
	switch object.GetKind() {
	case "Service":
		ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports") //nolint:errcheck // none is wanted then
		for _, port := range ports {
			wanted = append(wanted, port.(map[string]any)["targetPort"])
		}
	case "NetworkPolicy":
		rules, _, _ := unstructured.NestedSlice(object.Object, "spec", "ingress") //nolint:errcheck // as above
		for _, rule := range rules {
			for _, port := range rule.(map[string]any)["ports"].([]any) {
				wanted = append(wanted, port.(map[string]any)["port"])
			}
		}
	}
	for _, port := range wanted {
		if !declared[fmt.Sprint(port)] {
			t.Errorf("%s: %s %s wants the port %v; %s has %v", set, object.GetKind(), object.GetName(), port, of.GetName(), slices.Sorted(maps.Keys(declared)))
		}
	}
}

// The test pod is neither a client of the REST API nor a reader of metrics, and is let in all the same.
func TestTheTestPodIsLetIn(t *testing.T) {
	objects := Render(t, "findings", "findings-system", "--values", valueSets(t)["everything"])
	pod := labels.Set(one(t, objects, "Pod", "everything-test").GetLabels())
	open := map[string]bool{}
	for _, object := range objects {
		policy := &networkingv1.NetworkPolicy{}
		if object.GetKind() != "NetworkPolicy" || object.GetLabels()["app.kubernetes.io/component"] != "api" {
			continue
		}
		harness.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy))
		for _, rule := range policy.Spec.Ingress {
			for _, peer := range rule.From {
				if peer.PodSelector == nil || !labels.SelectorFromSet(peer.PodSelector.MatchLabels).Matches(pod) {
					continue
				}
				for _, port := range rule.Ports {
					open[port.Port.String()] = true
				}
			}
		}
	}
	if !open["api"] || !open["health"] {
		t.Errorf("the test pod reaches the ports %v, want api and health", slices.Sorted(maps.Keys(open)))
	}
}

// Where the namespace has a policy that denies all egress, a pod connects only to what the chart's policies allow.
func TestPodsReachWhatTheyNeedWhereEgressIsDenied(t *testing.T) {
	for set, want := range map[string]map[string][]string{
		"default": {
			"controller": {"everything"},
			"api":        {"443/TCP", "53/TCP", "53/UDP", "6443/TCP", "8443/TCP"},
			"test":       {"53/TCP", "53/UDP", "api 8080/TCP", "api 8081/TCP"},
		},
		"everything": {
			"controller": {"443/TCP", "53/TCP", "53/UDP"},
			"api":        {"4318/TCP", "5353/TCP", "5353/UDP", "6380/TCP", "6443/TCP"},
			"test":       {"5353/TCP", "5353/UDP", "api 8080/TCP", "api 8081/TCP"},
		},
	} {
		got := map[string][]string{}
		for _, object := range Render(t, "findings", "findings-system", "--values", valueSets(t)[set]) {
			if object.GetKind() != "NetworkPolicy" {
				continue
			}
			policy := &networkingv1.NetworkPolicy{}
			harness.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy))
			component := policy.Spec.PodSelector.MatchLabels["app.kubernetes.io/component"]
			got[component] = append(got[component], allowed(policy)...)
		}
		for component := range want {
			slices.Sort(got[component])
			harness.Same(t, set+": "+component+" reaches", want[component], got[component])
		}
	}
}

// allowed returns what the policy's egress allows: "everything", or ports, after the component that they are limited to.
func allowed(policy *networkingv1.NetworkPolicy) []string {
	if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
		return nil
	}
	var out []string
	for _, rule := range policy.Spec.Egress {
		if len(rule.To) == 0 && len(rule.Ports) == 0 {
			out = append(out, "everything")
		}
		for _, port := range rule.Ports {
			to := ""
			for _, peer := range rule.To {
				to += peer.PodSelector.MatchLabels["app.kubernetes.io/component"] + " "
			}
			out = append(out, fmt.Sprintf("%s%s/%s", to, port.Port, *port.Protocol))
		}
	}
	return out
}

// Every folder that a pod mounts under /etc/findings is read by a flag, or by Go as SSL_CERT_DIR, and every one that is
// read is mounted.
func TestEveryMountedFileIsRead(t *testing.T) {
	eachContainer(t, func(where string, container map[string]any) {
		arguments := fmt.Sprint(container["args"], container["env"])
		mounts, _ := container["volumeMounts"].([]any) //nolint:errcheck // none is fine
		mounted := map[string]bool{}
		for _, mount := range mounts {
			path := mount.(map[string]any)["mountPath"].(string)
			mounted[path] = true
			if !slices.Contains(pathsIn(arguments), path) {
				t.Errorf("%s mounts %s, which nothing reads: %s", where, path, arguments)
			}
		}
		for _, path := range pathsIn(arguments) {
			if !mounted[path] {
				t.Errorf("%s reads %s, which is not mounted", where, path)
			}
		}
	})
}

var mountPath = regexp.MustCompile(`(?:=|SSL_CERT_DIR value:)(/etc/findings/[a-z-]+)`)

// pathsIn returns the folders under /etc/findings in flags and in SSL_CERT_DIR.
func pathsIn(arguments string) []string {
	var out []string
	for _, found := range mountPath.FindAllStringSubmatch(arguments, -1) {
		out = append(out, found[1])
	}
	return out
}
