package architecture

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Tools trust PROJECT for the list of kinds and controllers.
func TestTheProjectFileListsEveryKindAndItsController(t *testing.T) {
	root := harness.Root()
	var project struct {
		Resources []struct {
			Kind, Path string
			Controller bool
		}
	}
	harness.Must(t, yaml.Unmarshal([]byte(harness.RepositoryFile(t, "PROJECT")), &project))
	var listed, known []string
	for _, resource := range project.Resources {
		listed = append(listed, resource.Kind)
		if !exists(filepath.Join(root, strings.TrimPrefix(resource.Path, module))) {
			t.Errorf("%s: %s does not exist", resource.Kind, resource.Path)
		}
		harness.Same(t, resource.Kind+" has a folder of a controller", resource.Controller, exists(filepath.Join(root, "controllers", strings.ToLower(resource.Kind))))
	}
	scheme := runtime.NewScheme()
	harness.Must(t, v1alpha1.AddToScheme(scheme))
	for name, of := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if _, ok := kube.KindOf(reflect.New(of).Interface()); ok {
			known = append(known, name)
		}
	}
	slices.Sort(listed)
	slices.Sort(known)
	harness.Same(t, "the kinds in PROJECT, compared with those of internal/kube", known, listed)
}
