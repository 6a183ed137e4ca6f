package architecture

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

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
	var listed []string
	for _, resource := range project.Resources {
		listed = append(listed, resource.Kind)
		if !exists(filepath.Join(root, strings.TrimPrefix(resource.Path, module))) {
			t.Errorf("%s: %s does not exist", resource.Kind, resource.Path)
		}
		harness.Same(t, resource.Kind+" has a folder of a controller", resource.Controller, exists(filepath.Join(root, "controllers", strings.ToLower(resource.Kind))))
	}
	slices.Sort(listed)
	harness.Same(t, "the kinds in PROJECT, compared with those of internal/kube", slices.Sorted(maps.Keys(everyKind(t))), listed)
}
