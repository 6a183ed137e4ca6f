package chart

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// acceptedFile lists incompatible changes that were made on purpose, one per line, in the form of
// incompatible.
const acceptedFile = "incompatible.txt"

// TestCRDsStayCompatible compares the CRDs with those before the last commit that changed them, and
// applies that commit's samples to them.
func TestCRDsStayCompatible(t *testing.T) {
	commit := lastBefore(t)
	accepted := strings.Split(harness.RepositoryFile(t, "test", "chart", "testdata", acceptedFile), "\n")
	for name, content := range filesAt(t, commit, "config/crd/bases") {
		after, err := readCRD([]byte(readFileOrEmpty(filepath.Join(harness.Root(), "config", "crd", "bases", name))))
		if err != nil {
			t.Errorf("config/crd/bases/%s of the commit %s is gone: %v", name, commit, err)
			continue
		}
		before, err := readCRD([]byte(content))
		harness.Must(t, err)
		for _, change := range incompatible(before, after) {
			if !slices.Contains(accepted, change) {
				t.Errorf("%s\n\tObjects of the commit %s may be refused or lose something. Change it back, or add the line to test/chart/testdata/%s.",
					change, commit, acceptedFile)
			}
		}
	}
}

// TestObjectsOutliveAnUpgradeOfTheCRDs creates the samples from before the last change under the
// CRDs of that time, upgrades the CRDs, and applies the same samples again.
func TestObjectsOutliveAnUpgradeOfTheCRDs(t *testing.T) {
	commit := lastBefore(t)
	t.Cleanup(func() { removeCRDs(t) })
	for _, content := range filesAt(t, commit, "config/crd/bases") {
		apply(t, content)
	}
	samples := filesAt(t, commit, "config/samples")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-sample"}}
	harness.Must(t, client.IgnoreAlreadyExists(env.Client.Create(t.Context(), namespace)))
	for _, content := range samples {
		apply(t, content)
	}
	files, err := filepath.Glob(filepath.Join(harness.Root(), "config", "crd", "bases", "*.yaml"))
	harness.Must(t, err)
	for _, file := range files {
		apply(t, readFileOrEmpty(file))
	}
	waitForKinds(t)
	for name, content := range samples {
		object := &unstructured.Unstructured{}
		harness.Must(t, yaml.Unmarshal([]byte(content), &object.Object))
		// A person or a GitOps tool then repeats the apply, which must change nothing.
		stored := env.Stored(t, object)
		apply(t, content)
		harness.Same(t, fmt.Sprintf("generation of %s of the commit %s after the upgrade", name, commit), stored.GetGeneration(), env.Stored(t, object).GetGeneration())
		// Stored objects may continue to violate a new rule; new objects may not.
		harness.NoError(t, fmt.Sprintf("%s of the commit %s, made anew", name, commit), env.Client.Create(t.Context(), renamed(t, content), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)))
	}
}

func renamed(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	harness.Must(t, yaml.Unmarshal([]byte(manifest), &object.Object))
	object.SetName(object.GetName() + "-anew")
	return object
}

// lastBefore returns the commit before the last change of the CRDs: HEAD if the change is not
// committed yet.
func lastBefore(t *testing.T) string {
	t.Helper()
	commit, missing := lastBeforeIn(t, harness.Root())
	if missing != "" {
		needs.Missing(t, "%s", missing)
	}
	return commit
}

// lastBeforeIn is lastBefore in a clone of the repository, or returns what it lacks to know the commit.
func lastBeforeIn(t *testing.T, clone string) (commit, missing string) {
	t.Helper()
	if _, err := git(t, clone, "rev-parse", "--verify", "-q", "HEAD"); err != nil {
		return "", fmt.Sprintf("the sources are no git repository: %v", err)
	}
	const crds = "config/crd/bases"
	if changed, err := git(t, clone, "status", "--porcelain", "--", crds); err != nil {
		t.Fatal(err)
	} else if changed != "" {
		return "HEAD", ""
	}
	last, err := git(t, clone, "log", "-1", "--format=%H", "--", crds)
	harness.Must(t, err)
	before, err := git(t, clone, "rev-parse", "--verify", "-q", last+"^")
	if err != nil {
		// In a shallow clone its oldest commit seems to have made all files. Compared with itself it has changed nothing.
		if shallow, err := git(t, clone, "rev-parse", "--is-shallow-repository"); err != nil || shallow == "true" {
			return "", "the clone lacks the commit before the last change of the CRDs (git fetch --unshallow)"
		}
		return "HEAD", "" // the first commit
	}
	if files, err := git(t, clone, "ls-tree", "--name-only", before, crds+"/"); err != nil || files == "" {
		return "HEAD", ""
	}
	return before, ""
}

func TestAShallowCloneHasNoEarlierCRDsToCompareWith(t *testing.T) {
	lastBefore(t) // the test needs a repository too
	clone := filepath.Join(t.TempDir(), "clone")
	_, err := git(t, harness.Root(), "clone", "-q", "--depth=1", "file://"+harness.Root(), clone)
	harness.Must(t, err)
	if commit, missing := lastBeforeIn(t, clone); missing == "" {
		t.Errorf("the CRDs would be compared with those of %s", commit)
	}
}

