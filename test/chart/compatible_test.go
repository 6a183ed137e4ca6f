package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
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

const (
	// baseline is the commit since which all changes of the CRDs are compared: that of the last release, once there is one.
	baseline = "41c96b760b0693ea8c7141ce72c3a34a0579c49e"
	// acceptedFile lists incompatible changes that were made on purpose since then, one per line, in the form of
	// incompatible.
	acceptedFile = "incompatible.txt"
	crdFolder    = "config/crd/bases"
)

func TestCRDsStayCompatible(t *testing.T) {
	needsBaseline(t)
	accepted := strings.FieldsFunc(harness.RepositoryFile(t, "test", "chart", "testdata", acceptedFile),
		func(r rune) bool { return r == '\n' })
	found := changesSince(t, harness.Root(), baseline)
	for change, by := range found {
		if !slices.Contains(accepted, change) {
			t.Errorf("%s\n\tChanged by %s: objects may be refused or lose something. Change it back, or add the line to test/chart/testdata/%s.",
				change, cmp.Or(by, "what is not committed"), acceptedFile)
		}
	}
	for _, line := range accepted {
		if _, ok := found[line]; !ok {
			t.Errorf("test/chart/testdata/%s: no change since the commit %s needs this line, remove it: %s", acceptedFile, baseline, line)
		}
	}
}

// changesSince returns the incompatible changes of the CRDs since a commit, each with the commit that made it: empty if
// it is not committed. Each later commit is compared with its parent. Merges are left out, since they repeat what the
// commits of a branch changed: so a branch needs the same accepted lines before and after it is merged.
func changesSince(t *testing.T, clone, commit string) map[string]string {
	t.Helper()
	later := mustGit(t, clone, "rev-list", "--no-merges", "--full-history", commit+"..HEAD", "--", crdFolder)
	found := map[string]string{}
	for _, by := range strings.Fields(later) {
		for _, change := range crdChanges(t, clone, by+"^", by) {
			found[change] = by
		}
	}
	for _, change := range crdChanges(t, clone, "HEAD", "") {
		found[change] = ""
	}
	return found
}

// crdChanges returns the incompatible changes between two commits. The second may be empty: the files as they are now.
func crdChanges(t *testing.T, clone, before, after string) (found []string) {
	t.Helper()
	// The filter leaves out new files.
	files := mustGit(t, clone, append([]string{"diff", "--name-status", "--no-renames", "--diff-filter=a"},
		append(strings.Fields(before+" "+after), "--", crdFolder)...)...)
	for file := range slices.Chunk(strings.Fields(files), 2) {
		was, err := readCRD([]byte(fileAt(t, clone, before, file[1])))
		harness.Must(t, err)
		if file[0] == "D" {
			found = append(found, was.Name+": it is gone")
			continue
		}
		is, err := readCRD([]byte(fileAt(t, clone, after, file[1])))
		harness.Must(t, err)
		found = append(found, incompatible(was, is)...)
	}
	return found
}

// fileAt returns the content of a file at a commit or, without one, now.
func fileAt(t *testing.T, clone, commit, file string) string {
	t.Helper()
	if commit == "" {
		return harness.File(t, filepath.Join(clone, file))
	}
	return mustGit(t, clone, "show", commit+":"+file)
}

// TestObjectsOutliveAnUpgradeOfTheCRDs creates the samples of the baseline under its CRDs, upgrades the CRDs, and
// applies the same samples again.
func TestObjectsOutliveAnUpgradeOfTheCRDs(t *testing.T) {
	needsBaseline(t)
	t.Cleanup(func() { removeCRDs(t) })
	for _, content := range filesAt(t, crdFolder) {
		apply(t, content)
	}
	samples := filesAt(t, "config/samples")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-sample"}}
	harness.Must(t, client.IgnoreAlreadyExists(env.Client.Create(t.Context(), namespace)))
	for _, content := range samples {
		apply(t, content)
	}
	files, err := filepath.Glob(filepath.Join(harness.Root(), crdFolder, "*.yaml"))
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
		harness.Same(t, fmt.Sprintf("generation of %s of the commit %s after the upgrade", name, baseline), stored.GetGeneration(), env.Stored(t, object).GetGeneration())
		// Stored objects may continue to violate a new rule; new objects may not.
		harness.NoError(t, fmt.Sprintf("%s of the commit %s, made anew", name, baseline), env.Client.Create(t.Context(), renamed(t, content), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)))
	}
}

