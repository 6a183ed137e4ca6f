package architecture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Otherwise the values, the signing key or an Organization are lost, two releases run, or namespaces remain that
// nothing can delete.
func TestCommandsOfTheDocsThatUninstallOrRecreateEndAtTheFirstFailure(t *testing.T) {
	for block, steps := range map[string][]string{
		"install.md: move": {"helm get values", "helm uninstall", "kubectl create namespace", "kubectl get|kubectl create -n security",
			"helm install", "kubectl rollout status"},
		"install.md: remove everything": {"kubectl delete repositories", "kubectl annotate", "kubectl delete organizations",
			"helm uninstall", "kubectl get crds|kubectl delete x.appsec.dev", "kubectl delete namespace"},
		"backup.md: findings created again": {"kubectl get findings|kubectl delete findings",
			"kubectl get reviews|kubectl delete reviews"},
		"kinds/organization.md: take back a deletion": {"kubectl get organizations.appsec.dev acme -o yaml", "kubectl patch",
			"kubectl create", "kubectl get organizations.appsec.dev acme -o jsonpath", "kubectl annotate"},
		"kinds/repository.md: take back a removal": {"kubectl get repositories", "kubectl get x.appsec.dev", "kubectl patch",
			"kubectl create"},
	} {
		page, name, _ := strings.Cut(block, ": ")
		commands := strings.Replace(harness.Commands(t, page, name), "loss= ", "loss=2026-03-02T15:04:05Z ", 1)
		for n, step := range append(steps, "nothing") {
			for failing := range strings.SplitSeq(step, "|") {
				t.Run(block+": "+failing+" fails", func(t *testing.T) {
					folder := kubectlThat(t, `case "$call" in "`+failing+`"*) exit 1 ;; *" -f -") cat ;; esac; echo x.appsec.dev`)
					ran := shellIn(t, folder, "bash", commands)
					harness.Same(t, "whether all succeeded", failing == "nothing", ran.Code == 0)
					calls := "\n" + harness.File(t, filepath.Join(folder, "calls"))
					for i, other := range steps {
						if i == n {
							continue // of a pipe, both run
						}
						for call := range strings.SplitSeq(other, "|") {
							harness.Same(t, call+" ran", i < n, strings.Contains(calls, "\n"+call))
						}
					}
				})
			}
		}
	}
}

// Otherwise the commands would delete all findings of the repository.
func TestNothingIsDeletedBeforeTheTimeOfALossIsSet(t *testing.T) {
	folder := kubectlThat(t, "echo x")
	ran := shellIn(t, folder, "bash", harness.Commands(t, "backup.md", "findings created again"))
	if _, err := os.Stat(filepath.Join(folder, "calls")); ran.Code == 0 || !os.IsNotExist(err) {
		t.Errorf("the commands ended with %d, and kubectl's calls are there: %v", ran.Code, err)
	}
}

// The values that the first run saved are the only ones: helm has deleted the release.
func TestAMoveThatIsRepeatedFromTheBeginningKeepsTheSavedValues(t *testing.T) {
	folder := kubectlThat(t, `if [ $n = 1 ]; then echo old; else exit 1; fi`)
	for range 2 {
		shellIn(t, folder, "bash", harness.Commands(t, "install.md", "move"))
	}
	harness.Same(t, "your-values.yaml", "old\n", harness.File(t, filepath.Join(folder, "your-values.yaml")))
}
