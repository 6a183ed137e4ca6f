package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestTheChartPassesTheLintOfHelm(t *testing.T) {
	for name, file := range valueSets(t) {
		if out, err := Helm(t, "lint", "--strict", Folder(), "--values", file); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// mistake is a value that the chart refuses, with a text of the refusal. An object and an empty list are set as JSON.
type mistake struct{ reason, set, want string }

// mistakes are refused together, one slice per run of helm, which names all that the schema refuses. Two mistakes of one
// run neither set the same value nor want the same text.
var mistakes = [][]mistake{
	{
		{"a member that is misspelt", "image.tagg=v1", "additional properties 'tagg' not allowed"},
		{"a level that there is not", "controller.logLevel=loud", "'/controller/logLevel'"},
		{"less than the binary takes", "api.dataStaleness=2m", "'/api/dataStaleness'"},
		{"a number in words", "api.replicas=two", "'/api/replicas'"},
		{"an Ingress for no host", "ingress.enabled=true", "'/ingress/host'"},
		{"a route for a URL", "httpRoute.hostnames={https://findings.example.com}", "'/httpRoute/hostnames/0'"},
		{"a route of no gateway", "httpRoute.enabled=true", "'/httpRoute/parentRefs'"},
		{"a range that is none", "controller.webhookAllowCIDRs={internal}", "'/controller/webhookAllowCIDRs/0'"},
		{"no workers", "controller.concurrency.finding=0", "'/controller/concurrency/finding'"},
		{"a controller that there is not", "controller.concurrency.foo=3", "additional properties 'foo' not allowed"},
		{"nobody to reconcile", "controller.replicas=0", "'/controller/replicas'"},
		{"fewer removals a second than the binary takes", "controller.retentionRate=0.05", "'/controller/retentionRate'"},
		{"a resource that is misspelt", "api.resources.requests.memroy=1Gi", "'memroy'"},
		{"a quantity that is none", "api.resources.requests.memory=1Gib", "'/api/resources/requests/memory'"},
		{"an affinity that is misspelt", "api.affinity.podAntiAfinity.x=y", "'podAntiAfinity' not allowed"},
		{"a rule of it that is misspelt", "api.affinity.podAntiAffinity.required[0].topologyKey=zone", "'required' not allowed"},
		{"a toleration that is misspelt", "controller.tolerations[0].kee=dedicated", "'kee' not allowed"},
		{"a peer that is misspelt, which would mean all", "networkPolicy.apiFrom[0].podSelectr.matchLabels.app=x", "'podSelectr' not allowed"},
		{"labels of a peer that are misspelt", "networkPolicy.metricsFrom[0].podSelector.matchLabel.app=x", "'matchLabel' not allowed"},
		{"a rule that is misspelt", "networkPolicy.extraEgress[0].port=4318", "'port' not allowed"},
		{"metrics without a unit", "metrics.serviceMonitor.interval=30", "'/metrics/serviceMonitor/interval'"},
		{"runbooks at no address", "metrics.prometheusRule.runbookURL=runbooks", "'/metrics/prometheusRule/runbookURL'"},
		{"a flag without its dashes", "api.extraArgs={log-level=debug}", "'/api/extraArgs/0'"},
		{"a digest that is cut", "image.digest=sha256:0123", "'/image/digest'"},
		{"no port of DNS, which means all", "networkPolicy.dnsPorts=[]", "'/networkPolicy/dnsPorts': minItems"},
		{"no port of the API server, which means all", "networkPolicy.apiServerPorts=[]", "'/networkPolicy/apiServerPorts': minItems"},
		{"no port of Redis, which means all", "networkPolicy.redisPorts=[]", "'/networkPolicy/redisPorts': minItems"},
		{"a tag in the repository", "image.repository=registry.example.com/findings-operator:build-1", "'/image/repository'"},
		{"half a byte of memory", "api.resources.limits.memory=512m", "'/api/resources/limits/memory'"},
		{"a range with more bits than an address", "controller.webhookDenyCIDRs={10.0.0.0/33}", "'/controller/webhookDenyCIDRs/0'"},
		{"a prefix of NAT64 of another length", "controller.webhookNAT64Prefixes={2001:db8::/64}", "'/controller/webhookNAT64Prefixes/0'"},
		{"a network that misses a number", "api.trustedProxies={10.0.0/8}", "'/api/trustedProxies/0'"},
		{"a name that no Secret has", "api.tls.secret=My_Secret", "'/api/tls/secret'"},
	},
	{
		{"a repository in upper case", "image.repository=registry.example.com/Findings", "'/image/repository'"},
		{"a range of IPv6 with more bits than an address", "api.trustedProxies={fd00::/129}", "'/api/trustedProxies/0'"},
		{"an address for a range", "controller.webhookDenyCIDRs={10.0.0.1}", "'/controller/webhookDenyCIDRs/0'"},
		{"an address with a number above 255", "controller.webhookAllowCIDRs={10.0.0.256/8}", "'/controller/webhookAllowCIDRs/0'"},
		{"a policy that is misspelt", "service.externalTrafficPolicy=local", "'/service/externalTrafficPolicy'"},
		{"a level that there was once", "controller.logLevel=panic", "'/controller/logLevel'"},
		{"an Ingress for a URL", "ingress.enabled=true,ingress.host=https://findings.example.com", "'/ingress/host'"},
		{"a route for an address", "httpRoute.hostnames={192.0.2.10}", "'/httpRoute/hostnames/0': '192.0.2.10' does not match pattern"},
		{"nobody to answer", "api.replicas=0", "'/api/replicas'"},
		{"a gateway that is misspelt", "httpRoute.enabled=true,httpRoute.parentRefs[0].nme=gateway", "'nme' not allowed"},
		{"metrics that are collected never", "metrics.serviceMonitor.interval=0s", "'/metrics/serviceMonitor/interval'"},
		{"metrics for nobody, which means for all", "networkPolicy.metricsFrom=[]", "'/networkPolicy/metricsFrom': minItems"},
		{"a rule of nothing, which means all", "networkPolicy.extraEgress[0]={}", "'/networkPolicy/extraEgress/0': minProperties"},
		{"no receivers, which means all", `networkPolicy.extraEgress[1]={"to":[]}`, "'/networkPolicy/extraEgress/1/to': minItems"},
		{"no ports, which means all", `networkPolicy.extraEgress[2]={"ports":[]}`, "'/networkPolicy/extraEgress/2/ports': minItems"},
		{"a port without a number, which means all", `networkPolicy.extraEgress[3]={"ports":[{}]}`,
			"'/networkPolicy/extraEgress/3/ports/0': missing property 'port'"},
		{"a rule of the controllers that is misspelt", `networkPolicy.controllerEgress[0]={"prt":443}`, "'prt' not allowed"},
		{"containers without bounds", "api.resources=null", "missing property 'resources'"},
	},
	{
		{"an Ingress for an address", "ingress.enabled=true,ingress.host=192.0.2.10", "'/ingress/host': '192.0.2.10' does not match pattern"},
		{"a route for a name without a label", "httpRoute.hostnames={a..b.example}", "'/httpRoute/hostnames/0'"},
		{"metrics that are older than what alerts look at", "metrics.serviceMonitor.interval=5m", "'/metrics/serviceMonitor/interval'"},
		{"an autoscaler without the request that it measures by", "api.resources.requests.cpu=null", "missing property 'cpu'"},
		{"IPv4 written as IPv6", "controller.webhookDenyCIDRs={::ffff:10.0.0.0/104}", "'/controller/webhookDenyCIDRs/0'"},
		{"proxies that are everybody", "api.trustedProxies={0.0.0.0/0}", "'/api/trustedProxies/0'"},
		{"more than all requests", "api.tracing.sampleRatio=1.5", "'/api/tracing/sampleRatio'"},
		{"a collector without a host", "api.tracing.endpoint=http://:4318", "'/api/tracing/endpoint'"},
		{"memory without a bound", "controller.resources.limits.memory=null", "missing property 'memory'"},
		{"controllers that may not connect to anything", "networkPolicy.controllerEgress=[]", "'/networkPolicy/controllerEgress': minItems"},
		{"a list of readers that is commented out, which would mean all", "networkPolicy.metricsFrom=null", "missing property 'metricsFrom'"},
	},
	{
		{"an Ingress for a name without a label", "ingress.enabled=true,ingress.host=a..b.example", "'/ingress/host'"},
		{"a route for a label that ends with a hyphen", "httpRoute.hostnames={x-.example}", "'/httpRoute/hostnames/0'"},
		{"proxies of IPv6 that are everybody", "api.trustedProxies={::/0}", "'/api/trustedProxies/0'"},
		{"metrics too rare for a rate in five minutes", "metrics.serviceMonitor.interval=3m", "'/metrics/serviceMonitor/interval'"},
	},
	{{"an Ingress for a label that begins with a hyphen", "ingress.enabled=true,ingress.host=findings.-x.com", "'/ingress/host'"}},
	// The templates refuse these, which helm renders only if the schema refuses nothing, and each ends the run.
	{{"more at least than at most", "api.autoscaling.minReplicas=8", "minReplicas is greater than maxReplicas"}},
	{{"a switch that is the parent chart's", "enabled=false", "enabled is only for the condition of a chart that depends on this one"}},
	{{"nobody to reconcile", "controller.enabled=false,api.cursorKeysSecret=keys", "another release must run the controllers"}},
	{{"nobody to create the cursor keys", "controller.enabled=false,findingsKubeconfigSecret=plane", "another release must run the controllers"}},
	{{"two parts that exclude each other", "planeOnly=true,findingsKubeconfigSecret=plane", "set one of them, in a release each"}},
}

func TestTheSchemaRefusesMistakesAndSaysWhere(t *testing.T) {
	for _, run := range mistakes {
		arguments := []string{"template", "findings", Folder()}
		for _, m := range run {
			flag := "--set"
			if _, value, _ := strings.Cut(m.set, "="); strings.IndexAny(value, "{[") == 0 && json.Valid([]byte(value)) {
				flag = "--set-json"
			}
			arguments = append(arguments, flag, m.set)
		}
		out, err := Helm(t, arguments...)
		if err == nil {
			t.Errorf("%v went through:\n%s", run, out)
			continue
		}
		for _, m := range run {
			if !strings.Contains(err.Error(), m.want) {
				t.Errorf("%s: --set %s: %v; want %s", m.reason, m.set, err, m.want)
			}
		}
	}
}

// A chart that depends on this one switches it off by a condition, whose value helm also passes to this chart.
func TestTheChartCanBeADependency(t *testing.T) {
	parent := t.TempDir()
	harness.Must(t, os.WriteFile(filepath.Join(parent, "Chart.yaml"), []byte(`
apiVersion: v2
name: security
version: 1.0.0
dependencies: [{name: findings-operator, version: ">=0-0", condition: findings-operator.enabled}]
`), 0o600))
	harness.Must(t, os.CopyFS(filepath.Join(parent, "charts", "findings-operator"), os.DirFS(Folder())))
	for enabled, want := range map[string]bool{"true": true, "false": false} {
		out, err := Helm(t, "template", "security", parent, "--set", "findings-operator.enabled="+enabled)
		harness.Must(t, err)
		harness.Same(t, "Deployments are rendered with enabled="+enabled, want, strings.Contains(out, "kind: Deployment"))
	}
}

// Helm drops a value that is null, with its default, such as a list whose items are all commented out. What the templates
// make of its absence need not be less: a NetworkPolicy without ports lets everything through.
func TestNoDefaultCanBeDropped(t *testing.T) {
	var values, schema map[string]any
	for name, into := range map[string]*map[string]any{"values.yaml": &values, "values.schema.json": &schema} {
		harness.Must(t, yaml.Unmarshal([]byte(harness.RepositoryFile(t, "charts", "findings-operator", name)), into))
	}
	definitions := schema["definitions"].(map[string]any)
	defaults := 0
	var dropped []string
	var walk func(path string, values, schema map[string]any)
	walk = func(path string, values, schema map[string]any) {
		if reference, refers := schema["$ref"].(string); refers {
			schema = definitions[strings.TrimPrefix(reference, "#/definitions/")].(map[string]any)
		}
		named, _ := schema["properties"].(map[string]any) //nolint:errcheck // what has none is open: its members are the user's
		required, _ := schema["required"].([]any)         //nolint:errcheck // none is required then
		for _, name := range slices.Sorted(maps.Keys(named)) {
			value := values[name]
			if slices.Contains([]string{"<nil>", "", "false", "[]", "map[]"}, fmt.Sprint(value)) {
				if value != nil && !slices.Contains(required, any(name)) {
					dropped = append(dropped, "--set", strings.ReplaceAll(strings.TrimPrefix(path+"/"+name, "/"), "/", ".")+"=null")
				}
				continue
			}
			defaults++
			if !slices.Contains(required, any(name)) {
				t.Errorf("%s/%s is not required: null would drop its default, %v", path, name, value)
			}
			if members, isMap := value.(map[string]any); isMap {
				walk(path+"/"+name, members, named[name].(map[string]any))
			}
		}
	}
	walk("", values, schema)
	if defaults < 30 {
		t.Errorf("only %d defaults were looked at", defaults)
	}
	with, without := Render(t, "findings", "findings-system"), Render(t, "findings", "findings-system", dropped...)
	harness.Same(t, "objects with empty defaults, compared with none", byName(t, with), byName(t, without))
}

// A member that the schema does not name is a mistake: nothing reads it.
func TestTheSchemaIsClosed(t *testing.T) {
	schema := harness.Decoded[any](t, []byte(harness.File(t, filepath.Join(Folder(), "values.schema.json"))))
	// Values of other charts, which helm also passes to this one.
	open := []string{"/properties/global"}
	objects := 0
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch node := node.(type) {
		case map[string]any:
			if node["type"] == "object" {
				objects++
				if _, closed := node["additionalProperties"]; !closed && !slices.Contains(open, path) {
					t.Errorf("%s takes members that it does not name: a misspelt one looks like success", path)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(node)) {
				walk(path+"/"+name, node[name])
			}
		case []any:
			for i := range node {
				walk(fmt.Sprintf("%s/%d", path, i), node[i])
			}
		}
	}
	walk("", schema)
	if objects < 20 {
		t.Errorf("only %d objects were looked at", objects)
	}
}

// A value that no template reads would look like success. Of a section that a template passes on whole, the test accepts
// each name that any template reads, though perhaps of another section.
func TestTheTemplatesReadEachValue(t *testing.T) {
	var templates strings.Builder
	err := filepath.WalkDir(filepath.Join(Folder(), "templates"), func(path string, file os.DirEntry, err error) error {
		if err == nil && !file.IsDir() {
			templates.WriteString(harness.File(t, path))
		}
		return err
	})
	harness.Must(t, err)
	reads := func(form string, names ...any) bool {
		return regexp.MustCompile(fmt.Sprintf(form, names...)).MatchString(templates.String())
	}
	schema := harness.Decoded[map[string]any](t, []byte(harness.File(t, filepath.Join(Folder(), "values.schema.json"))))
	var walk func(path string, schema map[string]any)
	walk = func(path string, schema map[string]any) {
		for name, member := range schema["properties"].(map[string]any) {
			member, full := member.(map[string]any), path+"."+name
			within := path != "" && reads(`\.Values%s[^.\w]`, regexp.QuoteMeta(path)) && reads(`[ (]\.%s\b`, name)
			switch {
			case slices.Contains([]string{".global", ".enabled"}, full): // for parent charts
			case member["properties"] != nil && !reads(`range [^}]*\.Values%s `, regexp.QuoteMeta(full)):
				walk(full, member)
			case !within && !reads(`\.Values%s\b`, regexp.QuoteMeta(full)):
				t.Errorf("no template reads %s: add it to %s", full[1:], filepath.Join(Folder(), "templates"))
			}
		}
	}
	walk("", schema)
}

// Both ways of installing give the same operator: a release named findings, in findings-system, has
// the names of config/.
func TestKustomizeGivesTheSameAsTheChart(t *testing.T) {
	// A release's manifests name its chart version.
	manifests := strings.ReplaceAll(kustomization(t, "default"), "'findings-operator/devel'", "'findings-operator/"+appVersion(t)+"'")
	kustomize := byName(t, Decode(t, manifests))
	// helm creates the namespace, and has a test pod, which one policy lets in and another lets out.
	delete(kustomize, "Namespace findings-system")
	chart := byName(t, Render(t, "findings", "findings-system"))
	delete(chart, "Pod findings-test")
	delete(chart, "NetworkPolicy findings-test")
	delete(chart, "NetworkPolicy findings-test-egress")
	harness.Same(t, "the chart, compared with config/default", kustomize, chart)
}

// Deleting config/default would delete every object of the kinds with the CRDs, and the keys with the namespace.
func TestUninstallingWithKustomizeDeletesWhatHelmDeletes(t *testing.T) {
	want := slices.DeleteFunc(names(Decode(t, kustomization(t, "default"))), func(name string) bool {
		return strings.HasPrefix(name, "CustomResourceDefinition/") || strings.HasPrefix(name, "Namespace/")
	})
	harness.Same(t, "config/uninstall, compared with config/default without CRDs and namespace", want, names(Decode(t, kustomization(t, "uninstall"))))
}

// kustomization returns what a folder of config/ stands for.
func kustomization(t *testing.T, folder string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), testenv.Binary(t, "kubectl"), "kustomize",
		filepath.Join(harness.Root(), "config", folder)).Output()
	harness.Must(t, err)
	return string(out)
}

