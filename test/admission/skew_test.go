package admission_test

import (
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// warnings collects the API server's warnings until they are taken.
type warnings struct {
	mu   sync.Mutex
	said []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

func (w *warnings) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := strings.Join(w.said, "\n")
	w.said = nil
	return said
}

// release installs the policy under another name, as the chart of that release contains it.
func release(t *testing.T, version string) {
	t.Helper()
	manifest := harness.RepositoryFile(t, "config", "admission", "skew.yaml")
	text := strings.NewReplacer("findings-operator/devel", "findings-operator/"+version,
		"findings-skew.appsec.dev", "findings-skew-tried.appsec.dev").Replace(manifest)
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		harness.Must(t, yaml.Unmarshal([]byte(document), object))
		env.Create(t, object)
		t.Cleanup(func() { _ = env.Client.Delete(t.Context(), object) })
	}
}

func TestAnImporterOfADistantReleaseIsWarned(t *testing.T) {
	release(t, "0.4.1")
	c := newCast(t, "skew")
	said := &warnings{}
	config := rest.CopyConfig(c.members[scanner].config)
	config.WarningHandler = said
	as := env.As(t, config)
	warned := func(importer string) string {
		t.Helper()
		scan := builder.Scan("s-skew", start).In(c.namespace).Build()
		if importer != "" {
			scan.Annotations = map[string]string{v1alpha1.ImporterAnnotation: importer}
		}
		if err := as.Create(t.Context(), scan, client.DryRunAll); err != nil {
			t.Fatalf("%q: %v", importer, err)
		}
		return said.take()
	}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(warned("kubectl-findings/0.1.9")).To(ContainSubstring("kubectl-findings/0.1.9 imports into findings-operator/0.4.1"))
	})
	for importer, want := range map[string]bool{
		"": false, "kubectl-findings/devel": false, "x": false, "kubectl-findings/99999.0.0": false,
		"kubectl-findings/0.3.0": false, "kubectl-findings/0.4.9-rc.1": false, "kubectl-findings/0.5.0": false,
		"kubectl-findings/0.2.0": true, "kubectl-findings/0.6.0": true, "kubectl-findings/1.4.1": true,
	} {
		if got := warned(importer); (got != "") != want {
			t.Errorf("%q: warned %q, want a warning: %t", importer, got, want)
		}
	}
}