func renamed(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	harness.Must(t, yaml.Unmarshal([]byte(manifest), &object.Object))
	object.SetName(object.GetName() + "-anew")
	return object
}

func needsBaseline(t *testing.T) {
	t.Helper()
	if missing := missingIn(t, harness.Root(), baseline); missing != "" {
		needs.Missing(t, "%s", missing)
	}
}

// missingIn returns what a clone of the repository lacks for a comparison with the commit.
func missingIn(t *testing.T, clone, commit string) string {
	t.Helper()
	if _, err := git(t, clone, "rev-parse", "--verify", "-q", "HEAD"); err != nil {
		return fmt.Sprintf("the sources are no git repository: %v", err)
	}
	if _, err := git(t, clone, "merge-base", "--is-ancestor", commit, "HEAD"); err == nil {
		return ""
	}
	if shallow, err := git(t, clone, "rev-parse", "--is-shallow-repository"); err == nil && shallow == "true" {
		return "the clone lacks the commit " + commit + ", since which the CRDs are compared (git fetch --unshallow)"
	}
	return "HEAD does not descend from the commit " + commit +
		", since which the CRDs are compared: set baseline in test/chart/compatible_test.go to a commit of this history"
}

func TestWhatAComparisonWithAnEarlierCommitLacks(t *testing.T) {
	origin := t.TempDir()
	mustGit(t, origin, "init", "-q")
	first := commit(t, origin, "First")
	commit(t, origin, "Second")
	harness.Same(t, "missing in a full clone", "", missingIn(t, origin, first))
	shallow := filepath.Join(t.TempDir(), "shallow")
	mustGit(t, origin, "clone", "-q", "--depth=1", "file://"+origin, shallow)
	harness.Contains(t, "missing in a shallow clone", missingIn(t, shallow, first), "git fetch --unshallow")
	mustGit(t, origin, "checkout", "-q", "--orphan", "rewritten")
	commit(t, origin, "Rewritten")
	harness.Contains(t, "missing in a history that was rewritten", missingIn(t, origin, first), "set baseline in")
}

func TestABranchNeedsTheSameAcceptedLinesOnceItIsMerged(t *testing.T) {
	clone := t.TempDir()
	mustGit(t, clone, "init", "-q", "-b", "main")
	harness.Must(t, os.MkdirAll(filepath.Join(clone, crdFolder), 0o750))
	bound := func(length int64) string {
		crd := thing()
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.MaxProperties = &length
		content, err := yaml.Marshal(crd)
		harness.Must(t, err)
		harness.Must(t, os.WriteFile(filepath.Join(clone, crdFolder, "things.yaml"), content, 0o600))
		return commit(t, clone, fmt.Sprintf("Allow %d", length))
	}
	first := bound(64)
	mustGit(t, clone, "checkout", "-q", "-b", "branch")
	bound(63)
	bound(62)
	before := changesSince(t, clone, first)
	harness.Same(t, "changes on the branch", []string{
		"things.example.com: maxProperties was 63, and is 62", "things.example.com: maxProperties was 64, and is 63",
	}, slices.Sorted(maps.Keys(before)))
	mustGit(t, clone, "checkout", "-q", "main")
	mustGit(t, clone, "-c", "user.name=jo", "-c", "user.email=jo@example.com", "merge", "-q", "--no-ff", "--no-edit", "branch")
	harness.Same(t, "changes after the merge, by commit", before, changesSince(t, clone, first))
}

// commit commits all files of a clone, and returns the commit.
func commit(t *testing.T, clone, message string) string {
	t.Helper()
	mustGit(t, clone, "add", "--all")
	mustGit(t, clone, "-c", "user.name=jo", "-c", "user.email=jo@example.com", "commit", "-q", "--allow-empty", "-m", message)
	return mustGit(t, clone, "rev-parse", "HEAD")
}