// byName returns the objects without what helm and Kubernetes' conventions add to those of a chart.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, object := range objects {
		name := object.GetKind() + " " + object.GetName()
		if out[name] != nil {
			t.Errorf("%s occurs twice", name)
		}
		out[name] = without(object.Object, "app.kubernetes.io/instance", "app.kubernetes.io/managed-by",
			"app.kubernetes.io/version", "helm.sh/chart", "helm.sh/resource-policy",
			// Only the chart's CRDs have this label.
			crdLabel(object))
	}
	return out
}

func crdLabel(object *unstructured.Unstructured) string {
	if object.GetKind() == "CustomResourceDefinition" {
		return "app.kubernetes.io/name"
	}
	return ""
}

// without removes members with these names at any depth, and maps that become empty.
func without(value any, members ...string) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, member := range value {
			if slices.Contains(members, key) {
				continue
			}
			stripped := without(member, members...)
			if empty, isMap := stripped.(map[string]any); isMap && len(empty) == 0 && key == "labels" {
				continue
			}
			out[key] = stripped
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = without(value[i], members...)
		}
		return out
	default:
		return value
	}
}

func TestTheImageIsWhatTheValuesSay(t *testing.T) {
	for set, want := range map[string]string{
		"api.replicas=2": "ghcr.io/appsec-dev/findings-operator:" + appVersion(t),
		"image.repository=[fd00::1]:5000/findings,image.tag=edge": "[fd00::1]:5000/findings:edge",
		"image.digest=" + sum: "ghcr.io/appsec-dev/findings-operator@" + sum,
	} {
		for _, object := range Render(t, "findings", "findings-system", "--set", set) {
			for _, container := range containers(object) {
				harness.Same(t, fmt.Sprintf("the image of %s with --set %s", object.GetName(), set), want, container["image"])
			}
		}
	}
}

