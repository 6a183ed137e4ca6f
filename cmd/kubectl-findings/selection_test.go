package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestTheFilterIsAFieldSelector(t *testing.T) {
	for reason, tc := range map[string]struct {
		filter filter
		want   string
	}{
		"nothing is asked for":        {filter{}, ""},
		"exact values":                {filter{repository: "r", project: "p", class: "CWE-89", tool: "gosec"}, "spec.repositoryRef.name=r,spec.projectRef.name=p,spec.class=CWE-89,spec.tool=gosec"},
		"what would end a term":       {filter{tool: `a,b=c\`}, `spec.tool=a\,b\=c\\`},
		"one value":                   {filter{severities: []string{"High"}}, "spec.details.severity=high"},
		"one value twice":             {filter{severities: []string{"high", "HIGH"}}, "spec.details.severity=high"},
		"two values: not the third":   {filter{severities: []string{"low", "high"}}, "spec.details.severity!=medium"},
		"all values of what all have": {filter{severities: []string{"low", "high", "medium"}}, ""},
		"a state: not as recorded":    {filter{states: []string{"open", "closed"}}, ""},
		"two, and not none":           {filter{categories: []string{"code", "secret"}}, "spec.category!=Package,spec.category!="},
		"all, and not none":           {filter{categories: []string{"code", "package", "secret"}}, "spec.category!="},
		"beside the user's own":       {filter{userStatuses: []string{"open"}, fields: "spec.tool!=x"}, "spec.triage.userStatus=open,spec.tool!=x"},
	} {
		options, err := tc.filter.options("org-acme")
		if err != nil || options.Namespace != "org-acme" {
			t.Errorf("%s: namespace %q, error %v", reason, options.Namespace, err)
			continue
		}
		if diff := cmp.Diff(tc.want, options.FieldSelector.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	_, err := (&filter{severities: []string{"critical"}, states: []string{"gone"}}).options("")
	if err == nil || !strings.Contains(err.Error(), "critical") || !strings.Contains(err.Error(), "gone") {
		t.Errorf("error %v, want both mistakes named", err)
	}
}

// What people are told to select by is what the API server selects by.
func TestTheFieldsAreThoseOfTheCRD(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "appsec.dev_findings.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, field := range crd.Spec.Versions[0].SelectableFields {
		want = append(want, strings.TrimPrefix(field.JSONPath, "."))
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(selectable))); diff != "" {
		t.Errorf("fields (-CRD +ours):\n%s", diff)
	}
}
