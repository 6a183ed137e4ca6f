package schema_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/signatures"
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
		found := rotation.FindStringSubmatch(harness.RepositoryFile(t, "docs", "kinds", c.page))
		if found == nil {
			t.Fatalf("%s shows no rotation", c.page)
		}
		script := strings.NewReplacer("$ SERIAL", "SERIAL", "$ kubectl", "kubectl", "org-acme", namespace).Replace(found[1])
		for carriedOut, want := range []int64{1, 2, 3} {
			if carriedOut > 0 {
				done := testenv.MergePatch(fmt.Sprintf(`{"status":{"rotationSerial":%d}}`, carriedOut))
				harness.Must(t, controllers.Status().Patch(t.Context(), c.object, done))
			}
			harness.Same(t, "whether nothing failed", true, shell(t, config, script, ""))
			harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(c.object), c.object))
			harness.Same(t, c.page, want, c.serial())
		}
		harness.Same(t, "whether nothing failed, although the serial is not known", false, shell(t, config, script, "get"))
		harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(c.object), c.object))
		harness.Same(t, c.page+", while the serial is not known", int64(3), c.serial())
	}
}

// With an empty older secret, or without its end, nothing would be sent, and the older secret would be lost.
func TestTheRotationOfYourOwnSecretKeepsTheOlderOneOrChangesNothing(t *testing.T) {
	namespace := env.Organization(t, "own-secret")
	config := testenv.WriteKubeconfig(t, env.Config, namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "our-own", Namespace: namespace},
		StringData: map[string]string{v1alpha1.WebhookSecretKey: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
	env.Create(t, secret)
	script := strings.ReplaceAll(harness.Commands(t, "kinds/webhookendpoint.md", "your own Secret"), "org-acme", namespace)
	ids := func() (ids []string) {
		t.Helper()
		harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
		parsed, err := signatures.ParseSecrets(secret.Data)
		harness.Must(t, err)
		for _, each := range parsed.All() {
			ids = append(ids, each.ID())
		}
		return ids
	}
	before := ids()
	harness.Same(t, "whether nothing failed, although the older secret cannot be read", false, shell(t, config, script, "get"))
	harness.Same(t, "the secrets after that", before, ids())
	harness.Same(t, "whether nothing failed", true, shell(t, config, script, ""))
	if after := ids(); len(after) != 2 || after[0] == before[0] || after[1] != before[0] {
		t.Errorf("the secrets are %v, and were %v", after, before)
	}
}

// shell reports whether a page's commands succeed, if the named command of kubectl fails.
func shell(t *testing.T, kubeconfig, script, failing string) bool {
	t.Helper()
	kubectl := `kubectl() { test "$1" != "` + failing + `" && '` + testenv.Binary(t, "kubectl") + `' "$@"; }; `
	command := exec.CommandContext(t.Context(), "sh", "-c", kubectl+script) //nolint:gosec // the page's commands
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := command.CombinedOutput()
	t.Logf("%s", out)
	return err == nil
}
