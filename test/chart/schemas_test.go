package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// foreign are kinds that no API server has built in; they are checked by hand below.
var foreign = []string{"ServiceMonitor", "PrometheusRule", "HTTPRoute"}

// TestEverythingRenderedIsOfItsSchema validates strictly with kubeconform: an API server silently
// drops unknown members unless validation is strict.
func TestEverythingRenderedIsOfItsSchema(t *testing.T) {
	schemas := writeSchemas(t)
	for name, file := range valueSets(t) {
		objects := Render(t, "findings", "findings-system", "--values", file)
		if out, err := kubeconform(t, schemas, objects); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// A check that refuses nothing would also pass.
func TestKubeconformRefusesWhatIsWrong(t *testing.T) {
	schemas := writeSchemas(t)
	for _, test := range []struct{ reason, manifest string }{
		{"an unknown member", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {prots: []}}`},
		{"an unknown member deep down", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {}, template: {spec: {containers: [{name: a, imagee: b}]}}}}`},
		{"a wrong type", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: two, selector: {}, template: {}}}`},
		{"a kind that there is not", `{apiVersion: apps/v1, kind: Deploymentt, metadata: {name: a}}`},
	} {
		object := &unstructured.Unstructured{}
		harness.Must(t, yaml.Unmarshal([]byte(test.manifest), &object.Object))
		if out, err := kubeconform(t, schemas, []*unstructured.Unstructured{object}); err == nil {
			t.Errorf("%s went through: %s", test.reason, out)
		}
	}
}

func kubeconform(t *testing.T, schemas string, objects []*unstructured.Unstructured) (string, error) {
	t.Helper()
	var input bytes.Buffer
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		harness.Must(t, err)
		fmt.Fprintf(&input, "---\n%s", content)
	}
	command := exec.CommandContext(t.Context(), tool(t, "kubeconform"), "-strict", "-skip", strings.Join(foreign, ","),
		"-schema-location", filepath.Join(schemas, "{{ .ResourceKind }}-{{ .Group }}-{{ .ResourceAPIVersion }}.json"))
	command.Stdin = &input
	out, err := command.CombinedOutput()
	return string(out), err
}

// writeSchemas writes a JSON schema for each kind of the API server, from its published OpenAPI
// documents, into a folder.
func writeSchemas(t *testing.T) string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(env.Config)
	harness.Must(t, err)
	paths, err := client.OpenAPIV3().Paths()
	harness.Must(t, err)
	folder := t.TempDir()
	written := 0
	for path, group := range paths {
		if !strings.HasPrefix(path, "api/") && !strings.HasPrefix(path, "apis/") {
			continue
		}
		content, err := group.Schema("application/json")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		written += writeGroup(t, folder, content)
	}
	if written < 50 {
		t.Fatalf("the API server publishes only %d kinds", written)
	}
	return folder
}

type openAPI struct {
	Components struct {
		Schemas map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

func writeGroup(t *testing.T, folder string, content []byte) int {
	t.Helper()
	document := harness.Decoded[openAPI](t, content)
	schemas := document.Components.Schemas
	for _, schema := range schemas {
		closeSchema(schema)
	}
	written := 0
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		kinds, _ := schemas[name]["x-kubernetes-group-version-kind"].([]any) //nolint:errcheck // a part of a kind has none
		// A schema that belongs to every group, such as DeleteOptions, is not that of a manifest.
		if len(kinds) != 1 {
			continue
		}
		kind := kinds[0].(map[string]any)
		schema := harness.JSON(t, map[string]any{
			"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/components/schemas/" + name, "components": document.Components,
		})
		// kubeconform uses the version as the group for the core group.
		group := cmp.Or(kind["group"].(string), kind["version"].(string))
		file := fmt.Sprintf("%s-%s-%s.json", strings.ToLower(kind["kind"].(string)), group, kind["version"])
		harness.Must(t, os.WriteFile(filepath.Join(folder, file), schema, 0o600))
		written++
	}
	return written
}

// closeSchema makes an object's schema refuse members that it does not name.
func closeSchema(schema map[string]any) {
	if properties, found := schema["properties"].(map[string]any); found {
		if schema["additionalProperties"] == nil && schema["x-kubernetes-preserve-unknown-fields"] != true {
			schema["additionalProperties"] = false
		}
		for _, property := range properties {
			closeSchema(property.(map[string]any))
		}
	}
	for _, member := range []string{"items", "additionalProperties"} {
		if inner, found := schema[member].(map[string]any); found {
			closeSchema(inner)
		}
	}
}

// The API server does not have the kinds of the Prometheus operator and of the Gateway API.
func TestForeignKindsHaveTheFormTheirDocumentsGive(t *testing.T) {
	objects := Render(t, "findings", "findings-system", "--values", filepath.Join("testdata", "values", "everything.yaml"))
	services := map[string]*unstructured.Unstructured{}
	seen := map[string]int{}
	for _, object := range objects {
		seen[object.GetKind()]++
		if object.GetKind() == "Service" {
			services[object.GetName()] = object
		}
	}
	if seen["ServiceMonitor"] != 2 || seen["PrometheusRule"] != 1 || seen["HTTPRoute"] != 1 {
		t.Errorf("rendered are %v", seen)
	}
	for _, object := range objects {
		if object.GetKind() == "ServiceMonitor" {
			harness.Same(t, object.GetName(), "monitoring.coreos.com/v1", object.GetAPIVersion())
			if selected := selectedServices(object, services); len(selected) != 1 || !strings.HasSuffix(selected[0], "-metrics") {
				t.Errorf("ServiceMonitor %s finds the port metrics in %v; want one Service", object.GetName(), selected)
			}
		}
	}
	route := one(t, objects, "HTTPRoute", "everything-api")
	service := services["everything-api"]
	port, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports") //nolint:errcheck // compared below
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")  //nolint:errcheck // compared below
	// With all defaults of the Gateway API, else Argo CD sees a difference for ever.
	harness.Same(t, "the route", []any{map[string]any{
		"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}},
		"backendRefs": []any{map[string]any{
			"group": "", "kind": "Service", "name": service.GetName(), "port": port[0].(map[string]any)["port"], "weight": int64(1),
		}},
	}}, rules)
}

// selectedServices returns the Services that a ServiceMonitor selects and that have its port.
func selectedServices(monitor *unstructured.Unstructured, services map[string]*unstructured.Unstructured) []string {
	labels, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels") //nolint:errcheck // none selects all
	var selected []string
	for name, service := range services {
		ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports") //nolint:errcheck // as above
		hasPort := slices.ContainsFunc(ports, func(port any) bool { return port.(map[string]any)["name"] == "metrics" })
		matches := true
		for key, value := range labels {
			matches = matches && service.GetLabels()[key] == value
		}
		if matches && hasPort {
			selected = append(selected, name)
		}
	}
	return selected
}
