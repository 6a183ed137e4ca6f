package main

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// The API server accepts every manifest in the pages of the kinds and in the guides, field by field, and the
// expressions of policies compile.
func TestManifestsInTheDocsApply(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(harness.Root(), "docs", "kinds", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, guide := range []string{"triage.md", "kubectl-findings.md"} {
		pages = append(pages, filepath.Join(harness.Root(), "docs", guide))
	}
	// The controllers would create the examples' namespace for an Organization; for a dry run any marked one does.
	namespace := testenv.Create(t, env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "org-of-docs", Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: "x"},
	}})
	for _, page := range pages {
		content := harness.File(t, page)
		for _, manifest := range manifests(content) {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(manifest), &object.Object); err != nil {
				t.Errorf("%s: %v\n%s", filepath.Base(page), err, manifest)
				continue
			}
			if object.GetNamespace() != "" {
				object.SetNamespace(namespace.Name)
			}
			if err := env.Client.Create(t.Context(), object, client.DryRunAll,
				client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
				t.Errorf("%s: %v\n%s", filepath.Base(page), err, manifest)
			}
			if match, is, err := unstructured.NestedString(object.Object, "spec", "match"); is && err == nil {
				if _, err := triagepolicy.Compile(match); err != nil {
					t.Errorf("%s: %v\n%s", filepath.Base(page), err, manifest)
				}
			}
		}
	}
}

// manifests returns the documents in a page's yaml blocks that have a kind.
func manifests(page string) []string {
	var out []string
	for _, block := range strings.Split(page, "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for document := range strings.SplitSeq(block, "\n---\n") {
			if strings.Contains(document, "kind:") {
				out = append(out, document)
			}
		}
	}
	return out
}
