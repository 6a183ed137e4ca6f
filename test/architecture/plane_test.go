package architecture

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Without a cluster, the processes read the files themselves: a failure leaves the former token, and nobody else can
// read a new one.
func TestARenewalOfTokensWithoutAClusterThatFailsIsReportedAndKeepsTheOldToken(t *testing.T) {
	wrapped := wrappings("umask 022; PLANE=.\n" + harness.Commands(t, "findings-plane.md", "plane tokens"))
	for failure, tc := range map[string]struct{ when, prints, controller, api string }{
		"nothing":          {"false", "", "new 1\n", "new 2\n"},
		"the first token":  {"[ $n = 1 ]", "failed\n", "old\n", "old\n"},
		"the second token": {"[ $n = 2 ]", "failed\n", "new 1\n", "old\n"},
	} {
		for in, commands := range wrapped {
			t.Run(failure+" fails, "+in, func(t *testing.T) {
				folder := kubectlThat(t, "if "+tc.when+"; then exit 1; fi; echo new $n")
				for _, name := range []string{"controller.token", "api.token"} {
					harness.Must(t, os.WriteFile(filepath.Join(folder, name), []byte("old\n"), 0o600))
				}
				harness.Same(t, "what is reported", tc.prints, shellIn(t, folder, "bash", commands).Stdout)
				for name, want := range map[string]string{"controller.token": tc.controller, "api.token": tc.api} {
					harness.Same(t, name, want, harness.File(t, filepath.Join(folder, name)))
					info, err := os.Stat(filepath.Join(folder, name))
					harness.Must(t, err)
					harness.Same(t, "the mode of "+name, os.FileMode(0o600), info.Mode())
				}
			})
		}
	}
}

// A timer reports failures with || or if, in which a shell ignores set -e. A pod that starts with an empty token never
// becomes ready.
func TestARenewalOfThePlanesTokensThatFailsIsReportedAndStoresNothing(t *testing.T) {
	wrapped := wrappings(harness.Commands(t, "findings-plane.md", "tokens"))
	for failure, tc := range map[string]struct{ when, prints, stored string }{
		"nothing":          {"false", "", "new\n"},
		"the first token":  {"[ $n = 1 ]", "failed\n", "old\n"},
		"the second token": {"[ $n = 2 ]", "failed\n", "old\n"},
		"the Secret":       {"[ $1 = create ]", "failed\n", "old\n"},
		"its storage":      {"[ $1 = apply ]", "failed\n", "old\n"},
	} {
		for in, commands := range wrapped {
			t.Run(failure+" fails, "+in, func(t *testing.T) {
				folder := kubectlThat(t, "if "+tc.when+"; then exit 1; fi\n"+
					"case $1 in create) echo secret ;; apply) grep -q secret && echo new > stored ;; esac")
				stored := filepath.Join(folder, "stored")
				harness.Must(t, os.WriteFile(stored, []byte("old\n"), 0o600))
				harness.Same(t, "what is reported", tc.prints, shellIn(t, folder, "bash", commands).Stdout)
				harness.Same(t, "the Secret", tc.stored, harness.File(t, stored))
			})
		}
	}
}

// wrappings returns the commands in each way in which a timer reports that they failed.
func wrappings(commands string) map[string]string {
	return map[string]string{
		"alone":  commands + "\n[ $? = 0 ] || echo failed",
		"set -e": "(set -e\n" + commands + "\n)\n[ $? = 0 ] || echo failed",
		"or":     "renew() {\n" + commands + "\n}; renew || echo failed",
		"if":     "renew() {\n" + commands + "\n}; if ! renew; then echo failed; fi",
	}
}