// filesAt returns the YAML files of a folder at the baseline, by name.
func filesAt(t *testing.T, folder string) map[string]string {
	t.Helper()
	names := mustGit(t, harness.Root(), "ls-tree", "--name-only", baseline, folder+"/")
	files := map[string]string{}
	for _, name := range strings.Fields(names) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		files[path.Base(name)] = fileAt(t, harness.Root(), baseline, name)
	}
	if len(files) < 5 {
		t.Fatalf("%s has only %d files at %s", folder, len(files), baseline)
	}
	return files
}

func git(t *testing.T, clone string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", append([]string{"-C", clone}, arguments...)...)
	// In a hook of git these name the repository of the hook, whatever the folder.
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"}, name)
	})
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
}

func mustGit(t *testing.T, clone string, arguments ...string) string {
	t.Helper()
	out, err := git(t, clone, arguments...)
	if err != nil {
		t.Fatalf("git %s: %v", strings.Join(arguments, " "), err)
	}
	return out
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
		{"a bound is closer", property("title", func(p *props) { p.MaxLength = ptr.To[int64](5) }), "things.example.com.spec.title: maxLength was 10, and is 5"},
		{"a bound is new", property("title", func(p *props) { p.MinLength = ptr.To[int64](1) }), "things.example.com.spec.title: minLength was none, and is 1"},
		{"a value goes", property("level", func(p *props) { p.Enum = p.Enum[:1] }), `things.example.com.spec.level: the value "b" is refused`},
		{"values are listed", property("title", func(p *props) { p.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}} }), "things.example.com.spec.title: it takes some values alone now"},
		{"a pattern comes", property("title", func(p *props) { p.Pattern = "^a" }), `things.example.com.spec.title: the pattern was "", and is "^a"`},
		{"a member is required", func(crd *apiextensionsv1.CustomResourceDefinition) {
			spec(crd, func(s *props) { s.Required = append(s.Required, "title") })
		}, "things.example.com.spec.title: it is required now"},
		{"entries are bound", property("list", func(p *props) { p.Items.Schema.MaxLength = ptr.To[int64](1) }), "things.example.com.spec.list[]: maxLength was none, and is 1"},
		{"a rule goes", property("level", func(p *props) { p.XValidations = nil }), ""},
		{"a rule applies to new objects too", property("level", func(p *props) { p.XValidations[0].OptionalOldSelf = ptr.To(true) }), `things.example.com.spec.level: the rule "self != ''" is new`},
		{"a rule has another message", property("level", func(p *props) { p.XValidations[0].Message = "New." }), ""},
		{"a rule changes", property("level", func(p *props) { p.XValidations[0].Rule = `self == "a"` }), `things.example.com.spec.level: the rule "self == \"a\"" is new`},
		{"a default changes", property("level", func(p *props) { p.Default = &apiextensionsv1.JSON{Raw: []byte(`"b"`)} }), `things.example.com.spec.level: the default was "a", and is "b"`},
		{"a default goes", property("level", func(p *props) { p.Default = nil }), `things.example.com.spec.level: the default was "a", and is none`},
		{"entries must differ", property("list", func(p *props) { p.XListType = ptr.To("set") }), `things.example.com.spec.list: the list type was "atomic", and is "set"`},
		{"entries have another key", property("map", func(p *props) { p.XListMapKeys = []string{"title"} }), `things.example.com.spec.map: the list type was "map name", and is "map title"`},
		{"an object has one owner", property("labels", func(p *props) { p.XMapType = ptr.To("atomic") }), `things.example.com.spec.labels: the map type was "granular", and is "atomic"`},
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
						"level": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}},
							Default: &apiextensionsv1.JSON{Raw: []byte(`"a"`)}, XValidations: apiextensionsv1.ValidationRules{{Rule: "self != ''"}}},
						"labels": {Type: "object"},
						"map":    {Type: "array", XListType: ptr.To("map"), XListMapKeys: []string{"name"}},
						"list":   {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props{Type: "string"}}},
					}}},
				}},
			}},
		},
	}
}