// There is no image for Windows, whose nodes need not have a taint.
func TestPodsAreOnlyPlacedOnLinux(t *testing.T) {
	for name, file := range valueSets(t) {
		for _, object := range Render(t, "findings", "findings-system", "--values", file) {
			if pod := podOf(object); pod != nil {
				system, _, _ := unstructured.NestedString(pod, "spec", "nodeSelector", "kubernetes.io/os") //nolint:errcheck // none differs
				harness.Same(t, name+": the system of the nodes of "+object.GetName(), "linux", system)
			}
		}
	}
}

// Where the cluster places pods only with tolerations or selectors, the Pod of `helm test` needs those of the REST API.
func TestThePodOfHelmTestIsScheduledLikeTheRESTAPI(t *testing.T) {
	everything := valueSets(t)["everything"]
	placed := map[string]map[string]any{}
	for _, object := range Render(t, "findings", "findings-system", "--values", everything) {
		if spec, _, _ := unstructured.NestedMap(podOf(object), "spec"); spec != nil { //nolint:errcheck // most are no pods
			placed[object.GetName()] = spec
		}
	}
	api, test := placed["everything-api"], placed["everything-test"]
	affinity, _ := api["affinity"].(map[string]any)
	if affinity["podAntiAffinity"] == nil {
		t.Error("no rule about other Pods is set")
	}
	delete(affinity, "podAntiAffinity")
	for _, member := range []string{"priorityClassName", "nodeSelector", "affinity", "tolerations"} {
		if api[member] == nil {
			t.Errorf("%s is not set, so nothing is compared", member)
		}
		harness.Same(t, member, api[member], test[member])
	}
}

