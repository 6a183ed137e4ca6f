package main

import (
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

const role = `# Why.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: findings-api
  namespace: findings-system
  labels:
    app.kubernetes.io/name: findings-operator
`

const account = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: findings-api
  namespace: findings-system
  labels:
    app.kubernetes.io/name: findings-operator
`

const crd = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.0.0
  name: scans.appsec.dev
spec:
  description: a client's {{template}}
`

func TestManifestsBecomeTemplates(t *testing.T) {
	for _, test := range []struct {
		reason, manifest string
		want             []string
		not              []string
	}{
		{"names and namespaces follow the release", role,
			[]string{`name: {{ include "findings.fullname" . }}-api` + "\n", "namespace: {{ .Release.Namespace | quote }}\n", labels, "# Why.\n",
				`{{- if include "findings.plane" . }}`}, []string{"findings-system", "findings-api"}},
		{"accounts are in every release", account, []string{"kind: ServiceAccount\n"}, []string{"{{- if"}},
		{"documents are taken one by one", account + "---\n" + role, []string{"kind: ServiceAccount\n", "{{- end }}"}, nil},
		{"a CRD is kept", crd, []string{"    helm.sh/resource-policy: keep\n", labels}, nil},
		{"what looks like a template is text", crd, []string{`a client's {{ "{{" }}template}}`}, []string{"a client's {{template"}},
		{"an account in a policy follows the release", role + "x: \"'system:serviceaccount:findings-system:findings-api'\"\n",
			[]string{`system:serviceaccount:{{ .Release.Namespace }}:{{ include "findings.fullname" . }}-api'`}, nil},
		{"a field manager has its own name", role + "x: manager == 'findings-api'\n", []string{"manager == 'findings-api'"}, nil},
	} {
		got, err := template(test.manifest)
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		harness.Contains(t, test.reason, got, test.want...)
		harness.Lacks(t, test.reason, got, test.not...)
	}
}

// The replacements depend on the manifests' form, so an unknown form must be an error.
func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	for _, test := range []struct{ reason, manifest, want string }{
		{"a namespace in another form", strings.ReplaceAll(role, "namespace: findings-system", "namespace: 'findings-system'"), "findings-system"},
		{"an account in another form", role + "x: findings-system/findings-api\n", "follows the release"},
		{"no labels", strings.Split(role, "  labels:")[0], "metadata.labels"},
		{"a CRD that would not be kept", strings.ReplaceAll(crd, "controller-gen.kubebuilder.io", "example.com") +
			"  labels:\n    app.kubernetes.io/name: findings-operator\n", "metadata.annotations"},
		{"no object", "# nothing\n  labels:\n    app.kubernetes.io/name: findings-operator\n", "one object"},
	} {
		if got, err := template(test.manifest); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q:\n%s", test.reason, err, test.want, got)
		}
	}
}
