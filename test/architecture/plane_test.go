package architecture

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// A timer reports failures with || or if, in which a shell ignores set -e. A pod that starts with an empty token never
// becomes ready.
func TestARenewalOfThePlanesTokensThatFailsIsReportedAndStoresNothing(t *testing.T) {
	renewal := harness.Commands(t, "findings-plane.md", "tokens")
	wrap := map[string]string{
		"alone": renewal + "\n[ $? = 0 ] || echo failed",
		"or":    "renew() {\n" + renewal + "\n}; renew || echo failed",
		"if":    "renew() {\n" + renewal + "\n}; if ! renew; then echo failed; fi",
	}
	for failure, tc := range map[string]struct{ when, prints, stored string }{
		"nothing":          {"false", "", "new\n"},
		"the first token":  {"[ $n = 1 ]", "failed\n", "old\n"},
		"the second token": {"[ $n = 2 ]", "failed\n", "old\n"},
		"the Secret":       {"[ $1 = create ]", "failed\n", "old\n"},
		"its storage":      {"[ $1 = apply ]", "failed\n", "old\n"},
	} {
		for in, commands := range wrap {
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
