package schema_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// rotation finds the commands of a page that rotate a token or secret.
var rotation = regexp.MustCompile("(?ms)^```console\n(\\$ SERIAL=.*?rotation.*?}}}\"\n)")

// A serial that was carried out before rotates nothing: what leaked would stay valid.
func TestTheRotationOfAPageRotatesEachTime(t *testing.T) {
	namespace, controllers := env.Organization(t, "rotation"), env.AsController(t)
	config := testenv.WriteKubeconfig(t, env.Config, namespace)
	key, endpoint := builder.APIKey("dashboard").In(namespace).Build(), builder.WebhookEndpoint("team").In(namespace).Build()
	env.Create(t, key, endpoint)
	for _, c := range []struct {
		page   string
		object client.Object
		serial func() int64
	}{
		{"apikey.md", key, func() int64 { return key.Spec.Rotation.WantedSerial() }},
		{"webhookendpoint.md", endpoint, func() int64 { return endpoint.Spec.Rotation.WantedSerial() }},
	} {
		content, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "kinds", c.page))
		harness.Must(t, err)
		found := rotation.FindStringSubmatch(string(content))
		if found == nil {
			t.Fatalf("%s shows no rotation", c.page)
		}
		script := strings.NewReplacer("$ SERIAL", "SERIAL", "$ kubectl", "kubectl", "org-acme", namespace).Replace(found[1])
		for carriedOut, want := range []int64{1, 2, 3} {
			if carriedOut > 0 {
				done := testenv.MergePatch(fmt.Sprintf(`{"status":{"rotationSerial":%d}}`, carriedOut))
				harness.Must(t, controllers.Status().Patch(t.Context(), c.object, done))
			}
			shell := exec.CommandContext(t.Context(), "sh", "-c", `kubectl() { '`+testenv.Binary(t, "kubectl")+`' "$@"; }; `+script) //nolint:gosec // the page's commands
			shell.Env = append(os.Environ(), "KUBECONFIG="+config)
			out, err := shell.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(c.object), c.object))
			harness.Same(t, c.page, want, c.serial())
		}
	}
}
