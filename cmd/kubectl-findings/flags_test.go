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
	t.Chdir(t.TempDir())
	for file, content := range map[string]string{
		"good.sarif": `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}}}]}`, "old.sarif": `{"version":"2.0.0","runs":[]}`, "broken.sarif": "{",
	} {
		harness.Must(t, os.WriteFile(file, []byte(content), 0o600))
	}
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
		"import x.sarif --repository a/r --project a/r":                                  `--project is "a/r" and must be the name of a Project, for example api: see kubectl get projects`,
		"review x --repository r --project a/r --pr 1 --commit 0123abc":                  `--project is "a/r" and must be the name of a Project`,
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

		"list --severity critical":                                            "high, medium or low",
		"list --state opn --severity x":                                       "open, open_muted or closed",
		"list --sort-by colour":                                               "must be age, detected, name",
		"list --limit -1":                                                     "not be negative",
		"list -o xml":                                                         "table, wide, json",
		"list -o custom-columns=NAME:.metadata.name":                          "must be table, wide, json, yaml, name, jsonpath=...",
		"list --field-selector spec.details.title=x":                          "spec.details.severity",
		"list --field-selector nonsense":                                      "--field-selector",
		"list -l a==b==c":                                                     "--selector",
		"list --created-since monday":                                         "--created-since",
		"list --min-score 11":                                                 "from 0 to 10",
		"triage f-other":                                                      "--mute, --confirm or --reopen",
		"triage f-other --mute --reopen":                                      "exclude each other",
		"triage --mute":                                                       "which findings?",
		"triage f-other --severity low --mute":                                "not both",
		"triage f-other --mute --dry-run=some":                                "none, client or server",
		"triage f-other --mute -o wide":                                       "json, yaml or name",
		"triage f-other --undo mute-abcdef":                                   "--undo cannot be combined",
		"triage --undo mute-abcdef --mute":                                    "--undo cannot be combined",
		"triage --undo mute-abcdef --reason duplicate":                        "--undo cannot be combined",
		"triage --undo mute-abcdef --expires-in 0s":                           "--undo cannot be combined",
		"triage --severity low --mute --reason none":                          "with the names of findings",
		"triage f-other --mute --concurrency 0":                               "from 1 to 256",
		"triage f-1 --mute --reason because":                                  "--reason",
		"triage f-1 --reason duplicate":                                       "belong to a decision",
		"triage f-1 --reopen --expires-in 1h":                                 "belong to a decision",
		"triage f-1 --mute --expires-in -1h":                                  "--expires-in is -1h0m0s and must be greater than 0",
		"triage f-1 --mute --expires-in 0":                                    "--expires-in is 0s and must be greater than 0",
		"triage f-1 --mute --expires-at 2099-01-01T00:00:00Z --expires-in 1h": "--expires-at and --expires-in exclude each other",
		"triage-issue i-abcd":                                                 "nothing to do",
		"key create a --scope everything":                                     "findings:read, findings:triage",
		"key create a --expires-in -1h":                                       "greater than 0",
		"key create a --expires-in 0":                                         "greater than 0",
		"key create a --requests-per-minute -1":                               "from 1",
		"key create a --requests-per-minute 0":                                "from 1",
		"rotate-key a --overlap 721h":                                         "from 0s to 720h",
		"rotate-key a --timeout 0s":                                           "--timeout",
		"redeliver":                                                           "which deliveries?",
		"redeliver one-1 --wait --timeout 0s":                                 "must be greater than 0s",
		"redeliver --field-selector , --yes":                                  `--field-selector is "," and selects everything`,
		"redeliver --selector , --yes":                                        `--selector is "," and cannot be read`,
		"redeliver --selector env!= --yes":                                    `--selector is "env!=": env!= excludes only the empty value`,
		"triage -l env!= --mute --yes":                                        "write env for objects that have the label",
		"triage --field-selector spec.tool!= --mute --yes":                    `--field-selector is "spec.tool!=": spec.tool!= excludes only the empty value`,
		"list --field-selector , --limit 1":                                   `--field-selector is "," and selects everything`,
		"redeliver one-1 --failed":                                            "not both",
		"policy test":                                                         "Give files with -f",
		"policy test -f x.yaml --fail-on nothing":                             "must be gains",
		"policy test -f nowhere.yaml":                                         "nowhere.yaml",
		"list --organization other -n default":                                "omit one of them",
		"import x.sarif --repository r --project p --category Coed":           "Code, Package or Secret",
		"import x.sarif --repository r --project p --started-at today":        "is not a time like",
		"import good.sarif --repository r --project p --started-at 2999-01-01T00:00:00Z": "future",
		"import x.sarif --repository r --project p --concurrency 0":                      "from 1 to 256",
		"import x.sarif --repository r --project p --wait --dry-run":                     "exclude each other",
		"import old.sarif --repository r --project p":                                    "2.1.0",
		"import good.sarif broken.sarif --repository r --project p":                      "nothing was imported",
		"review broken.sarif --repository r --pr 1 --commit 0123abc":                     "nothing was imported",
		"import x.sarif --repository r --project p":                                      "x.sarif is refused: open x.sarif: no such file",
		"import *.sarif --repository r --project p":                                      "nothing was imported: broken.sarif is refused: ",
		"import g*d.sarif good.sarif --repository r --project p":                         "good.sarif is listed twice",
		"import no-?.sarif --repository r --project p":                                   "no-?.sarif is refused: no file matches",
		"import . --repository r --project p":                                            ". is refused: it is a folder: name its files, as in *.sarif",
		"review --repository r --pr 1 --commit 0123abc":                                  "--clean",
		"review x.sarif --repository r --pr 1":                                           "--commit is needed",
		"review x.sarif --repository r --pr 1 --clean --commit 0123abc":                  "leave one out",
		"review --repository r --pr 1":                                                   "nothing to record",
		"review x.sarif --repository r --pr 1 --commit main":                             "hexadecimal",
		"review --repository r --pr 1 --status done":                                     "open, closed or merged",
		"review x.sarif --repository r --pr 1 --commit 0123abc --reviewed-at today":      "is not a time like",
		"review x.sarif --repository r --pr 1 --commit 0123abc --category Coed":          "Code, Package or Secret",
		"review x.sarif --repository r --pr 0 --commit 0123abc":                          "from 1",
	} {
		plugin := newRootCommand(genericiooptions.NewTestIOStreamsDiscard())
		plugin.SetArgs(append(strings.Fields(command), "--kubeconfig=does-not-exist")) // so that no cluster is reached
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

// The library takes a pod's own API server for a kubeconfig that names none.
func TestThePodsAPIServerIsTakenOnlyWithoutAKubeconfig(t *testing.T) {
	const podServer = "https://10.96.0.1:443"
	ofPod := func() (*rest.Config, error) { return &rest.Config{Host: podServer, BearerToken: "token"}, nil }
	file, before := filepath.Join(t.TempDir(), "kubeconfig"), clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = "/nowhere/config" // that of whoever runs the tests may name an API server
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = before })
	t.Setenv("KUBERNETES_MASTER", "")
	choose := func(config *rest.Config, variable string, args ...string) (*rest.Config, error) {
		t.Setenv("KUBECONFIG", variable)
		flags := newConnectionFlags(io.Discard)
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.AddFlags(set)
		harness.Must(t, set.Parse(args))
		return flags.choose(config, ofPod)
	}
	pod := &rest.Config{Host: podServer} // as the library returns it
	for _, with := range [][]string{{""}, {"", "--kubeconfig="}, {"", "--token=mine"}} {
		config, err := choose(pod, with[0], with[1:]...)
		harness.NoError(t, "no kubeconfig", err)
		harness.Same(t, "the pod's own", pod, config)
	}
	flagged := &rest.Config{Host: defaultServer, Timeout: time.Minute, Impersonate: rest.ImpersonationConfig{UserName: "jane"}}
	config, err := choose(flagged, "", "--request-timeout=1m", "--as=jane")
	harness.NoError(t, "flags for the pod's own", err)
	harness.Same(t, "the pod's own, with flags", &rest.Config{Host: podServer, BearerToken: "token", Timeout: time.Minute,
		Impersonate: rest.ImpersonationConfig{UserName: "jane"}}, config)
	const none = "no kubeconfig with a current context"
	_, err = choose(pod, file)
	harness.ErrorContains(t, "KUBECONFIG names no file", err, none)
	_, err = choose(flagged, file, "--request-timeout=1m", "--as=jane")
	harness.ErrorContains(t, "KUBECONFIG names no file, and flags", err, none)
	for _, flag := range []string{"--client-certificate=c", "--client-key=k"} { // the pod's account would not be the caller
		_, err = choose(pod, "", flag)
		harness.ErrorContains(t, flag, err, none)
	}
	harness.Must(t, os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {}}],
		"contexts": [{"name": "x", "context": {"cluster": "c"}}]}`), 0o600))
	for _, args := range [][]string{{}, {"--context=x"}, {"--cluster=c"}} {
		_, err = choose(pod, "", append(args, "--kubeconfig", file)...)
		harness.ErrorContains(t, fmt.Sprint("--kubeconfig names no API server ", args), err, none)
		clientcmd.RecommendedHomeFile = file
		_, err = choose(pod, "", args...)
		harness.ErrorContains(t, fmt.Sprint("~/.kube/config names no API server ", args), err, none)
		clientcmd.RecommendedHomeFile = "/nowhere/config"
	}
	harness.Must(t, os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "Config", "users": [{"name": "jane", "user": {"token": "a"}}]}`), 0o600))
	clientcmd.RecommendedHomeFile = file
	_, err = choose(flagged, "", "--user=jane")
	harness.ErrorContains(t, "~/.kube/config has a user only", err, none)
	clientcmd.RecommendedHomeFile = "/nowhere/config"
	t.Setenv("KUBERNETES_MASTER", "https://jo:hunter2@other")
	_, err = choose(pod, "")
	harness.ErrorContains(t, "KUBERNETES_MASTER", err, "KUBERNETES_MASTER is https://other, but", "--server https://other")
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