// filesAt returns the YAML files of a folder at a commit, by name.
func filesAt(t *testing.T, commit, folder string) map[string]string {
	t.Helper()
	names, err := git(t, harness.Root(), "ls-tree", "--name-only", commit, folder+"/")
	harness.Must(t, err)
	files := map[string]string{}
	for _, name := range strings.Fields(names) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		if files[path.Base(name)], err = git(t, harness.Root(), "show", commit+":"+name); err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 5 {
		t.Fatalf("%s has only %d files at %s", folder, len(files), commit)
	}
	return files
}

func git(t *testing.T, clone string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", append([]string{"-C", clone}, arguments...)...)
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
}

// apply applies a manifest, with strict validation, as a person's tool does; CRDs take a moment to
// be served.
func apply(t *testing.T, manifest string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	harness.Must(t, yaml.Unmarshal([]byte(manifest), &object.Object))
	eventually(t, func() error {
		configuration := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
		// Strict: unknown members are refused, not dropped.
		err := client.WithFieldValidation(env.Client, metav1.FieldValidationStrict).Apply(
			context.WithoutCancel(t.Context()), configuration, client.FieldOwner("gitops"), client.ForceOwnership)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		if meta.IsNoMatchError(err) {
			return errors.Join(err, errors.New("the kind is not served yet"))
		}
		return err
	})
}

func readCRD(content []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, crd); err != nil {
		return nil, err
	}
	if len(crd.Spec.Versions) == 0 {
		return nil, errors.New("it has no version")
	}
	return crd, nil
}

func TestIncompatibleChangesAreFound(t *testing.T) {
	type props = apiextensionsv1.JSONSchemaProps
	spec := func(crd *apiextensionsv1.CustomResourceDefinition, change func(*props)) {
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		spec := root.Properties["spec"]
		change(&spec)
		root.Properties["spec"] = spec
	}
	property := func(name string, change func(*props)) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(crd *apiextensionsv1.CustomResourceDefinition) {
			spec(crd, func(spec *props) {
				one := spec.Properties[name]
				change(&one)
				spec.Properties[name] = one
			})
		}
	}
	for _, test := range []struct {
		reason string
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   string // empty if the change is compatible
	}{
		{"nothing changes", func(*apiextensionsv1.CustomResourceDefinition) {}, ""},
		{"a member comes", property("title", func(p *props) { p.Description = "New." }), ""},
		{"a bound is wider", property("title", func(p *props) { p.MaxLength = ptr.To[int64](20) }), ""},
		{"a value comes", property("level", func(p *props) { p.Enum = append(p.Enum, apiextensionsv1.JSON{Raw: []byte(`"c"`)}) }), ""},
		{"a required member has a default", func(crd *apiextensionsv1.CustomResourceDefinition) {
			spec(crd, func(s *props) {
				s.Properties["new"] = props{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"x"`)}}
				s.Required = append(s.Required, "new")
			})
		}, ""},
		{"a member goes", func(crd *apiextensionsv1.CustomResourceDefinition) {
			spec(crd, func(s *props) { delete(s.Properties, "title") })
		}, "things.example.com.spec.title: it is gone, and is dropped from what is stored"},
		{"a type changes", property("title", func(p *props) { p.Type = "integer" }), `things.example.com.spec.title: the type was "string", and is "integer"`},
		{"a bound is closer", property("title", func(p *props) { p.MaxLength = ptr.To[int64](5) }), "things.example.com.spec.title: maxLength is closer than it was"},
		{"a bound is new", property("title", func(p *props) { p.MinLength = ptr.To[int64](1) }), "things.example.com.spec.title: minLength is closer than it was"},
		{"a value goes", property("level", func(p *props) { p.Enum = p.Enum[:1] }), `things.example.com.spec.level: the value "b" is refused`},
		{"values are listed", property("title", func(p *props) { p.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}} }), "things.example.com.spec.title: it takes some values alone now"},
		{"a pattern comes", property("title", func(p *props) { p.Pattern = "^a" }), `things.example.com.spec.title: the pattern was "", and is "^a"`},
		{"a member is required", func(crd *apiextensionsv1.CustomResourceDefinition) {
			spec(crd, func(s *props) { s.Required = append(s.Required, "title") })
		}, "things.example.com.spec.title: it is required now"},
		{"entries are bound", property("list", func(p *props) { p.Items.Schema.MaxLength = ptr.To[int64](1) }), "things.example.com.spec.list[]: maxLength is closer than it was"},
		{"a version is not served", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Served = false },
			"things.example.com: the version v1 is not served any more"},
		{"a selector goes", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].SelectableFields = nil },
			"things.example.com.spec.title: it cannot be selected by any more"},
		{"the scope changes", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = "Cluster" },
			"things.example.com: the scope was Namespaced, and is Cluster"},
	} {
		after := thing()
		test.change(after)
		got := strings.Join(incompatible(thing(), after), "\n")
		harness.Same(t, test.reason, test.want, got)
	}
}

func thing() *apiextensionsv1.CustomResourceDefinition {
	type props = apiextensionsv1.JSONSchemaProps
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Scope: "Namespaced",
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, SelectableFields: []apiextensionsv1.SelectableField{{JSONPath: ".spec.title"}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props{
					Type: "object", Properties: map[string]props{"spec": {Type: "object", Properties: map[string]props{
						"title": {Type: "string", MaxLength: ptr.To[int64](10)},
						"level": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}}},
						"list":  {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props{Type: "string"}}},
					}}},
				}},
			}},
		},
	}
}
