package import_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// A finding that was moved has another name in the backup than the one that an import gives it. Beside that one the
// next import would close the decided one.
func TestARestoreAfterAnImportKeepsTheDecisionAboutAMovedFinding(t *testing.T) {
	tn := newTenant(t, "came-back")
	env.Create(t, builder.Repository(repositoryName).In(tn.namespace).Build(),
		builder.Project("api").In(tn.namespace).Repository(repositoryName).Build())
	results := numbered(3)
	imports := func() {
		t.Helper()
		target := importer.Target{Namespace: tn.namespace, Repository: repositoryName, Project: "api"}
		batches := collect(t, importer.Choices{}, document(results...))
		_, err := importer.New(tn.scanner, target, importer.Options{}).Import(t.Context(), batches)
		harness.Must(t, err)
	}
	findings := func() (list v1alpha1.FindingList) {
		t.Helper()
		harness.Must(t, env.Client.List(t.Context(), &list, client.InNamespace(tn.namespace)))
		return list
	}
	imports()
	var muted string
	for _, f := range findings().Items {
		if f.Spec.Details.Title == "problem 001" {
			muted = f.Name
			env.Patch(t, &f, `{"spec":{"triage":{"userStatus":"muted"}}}`)
		}
	}
	results[1].Path = "lib/file001.go"
	imports()
	saved := findings()
	for _, f := range saved.Items {
		harness.Must(t, env.Client.Delete(t.Context(), &f))
	}
	results[1].Line += 5
	imports()
	created := findings().Items
	harness.Same(t, "findings that came back", 3, len(created))
	loss := created[0].CreationTimestamp.UTC().Format(time.RFC3339)
	for _, f := range created {
		loss = min(loss, f.CreationTimestamp.UTC().Format(time.RFC3339))
	}
	deleteCreatedAgain(t, tn.namespace, loss)
	for _, f := range saved.Items {
		f.ResourceVersion, f.UID = "", ""
		if err := env.Client.Create(t.Context(), &f); !kube.IsAlreadyExists(err) {
			harness.Must(t, err)
		}
	}
	imports()
	got := map[string]string{}
	for _, f := range findings().Items {
		got[f.Name] = f.Spec.Details.Title
		if f.Spec.Closed != nil || (f.Name == muted) != (f.Spec.Triage.UserStatus == v1alpha1.UserStatusMuted) {
			t.Errorf("%s is %s, closed %v", f.Spec.Details.Title, f.Spec.Triage.UserStatus, f.Spec.Closed)
		}
	}
	harness.Same(t, "what the decided finding is", "problem 001", got[muted])
	harness.Same(t, "findings", 3, len(got))
}

// deleteCreatedAgain deletes the findings that were created since the loss, with the commands of the page.
func deleteCreatedAgain(t *testing.T, namespace, loss string) {
	t.Helper()
	page := harness.Commands(t, "backup.md", "findings created again")
	commands := strings.NewReplacer("org-acme", namespace, "loss= ", "loss="+loss+" ").Replace(page)
	shell := exec.CommandContext(t.Context(), "bash", "-c", commands) //nolint:gosec // the page's commands
	shell.Env = append(os.Environ(), "KUBECONFIG="+testenv.WriteKubeconfig(t, env.Config, namespace),
		"PATH="+filepath.Dir(testenv.Binary(t, "kubectl"))+":"+os.Getenv("PATH"))
	harness.Run(t, shell).Wants("deleted")
}
