package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAMistakeSaysWhatToDo(t *testing.T) {
	for command, want := range map[string]string{
		"list --severty high":                "unknown flag: --severty: see 'kubectl findings list --help'",
		"list --stale=flase":                 `--stale is "flase" and must be true or false`,
		"list --limit many":                  `--limit is "many" and must be a whole number`,
		"triage f-1 --mute --expires-in 30d": "days are not a unit: write 720h for 30 days",
		"triage f-1 --mute --expires-in x":   `--expires-in is "x" and must be a duration such as`,
		"list extra":                         `list takes no arguments, but got "extra": filter with flags`,
		"key delete ci":                      "kubectl delete apikey NAME",
		"key create":                         "give the name of one key: see 'kubectl findings key create --help'",
		"rotate-key a b":                     "give the name of one key",
		"history":                            "give the name of one finding",
		"triage-issue --mute":                "give the name of at least one issue",
		"import --repository r --project p":  "give at least one SARIF file, or - for standard input",
		"review absent.sarif --repository r --pr 1 --commit 0123abc --opened-at today":   `--opened-at: "today" is not a time like`,
		"import x.sarif --repository r --project p --project-path a/../../x":             `--project-path is "a/../../x" and must be a folder in the`,
		"import x.sarif --repository r --project p --project-path /../x":                 `--project-path is "/../x" and must be a folder in the`,
		`import x.sarif --repository r --project p --project-path \..\x`:                 `--project-path is "\\..\\x" and must be a folder in the`,
		"import x.sarif --repository r --project p --commit " + strings.Repeat("a", 129): "--commit has 129 characters and may have at most 128",
		"review x --repository r --pr 1 --commit 0123abc --format markdown -o json":      "--format markdown and --output exclude each other",
		"review x --repository r --pr 1 --commit 0123abc --format html":                  `--format is "html" and must be markdown`,
		"list --field-selector status.state=opened":                                      `status.state is "opened" and must be open, open_muted or closed`,
		"triage --field-selector spec.details.severity!=High --mute":                     `spec.details.severity is "High" and must be high, medium or low`,
		"redeliver --field-selector status.phase!=delivered --yes":                       `status.phase is "delivered" and must be Pending, Delivered or Failed`,
		"rotate-key dashboard --expires-in -1h":                                          "--expires-in is -1h0m0s and must be greater than 0",
		"rotate-key dashboard --expires-in 30d":                                          "days are not a unit: write 720h for 30 days",
	} {
		plugin := newRootCommand(genericiooptions.NewTestIOStreamsDiscard())
		plugin.SetArgs(strings.Fields(command))
		harness.ErrorContains(t, command, plugin.Execute(), want)
	}
}

// Something else may answer at the client library's default.
func TestAnAPIServerIsNotGuessed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBECONFIG", file)
	t.Setenv("KUBERNETES_MASTER", "")
	before := clientcmd.ClusterDefaults // read from it when the program begins
	t.Cleanup(func() { clientcmd.ClusterDefaults = before })
	clientcmd.ClusterDefaults.Server = defaultServer
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // else a pod's own API server is taken
	open := func(args ...string) error {
		flags := newConnectionFlags(io.Discard)
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.AddFlags(set)
		harness.Must(t, set.Parse(args))
		_, err := cli{streams: genericiooptions.NewTestIOStreamsDiscard(), kubeconfig: flags}.open()
		return err
	}
	harness.ErrorContains(t, "no file", open(), "no kubeconfig with a current context ("+file+"): set KUBECONFIG, --kubeconfig or --server")
	harness.NoError(t, "--server", open("--server", defaultServer))
	content := `{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "%s"}}],
		"contexts": [{"name": "x", "context": {"cluster": "c"}}]}`
	harness.Must(t, os.WriteFile(file, fmt.Appendf(nil, content, "https://plane"), 0o600))
	harness.ErrorContains(t, "no current context", open(), "choose a context with --context")
	harness.NoError(t, "a context", open("--context", "x"))
	harness.Must(t, os.WriteFile(file, fmt.Appendf(nil, content, defaultServer), 0o600))
	harness.NoError(t, "a kubeconfig for the default", open("--context", "x"))
	harness.Must(t, os.Remove(file))
	t.Setenv("KUBERNETES_MASTER", defaultServer)
	harness.NoError(t, "KUBERNETES_MASTER", open())
}

func TestThePluginHearsTheTimeOfTheAPIServer(t *testing.T) {
	testenv.CheckUsesServerTime(t, func(url string) (*rest.Config, error) {
		flags := newConnectionFlags(io.Discard)
		*flags.APIServer = url
		return flags.ToRESTConfig()
	})
}

func TestANewKeyTellsWhenItsLifetimeWasCut(t *testing.T) {
	at := func(day int) *v1alpha1.Time {
		at := v1alpha1.NewTime(time.Date(2026, 3, day, 0, 0, 0, 0, time.UTC))
		return &at
	}
	for _, c := range []struct {
		asked, got *v1alpha1.Time
		cut        bool
	}{{nil, at(2), false}, {at(2), at(2), false}, {at(3), at(2), true}} {
		text := created(&v1alpha1.APIKey{Spec: v1alpha1.APIKeySpec{ExpiresAt: c.asked}, Status: v1alpha1.APIKeyStatus{ExpiresAt: c.got}})
		if strings.Contains(text, "spec.apiKeys.maxLifetime") != c.cut {
			t.Errorf("asked for %v, got %v: %s", c.asked, c.got, text)
		}
	}
}

// The scanner at the other end of the pipe hangs.
func TestAPipeThatStaysOpenIsNotWaitedForAfterAnInterrupt(t *testing.T) {
	in, scanner := io.Pipe()
	defer scanner.Close() //nolint:errcheck // it has nothing to report
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		_, _ = scanner.Write([]byte("{")) // returns once it is read
		interrupt()
	}()
	plugin := newRootCommand(genericiooptions.IOStreams{In: in, Out: io.Discard, ErrOut: io.Discard})
	plugin.SetArgs([]string{"import", "-", "--repository", "r", "--project", "p"})
	ended := make(chan error, 1)
	go func() { ended <- plugin.ExecuteContext(ctx) }()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing was written") {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(harness.Patience):
		t.Error("it goes on")
	}
}

func TestOneResultIsSingular(t *testing.T) {
	if one, two := results(1), results(2); one != "1 result" || two != "2 results" {
		t.Errorf("%q and %q", one, two)
	}
}

// Paths in the files are never below a relative root, so it would have no effect.
func TestASourceRootIsAnAbsolutePath(t *testing.T) {
	for _, command := range []string{
		"import x.sarif --repository r --project p", "review x.sarif --repository r --pr 1 --commit 0123456",
	} {
		for root, want := range map[string]string{
			".": "must be an absolute path", "src": "must be an absolute path", "src/a:b": "must be an absolute path",
			"https://example.com/acme/shop": "must be an absolute path",
			"/home/me/shop":                 "x.sarif is refused", "file:///home/me/shop": "x.sarif is refused",
			`C:\src\shop`: "x.sarif is refused", "/": "x.sarif is refused",
		} {
			plugin := newRootCommand(genericiooptions.NewTestIOStreamsDiscard())
			plugin.SetArgs(append(strings.Fields(command), "--source-root", root))
			harness.ErrorContains(t, command+" --source-root "+root, plugin.Execute(), want)
		}
	}
}
