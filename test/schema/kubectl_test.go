package schema_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestKubectlFiltersAndShowsFindings(t *testing.T) {
	const namespace = "kubectl-findings"
	env.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	env.Create(t, content(t, builder.Finding("grave").In(namespace).Severity(v1alpha1.LevelHigh).Build()),
		content(t, builder.Finding("slight").In(namespace).Triage(v1alpha1.UserStatusMuted, "").Build()))
	high := env.Kubectl(t, namespace, "get", "findings", "--field-selector", "spec.details.severity=high", "-o", "name")
	harness.Same(t, "by severity", "finding.appsec.dev/grave\n", high)
	muted := env.Kubectl(t, namespace, "get", "fnd", "--field-selector", "spec.triage.userStatus=muted", "-o", "name")
	harness.Same(t, "by user status", "finding.appsec.dev/slight\n", muted)
	harness.Contains(t, "the category", env.Kubectl(t, namespace, "get", "appsec"), "finding.appsec.dev/grave")
	narrow, wide := env.Kubectl(t, namespace, "get", "findings"), env.Kubectl(t, namespace, "get", "findings", "-o", "wide")
	if !strings.Contains(narrow, "SEVERITY") || strings.Contains(narrow, "REPOSITORY") || !strings.Contains(wide, "REPOSITORY") {
		t.Errorf("columns:\n%s\nand with -o wide:\n%s", narrow, wide)
	}
}

// A delivery keeps attempts of earlier rounds.
func TestKubectlShowsTheCodeOfADeliverysLastAttempt(t *testing.T) {
	delivery := testenv.Create(t, env, builder.WebhookDelivery("refused", time.Now()).In("default").Build())
	testenv.ChangeStatus(t, env, delivery, func(d *v1alpha1.WebhookDelivery) {
		for _, code := range []int32{503, 413} {
			d.Status.Attempts = append(d.Status.Attempts, v1alpha1.WebhookAttempt{
				At: v1alpha1.Now(), Outcome: v1alpha1.WebhookAttemptFailed, Code: code,
			})
		}
	})
	harness.Contains(t, "the columns", env.Kubectl(t, "default", "get", "whd", "refused", "-o", "wide"), " 413 ")
}

func TestEverySelectableFieldSelects(t *testing.T) {
	for kind, crd := range crds(t) {
		for _, field := range crd.Spec.Versions[0].SelectableFields {
			path := strings.TrimPrefix(field.JSONPath, ".")
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(v1alpha1.GroupVersion.String())
			list.SetKind(crd.Spec.Names.ListKind)
			harness.NoError(t, kind+" by "+path, env.Client.List(t.Context(), list, client.MatchingFields{path: "no-such-value"}))
			harness.Same(t, kind+" by "+path+": objects with a value that none has", 0, len(list.Items))
		}
	}
}

// kubectl cannot parse the version of a server that was built without version stamps.
func TestKubectlReadsTheServersVersion(t *testing.T) {
	out := env.Kubectl(t, "default", "version", "-o", "json")
	var version struct {
		ClientVersion, ServerVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal([]byte(out), &version); err != nil {
		t.Fatalf("kubectl version printed no JSON: %v\n%s", err, out)
	}
	if got := version.ServerVersion.GitVersion; got != version.ClientVersion.GitVersion || got == "" {
		t.Errorf("server says %q, kubectl says %q; want the same version", got, version.ClientVersion.GitVersion)
	}
}