func TestTheRollBackInTheDocsChangesAnImageByDigest(t *testing.T) {
	arguments := slices.Concat([]string{"--set", "image.digest=" + sum}, setInTheDocs(t, "Roll back"))
	harness.Same(t, "images", []string{"ghcr.io/appsec-dev/findings-operator:build-1"}, images(t, arguments))
}

// Under the same reference the Deployments do not change, and no new process starts.
func TestTheUpgradeInTheDocsChangesTheImage(t *testing.T) {
	install := setInTheDocs(t, "With helm")
	installed, upgraded := images(t, install), images(t, slices.Concat(install, setInTheDocs(t, "Upgrade")))
	if len(installed) != 1 || len(upgraded) != 1 || installed[0] == upgraded[0] {
		t.Errorf("the release runs %q, and after the upgrade %q", installed, upgraded)
	}
}

// helm deletes the values with the release. What is forgotten then is a default again, such as who may call the REST API.
func TestTheMoveInTheDocsSavesTheValuesBeforeItUninstalls(t *testing.T) {
	section := sectionOfInstall(t, "Move to another namespace")
	for _, want := range []string{"helm get values findings -n findings-system -o yaml > your-values.yaml\n",
		// The ConfigMap has the overlap of a rotation that is not over: by default the former key would end early.
		"helm uninstall findings -n findings-system\n", "configmap/findings-signing-keys", "helm install findings", "--values your-values.yaml\n"} {
		_, after, found := strings.Cut(section, want)
		if !found {
			t.Fatalf("%q is not among the commands, or too early:\n%s", want, section)
		}
		section = after
	}
}

