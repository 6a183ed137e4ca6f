package main

import (
	"fmt"
	"strings"
)

// The manifests of config/ are for an installation named findings in the namespace findings-system. In the chart both
// depend on the release.
const (
	namespace = "{{ .Release.Namespace }}"
	prefix    = `{{ include "findings.fullname" . }}`
)

// names are the replacements, in this order. The roles findings-viewer, -triager, -scanner and -admin keep their names:
// the Organization controller binds them by those names.
var names = strings.NewReplacer(
	// Manifests are not templates: escape what looks like one.
	"{{", `{{ "{{" }}`,

	"'findings-operator/devel'", "'findings-operator/{{ .Chart.AppVersion }}'",
	"system:serviceaccount:findings-system:findings-controller", "system:serviceaccount:"+namespace+":"+prefix+"-controller",
	"system:serviceaccount:findings-system:findings-api", "system:serviceaccount:"+namespace+":"+prefix+"-api",
	"namespace: findings-system\n", "namespace: {{ .Release.Namespace | quote }}\n", // YAML reads some names as a number
	"name: findings-controller\n", "name: "+prefix+"-controller\n",
	"name: findings-controller-local\n", "name: "+prefix+"-controller-local\n",
	"name: findings-api\n", "name: "+prefix+"-api\n",

	"  labels:\n    app.kubernetes.io/name: findings-operator\n", "  labels:\n"+labels,
	// Deleting a CRD would delete every object of its kind.
	"  annotations:\n    controller-gen.kubebuilder.io/version:",
	"  labels:\n"+labels+"  annotations:\n    helm.sh/resource-policy: keep\n    controller-gen.kubebuilder.io/version:",
)

const labels = `    {{- include "findings.labels" . | nindent 4 }}` + "\n"

// fixed are names that a template must not contain, except in comments.
var fixed = []string{"findings-system", "findings-controller", "findings-api"}

// managers removes the names of field managers in CEL: they belong to the binary.
var managers = strings.NewReplacer("'findings-api'", "", "'findings-controller'", "")

// template converts the documents of a manifest to those of a template.
func template(manifest string) (string, error) {
	var out strings.Builder
	for document := range strings.SplitSeq(strings.TrimPrefix(manifest, "---\n"), "\n---\n") {
		document = strings.TrimRight(document, "\n") + "\n"
		text := names.Replace(document)
		if err := check(document, text); err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s---\n%s%s", begin(document), text, end(document))
	}
	return out.String(), nil
}

// aggregated is the prefix of the label that aggregates rules into a role of Kubernetes.
const aggregated = "rbac.authorization.k8s.io/aggregate-to-"

// begin and end select the releases that contain a document: service accounts in all of them, what the controllers use
// if they only run there, the rest where the kinds are stored.
func begin(document string) string {
	switch {
	case strings.Contains(document, "\nkind: ServiceAccount\n"):
		return ""
	case strings.Contains(document, "findings-controller-local"):
		return `{{- if include "findings.controllers" . }}` + "\n"
	case strings.Contains(document, aggregated):
		return `{{- if and .Values.aggregateRoles (include "findings.plane" .) }}` + "\n"
	default:
		return `{{- if include "findings.plane" . }}` + "\n"
	}
}

func end(document string) string {
	if begin(document) == "" {
		return ""
	}
	return "{{- end }}\n"
}

// check finds what the replacements missed, since they depend on the manifests' form.
func check(document, text string) error {
	kind := "manifest"
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, "kind: "); found {
			kind = strings.TrimSpace(value)
		}
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, name := range fixed {
			if strings.Contains(managers.Replace(line), name) {
				return fmt.Errorf("%s: the line %q keeps the name %s, which follows the release", kind, strings.TrimSpace(line),
					name)
			}
		}
	}
	if !strings.Contains(text, labels) {
		return fmt.Errorf("%s: metadata.labels is not of the form that is replaced", kind)
	}
	if kind == "CustomResourceDefinition" && !strings.Contains(text, "helm.sh/resource-policy: keep\n") {
		return fmt.Errorf("%s: metadata.annotations is not of the form that is replaced", kind)
	}
	if strings.Count(document, "\nkind: ") != 1 {
		return fmt.Errorf("%s: a document holds one object", kind)
	}
	return nil
}
