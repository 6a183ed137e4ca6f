package conditions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// shared are the conditions that every kind has; ownAtMost is how many it may add.
var shared = []string{"Ready", "Stalled"}

const ownAtMost = 2

// parse parses the Go files of a folder, except for tests.
func parse(t *testing.T, folder ...string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(append([]string{harness.Root()}, append(folder, "*.go")...)...))
	harness.Must(t, err)
	var out []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		harness.Must(t, err)
		out = append(out, file)
	}
	if len(out) == 0 {
		t.Fatalf("no Go file in %s", filepath.Join(folder...))
	}
	return out
}

// stringConstants returns the string constants of those files by name. string(Other) has the value
// of Other.
func stringConstants(files []*ast.File) map[string]string {
	out, same := map[string]string{}, map[string]string{}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			spec, is := node.(*ast.ValueSpec)
			if !is || len(spec.Names) != 1 || len(spec.Values) != 1 {
				return true
			}
			switch value := spec.Values[0].(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(value.Value); err == nil {
					out[spec.Names[0].Name] = text
				}
			case *ast.CallExpr:
				if other, is := value.Args[0].(*ast.Ident); is {
					same[spec.Names[0].Name] = other.Name
				}
			}
			return true
		})
	}
	for name, other := range same {
		if text, known := out[other]; known {
			out[name] = text
		}
	}
	return out
}

// declaredBy returns the names with the prefix that the kind's own file in api/v1alpha1 declares.
func declaredBy(t *testing.T, kind, prefix string) []string {
	t.Helper()
	path := filepath.Join(harness.Root(), "api", "v1alpha1", strings.ToLower(kind)+"_types.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	harness.Must(t, err)
	var out []string
	for name := range stringConstants([]*ast.File{file}) {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out
}

// sharedReasons are the reasons that functions of controllers/internal set, by function name. A reason that
// is missing here fails TestTheExamplesBecomeReadyAndStayQuiet, or the comparison with the page.
var sharedReasons = map[string][]string{
	"Ready":             {"ReasonReconciled"},
	"JudgeByRepository": {"ReasonReconciled", "ReasonRepositoryNotFound"},
	"Children":          {"ReasonDeleting"},
}

// usedBy returns the names with the prefix that the kind's controller uses from api/v1alpha1.
func usedBy(t *testing.T, kind, prefix string) []string {
	t.Helper()
	var out []string
	for _, file := range parse(t, "controllers", strings.ToLower(kind)) {
		ast.Inspect(file, func(node ast.Node) bool {
			selector, is := node.(*ast.SelectorExpr)
			if !is {
				return true
			}
			if prefix == "Reason" {
				out = append(out, sharedReasons[selector.Sel.Name]...)
			}
			from, is := selector.X.(*ast.Ident)
			if is && from.Name == "v1alpha1" && selector.Sel.Name != prefix && strings.HasPrefix(selector.Sel.Name, prefix) {
				out = append(out, selector.Sel.Name)
			}
			return true
		})
	}
	return out
}

// values returns the values of the constants, sorted and without duplicates.
func values(t *testing.T, names []string) []string {
	t.Helper()
	constants := stringConstants(parse(t, "api", "v1alpha1"))
	var out []string
	for _, name := range names {
		value, known := constants[name]
		if !known {
			t.Fatalf("%s is no constant of api/v1alpha1", name)
		}
		out = append(out, value)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// conditionTypes returns the types that the kind may have: the shared ones and those that its file
// declares.
func conditionTypes(t *testing.T, kind string) []string {
	t.Helper()
	return append(slices.Clone(shared), values(t, declaredBy(t, kind, "Condition"))...)
}

// reasons returns all reasons that the kind's conditions may have.
func reasons(t *testing.T, kind string) []string {
	t.Helper()
	return values(t, append(usedBy(t, kind, "Reason"), declaredBy(t, kind, "Reason")...))
}

// conditionsSchema returns the schema of status.conditions in the kind's CRD.
func conditionsSchema(t *testing.T, kind string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	folder := filepath.Join(harness.Root(), "config", "crd", "bases")
	files, err := os.ReadDir(folder)
	harness.Must(t, err)
	for _, file := range files {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		harness.Must(t, yaml.Unmarshal([]byte(harness.RepositoryFile(t, "config", "crd", "bases", file.Name())), crd))
		if crd.Spec.Names.Kind == kind {
			return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
		}
	}
	t.Fatalf("config/crd/bases has no %s", kind)
	return apiextensionsv1.JSONSchemaProps{}
}

// typesListed matches the condition types in the description of status.conditions.
var typesListed = regexp.MustCompile(`^conditions of the [a-z ]+: ([A-Za-z, ]+)\.$`)

func TestEveryKindDeclaresItsConditions(t *testing.T) {
	// The schema of one kind, to compare all others with: test/schema checks the bounds themselves.
	var items *apiextensionsv1.JSONSchemaProps
	for _, kind := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			want := conditionTypes(t, kind)
			if len(want) > len(shared)+ownAtMost {
				t.Errorf("has %v: at most %d of its own are allowed", want, ownAtMost)
			}
			schema := conditionsSchema(t, kind)
			if schema.XListType == nil || *schema.XListType != "map" || !slices.Equal(schema.XListMapKeys, []string{"type"}) {
				t.Errorf("status.conditions is no map by type: %v %v", schema.XListType, schema.XListMapKeys)
			}
			if schema.MaxItems == nil || *schema.MaxItems != int64(len(shared)+ownAtMost) {
				t.Errorf("status.conditions may hold %v, want %d", schema.MaxItems, len(shared)+ownAtMost)
			}
			listed := typesListed.FindStringSubmatch(schema.Description)
			if listed == nil {
				t.Fatalf("the description of status.conditions names no types: %q", schema.Description)
			}
			harness.Same(t, "the description of status.conditions names others than there are",
				want, strings.Split(listed[1], ", "))
			if items == nil {
				items = schema.Items.Schema
			}
			harness.Same(t, "form of the condition, compared with other kinds", items, schema.Items.Schema)
			for _, bounded := range []string{"type", "reason", "message"} {
				if property := schema.Items.Schema.Properties[bounded]; property.MaxLength == nil {
					t.Errorf("%s has no bound", bounded)
				}
			}
		})
	}
}

// A controller must set only conditions that its kind declares.
func TestControllersSetDeclaredConditionsAlone(t *testing.T) {
	for _, kind := range kinds(t) {
		declared := conditionTypes(t, kind)
		for _, used := range values(t, usedBy(t, kind, "Condition")) {
			if !slices.Contains(declared, used) {
				t.Errorf("the controller of %s uses the condition %s, and the kind declares %v", kind, used, declared)
			}
		}
	}
}