// helm and kubectl succeed before any new pod runs. Where none ever does, the earlier ones hide it.
func TestTheDocsWaitForThePodsThatTheyInstall(t *testing.T) {
	installs := regexp.MustCompile(`(?m)^(helm (install|upgrade) |kubectl apply .*-k )`)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```")
	plane := regexp.MustCompile(`planeOnly=true|config/plane`) // without pods
	for page, least := range map[string]int{"install.md": 5, "findings-plane.md": 1} {
		seen := 0
		for _, block := range blocks.FindAllString(harness.RepositoryFile(t, "docs", page), -1) {
			if plane.MatchString(block) {
				continue
			}
			for _, found := range installs.FindAllStringIndex(block, -1) {
				seen++
				namespace := "findings-system"
				if strings.Contains(block[found[0]:], "-n security ") {
					namespace = "security"
				}
				want := "\nkubectl rollout status -n " + namespace +
					" deployment/findings-controller deployment/findings-api --timeout="
				harness.Contains(t, page+": the pods are waited for", block[found[1]:], want)
			}
		}
		if seen < least {
			t.Errorf("found %d installations in docs/%s; did the form of the page change?", seen, page)
		}
	}
}

// setInTheDocs returns the values that the commands of a section of docs/install.md set, as arguments.
func setInTheDocs(t *testing.T, section string) []string {
	t.Helper()
	var out []string
	for _, found := range regexp.MustCompile(`--set ([\w.]+=\S+)`).FindAllStringSubmatch(sectionOfInstall(t, section), -1) {
		out = append(out, "--set", strings.ReplaceAll(found[1], `"`, ""))
	}
	return out
}

// sectionOfInstall returns the text of a section of docs/install.md.
func sectionOfInstall(t *testing.T, section string) string {
	t.Helper()
	_, text, found := strings.Cut(harness.RepositoryFile(t, "docs", "install.md"), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/install.md has no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// images returns the images of a release with these arguments, each once.
func images(t *testing.T, arguments []string) []string {
	t.Helper()
	var out []string
	for _, object := range Render(t, "findings", "findings-system", arguments...) {
		for _, container := range containers(object) {
			out = append(out, fmt.Sprint(container["image"]))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const sum = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func appVersion(t *testing.T) string {
	t.Helper()
	return inChart(t, `(?m)^appVersion: (\S+)$`)
}

// inChart returns what the first group of the expression matches in Chart.yaml.
func inChart(t *testing.T, expression string) string {
	t.Helper()
	found := regexp.MustCompile(expression).FindStringSubmatch(harness.RepositoryFile(t, "charts", "findings-operator", "Chart.yaml"))
	if found == nil {
		t.Fatalf("Chart.yaml has no line %s", expression)
	}
	return found[1]
}

func TestTheLowestVersionOfKubernetesIsTheDocumentedOne(t *testing.T) {
	version := inChart(t, `(?m)^kubeVersion: ">=(\d+[.]\d+)[.]0-0"$`)
	for page, says := range map[string]string{
		"docs/install.md": "Kubernetes " + version + " or later", "docs/decisions/chart.md": "lowest version is " + version + "*",
	} {
		if !strings.Contains(harness.RepositoryFile(t, filepath.FromSlash(page)), says) {
			t.Errorf("%s does not say %q", page, says)
		}
	}
}

// containers returns the containers of a Pod, or of a workload's template.
func containers(object *unstructured.Unstructured) []map[string]any {
	pod := podOf(object)
	if pod == nil {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(pod, "spec", "containers") //nolint:errcheck // what has another form has none
	var out []map[string]any
	for _, container := range list {
		out = append(out, container.(map[string]any))
	}
	return out
}

// eachContainer calls check with each container of every set of values.
func eachContainer(t *testing.T, check func(where string, container map[string]any)) {
	t.Helper()
	for name, file := range valueSets(t) {
		for _, object := range Render(t, "findings", "findings-system", "--values", file) {
			for _, container := range containers(object) {
				check(name+": "+object.GetName(), container)
			}
		}
	}
}

func podOf(object *unstructured.Unstructured) map[string]any {
	switch object.GetKind() {
	case "Pod":
		return object.Object
	case "Deployment":
		template, _, _ := unstructured.NestedMap(object.Object, "spec", "template") //nolint:errcheck // as above
		return template
	default:
		return nil
	}
}

// The binary exits at startup on an unknown flag.
func TestEveryFlagIsOneOfTheBinary(t *testing.T) {
	help, given := map[string]string{}, map[string]bool{}
	for _, command := range []string{"controller", "apiserver", "healthcheck"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(harness.Root(), "bin", "findings-operator"), command, "--help").CombinedOutput()
		if err != nil {
			t.Fatalf("bin/findings-operator %s --help (`make build` makes it): %v\n%s", command, err, out)
		}
		help[command] = string(out)
	}
	eachContainer(t, func(where string, container map[string]any) {
		arguments := container["args"].([]any)
		for _, argument := range arguments[1:] {
			flag, _, _ := strings.Cut(argument.(string), "=")
			if strings.HasPrefix(flag, "--") && !regexp.MustCompile(`(?m)`+flag+`\b`).MatchString(help[arguments[0].(string)]) {
				t.Errorf("%s has the flag %s, which bin/findings-operator %s does not have; does `make build` help?", where, flag,
					arguments[0])
			}
			given[flag] = true
		}
	})
	for _, name := range []string{"controller.yaml", "api.yaml"} {
		template := harness.File(t, filepath.Join(Folder(), "templates", name))
		for _, flag := range regexp.MustCompile(`(?m)^ +- (--[a-z0-9-]+)`).FindAllStringSubmatch(template, -1) {
			if !given[flag[1]] {
				t.Errorf("set the value of %s in %s: no values of the tests render it", flag[1], everythingOn)
			}
		}
	}
}

// Secrets are mounted as files: kubectl describe shows arguments and environments.
func TestNoSecretIsInAnArgumentOrTheEnvironment(t *testing.T) {
	eachContainer(t, func(where string, container map[string]any) {
		text := fmt.Sprint(container["env"], container["envFrom"], container["args"])
		harness.Lacks(t, where, text, "secretKeyRef", "secretRef")
	})
}

// Platforms name namespaces by numbers of customers or projects. For YAML such a name is a number, unless it is quoted.
func TestNamesOfDigitsAreTexts(t *testing.T) {
	for file, set := range map[string]string{
		"everything": "api.cursorKeysSecret=10042,api.redis.urlSecret=10042,api.redis.urlSecretKey=10042,api.tls.secret=10042," +
			"ingress.tlsSecret=10042,ingress.className=10042,api.priorityClassName=10042",
		"workloads": "findingsKubeconfigSecret=10042",
	} {
		for _, object := range Render(t, "10042", "10042", "--values", valueSets(t)[file], "--set-string", set) {
			member := regexp.MustCompile(`"[^"]*":10042\b`).FindString(string(harness.JSON(t, object.Object)))
			harness.Same(t, file+": a number in "+object.GetKind()+" "+object.GetName(), "", member)
		}
	}
}

// A release under another name and in another namespace contains none of the default names; the
// admission policies name service accounts, so with the default names nobody could write.
func TestNamesFollowTheRelease(t *testing.T) {
	objects := Render(t, "security", "elsewhere", "--values", filepath.Join("testdata", "values", "default.yaml"))
	accounts := map[string]bool{}
	for _, object := range objects {
		content := harness.JSON(t, object.Object)
		for _, usual := range []string{"findings-system", "findings-controller", "findings-api"} {
			// Quoted in CEL, it is the name of the binary's own field manager, which does not
			// change.
			text := regexp.MustCompile(`(==|!=) '`+usual+`'`).ReplaceAllString(strings.ReplaceAll(string(content), `\u0027`, "'"), "")
			harness.Lacks(t, object.GetKind()+" "+object.GetName()+" keeps no usual name", text, usual)
		}
		for _, found := range regexp.MustCompile(`system:serviceaccount:[a-z-]+:[a-z-]+`).FindAllString(string(content), -1) {
			if !strings.HasPrefix(found, "system:serviceaccount:kube-system:") { // Kubernetes' own
				accounts[found] = true
			}
		}
	}
	want := map[string]bool{
		"system:serviceaccount:elsewhere:security-controller": true,
		"system:serviceaccount:elsewhere:security-api":        true,
	}
	harness.Same(t, "the admission policies name other accounts than the release makes", want, accounts)
	for account := range want {
		one(t, objects, "ServiceAccount", account[strings.LastIndex(account, ":")+1:])
	}
}

// The API server would refuse the Services after it has created half of the release.
func TestAReleaseHasANameThatServicesCanHave(t *testing.T) {
	for name, refused := range map[string]bool{
		"team.findings": true, "2findings": false, strings.Repeat("f", 38) + "--x": false,
	} {
		_, err := Helm(t, "template", name, Folder(), "--show-only", "templates/api.yaml")
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "fullnameOverride") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, setting := range []string{"fullnameOverride=2findings", "planeOnly=true"} {
		_, err := Helm(t, "template", "team.findings", Folder(), "--set", setting)
		harness.NoError(t, "with "+setting, err)
	}
}

// With one Lease, of two releases in a namespace only one would work.
func TestEachReleaseHasItsOwnLease(t *testing.T) {
	for release, want := range map[string][]any{"findings": nil, "security": {"--leader-election-id=security-controller"}} {
		deployment := one(t, Render(t, release, "findings-system"), "Deployment", release+"-controller")
		var got []any
		for _, argument := range containers(deployment)[0]["args"].([]any) {
			if strings.HasPrefix(argument.(string), "--leader-election-id") {
				got = append(got, argument)
			}
		}
		harness.Same(t, "the flag of release "+release, want, got)
	}
}

// Each of the two releases contains its part, and together they contain what a single release
// contains.
func TestPlaneAndWorkloadsShareTheWholeOut(t *testing.T) {
	whole := names(Render(t, "findings", "findings-system"))
	plane := names(Render(t, "findings", "findings-system", "--set", "planeOnly=true"))
	workloads := names(Render(t, "findings", "findings-system", "--set", "findingsKubeconfigSecret=plane"))
	for _, name := range whole {
		inPlane, inWorkloads := slices.Contains(plane, name), slices.Contains(workloads, name)
		// Accounts in the plane are for tokens; accounts beside the workloads are for pods.
		if both := strings.HasPrefix(name, "ServiceAccount/"); inPlane && inWorkloads != both || !inPlane && !inWorkloads {
			t.Errorf("%s: in the plane %t, with the workloads %t", name, inPlane, inWorkloads)
		}
	}
	harness.Same(t, "objects of the parts, of which two are in both", len(whole)+2, len(plane)+len(workloads))
}

// A plane may have REST APIs in several clusters, and its controllers in one of them.
func TestAReleaseCanServeOnlyTheRESTAPI(t *testing.T) {
	objects := Render(t, "findings", "findings-system", "--values", everythingOn, "--set",
		"findingsKubeconfigSecret=plane,api.cursorKeysSecret=keys,controller.enabled=false")
	for _, object := range objects {
		if object.GetLabels()["app.kubernetes.io/component"] == "controller" || strings.HasSuffix(object.GetName(), "controller-local") {
			t.Errorf("%s %s is for controllers", object.GetKind(), object.GetName())
		}
	}
	rules := string(harness.JSON(t, one(t, objects, "PrometheusRule", "everything").Object))
	harness.Contains(t, "the alerts", rules, "FindingsAPIAbsent")
	harness.Lacks(t, "the alerts", rules, "FindingsControllersIdle", "FindingsQueueLong")
}

// Each pod gets its own kubeconfig, which must exist, and its own token, which a kubeconfig need not name. The process
// reads the token again when the kubelet has changed the file.
func TestTheTokenForThePlaneIsMountedBesideItsKubeconfig(t *testing.T) {
	objects := Render(t, "findings", "findings-system", "--set", "findingsKubeconfigSecret=plane")
	for _, process := range []string{"controller", "api"} {
		pod := podOf(one(t, objects, "Deployment", "findings-"+process))
		volumes, _, _ := unstructured.NestedSlice(pod, "spec", "volumes") //nolint:errcheck // none is found then
		at := slices.IndexFunc(volumes, func(v any) bool { return v.(map[string]any)["name"] == "plane" })
		if at < 0 {
			t.Fatalf("%s has no volume named plane: %v", process, volumes)
		}
		item := func(kind string) []any {
			return []any{map[string]any{"key": process + "." + kind, "path": process + "." + kind}}
		}
		want := []any{
			map[string]any{"secret": map[string]any{"name": "plane", "items": item("kubeconfig")}},
			map[string]any{"secret": map[string]any{"name": "plane", "items": item("token"), "optional": true}},
		}
		got, _, _ := unstructured.NestedSlice(volumes[at].(map[string]any), "projected", "sources") //nolint:errcheck // none differs
		harness.Same(t, process+" mounts other files for the plane", want, got)
	}
}

// Each replica that starts reads everything from kube-apiserver, so a short load must not start any.
func TestTheAutoscalerAddsReplicasForALastingLoadOnly(t *testing.T) {
	scaler := one(t, Render(t, "findings", "findings-system"), "HorizontalPodAutoscaler", "findings-api")
	seconds, _, err := unstructured.NestedFieldNoCopy(scaler.Object, "spec", "behavior", "scaleUp", "stabilizationWindowSeconds")
	if fmt.Sprint(seconds) != "120" || err != nil {
		t.Errorf("it waits %v seconds, error %v; want 120", seconds, err)
	}
}

// A proxy that speaks plain HTTP to a port of TLS gets no answer, and the release looks healthy.
func TestTheNotesAndTheServiceAskForTLS(t *testing.T) {
	for set, want := range map[string]string{
		"ingress.enabled=true,ingress.host=findings.3com,ingress.tlsSecret=tls": "backend-protocol: HTTPS",
		"httpRoute.enabled=true,httpRoute.parentRefs[0].name=gateway":           "BackendTLSPolicy for the Service findings-api",
	} {
		for tls, told := range map[string]bool{"": false, ",api.tls.secret=tls": true} {
			out, err := Helm(t, "install", "findings", Folder(), "--dry-run=client", "--set", set+tls)
			harness.Must(t, err)
			if strings.Contains(out, want) != told || strings.Contains(out, "appProtocol: https") != told {
				t.Errorf("--set %s: want %t: %q in the notes, and appProtocol in the Service:\n%s", set+tls, told, want, out)
			}
			harness.Contains(t, "--set "+set+tls+": the notes, since clients share rate limits", out, "Set api.trustedProxies")
		}
	}
}

// By default a Service of these types shows the nodes' addresses instead of the clients', who then share rate limits.
func TestTheServiceCanKeepTheAddressesOfClients(t *testing.T) {
	for kind, want := range map[string]any{"LoadBalancer": "Local", "NodePort": "Local", "ClusterIP": nil} {
		objects := Render(t, "findings", "findings-system", "--set", "service.externalTrafficPolicy=Local,service.type="+kind)
		spec := one(t, objects, "Service", "findings-api").Object["spec"].(map[string]any)
		harness.Same(t, "externalTrafficPolicy of type "+kind, want, spec["externalTrafficPolicy"])
	}
}

// A NetworkPolicy applies to the ports of pods, and those that answer DNS need not listen where their Service does.
func TestNamesCanBeLookedUpAtEveryPortOfDNS(t *testing.T) {
	objects := Render(t, "findings", "findings-system", "--set", "networkPolicy.dnsPorts={53,5353}")
	policy := one(t, objects, "NetworkPolicy", "findings-api")
	egress, _, _ := unstructured.NestedSlice(policy.Object, "spec", "egress") //nolint:errcheck // none differs
	var want []any
	for _, port := range []int64{53, 5353} {
		for _, protocol := range []string{"UDP", "TCP"} {
			want = append(want, map[string]any{"port": port, "protocol": protocol})
		}
	}
	harness.Same(t, "the first rule", any(map[string]any{"ports": want}), egress[0])
}

// Of numbers, helm's --set parses only whole ones.
func TestFractionsCanBeSetWithSet(t *testing.T) {
	objects := Render(t, "findings", "findings-system", "--set",
		"api.tracing.endpoint=http://collector:4318,api.tracing.sampleRatio=0.5,controller.retentionRate=2.5")
	for process, want := range map[string]any{"api": "--trace-sample-ratio=0.5", "controller": "--retention-rate=2.5"} {
		if args := containers(one(t, objects, "Deployment", "findings-"+process))[0]["args"].([]any); !slices.Contains(args, want) {
			t.Errorf("the flags of %s are %v, want %s among them", process, args, want)
		}
	}
}

func TestTheNotesEndWithTheAddressToAsk(t *testing.T) {
	const alertsAlone, balancer = "metrics.prometheusRule.enabled=true", "service.type=LoadBalancer"
	const ingress, plane = "ingress.enabled=true,ingress.host=findings.example.com", "findingsKubeconfigSecret=plane"
	const route = "api.trustedProxies={10.0.0.0/8},httpRoute.enabled=true,httpRoute.parentRefs[0].name=gateway"
	for set, want := range map[string]string{
		alertsAlone: "http://127.0.0.1:8080/v1/findings",
		balancer:    "http://127.0.0.1:8080/v1/findings",
		balancer + ",service.externalTrafficPolicy=Local,api.tls.secret=tls":    "https://127.0.0.1:8080/v1/findings",
		alertsAlone + ",metrics.serviceMonitor.enabled=true,api.tls.secret=tls": "https://127.0.0.1:8080/v1/findings",
		ingress: "http://findings.example.com/v1/findings",
		ingress + ",api.trustedProxies={10.0.0.0/8},ingress.tlsSecret=tls": "https://findings.example.com/v1/findings",
		"planeOnly=true": "The steps are in docs/findings-plane.md.",
		plane:            "http://127.0.0.1:8080/v1/findings",
		route:            "http://127.0.0.1:8080/v1/findings",
		route + ",httpRoute.parentRefs[0].sectionName=https": "http://127.0.0.1:8080/v1/findings",
		route + ",httpRoute.parentRefs[0].port=443":          "http://127.0.0.1:8080/v1/findings",
	} {
		out, err := Helm(t, "install", "findings", Folder(), "--dry-run=client", "--set", set)
		harness.Must(t, err)
		if lines := strings.Split(strings.TrimSpace(out), "\n"); !strings.HasSuffix(lines[len(lines)-1], want) {
			t.Errorf("--set %s: the last line is %q, want it to end with %s", set, lines[len(lines)-1], want)
		}
		for warning, of := range map[string]string{
			"plain HTTP from outside the cluster":  balancer,
			"all listeners of the Gateway gateway": route,
			"Set api.trustedProxies":               ingress, // clients that share an address share rate limits
			"service.externalTrafficPolicy=Local":  balancer,
			"No other release may run controllers": plane,       // the Lease is in the release's own cluster
			"Set metrics.serviceMonitor.enabled":   alertsAlone, // without a series two alerts fire for ever
		} {
			harness.Same(t, fmt.Sprintf("--set %s: the notes say %q", set, warning), set == of, strings.Contains(out, warning))
		}
	}
}

func TestTheCommandsOfTheNotesCanBePasted(t *testing.T) {
	notes, err := Helm(t, "install", "findings", Folder(), "--dry-run=client")
	harness.Must(t, err)
	wait, commands, begin := strings.Cut(notes, "Create an organization and an API key for it:\n")
	commands, _, end := strings.Cut(commands, "Call the REST API:\n")
	if !begin || !end {
		t.Fatalf("the notes are\n%s", notes)
	}
	// helm returns before any pod runs.
	const rollout = "\nkubectl rollout status -n default deployment/findings-controller deployment/findings-api --timeout="
	harness.Contains(t, "the pods are waited for", wait, rollout)
	folder := t.TempDir()
	const kubectl = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n[ \"$1\" = apply ] || exit 0\necho --- >>applied\ncat >>applied\n"
	harness.Must(t, os.WriteFile(filepath.Join(folder, "kubectl"), []byte(kubectl), 0o700)) //nolint:gosec // a program
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-s")
	shell.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	shell.Stdin = strings.NewReader(commands)
	if out, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	want := []string{"Organization/acme", "APIKey/first"}
	harness.Same(t, "what is applied", want, names(Decode(t, readFileOrEmpty(filepath.Join(folder, "applied")))))
}
