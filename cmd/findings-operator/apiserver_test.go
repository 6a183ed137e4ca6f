package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAPIServerFlagsAreChecked(t *testing.T) {
	for _, test := range []struct {
		reason string
		flags  []string
		want   string // in the error; empty: no error
	}{
		{"the defaults hold", nil, ""},
		{"ports may be left to the system", []string{"--bind-address=127.0.0.1:0", "--health-bind-address=127.0.0.1:0"}, ""},
		{"an address serves one purpose", []string{"--bind-address=:8081"}, "--bind-address and --health-bind-address must differ"},
		{"a list of keys takes time", []string{"--key-staleness=4s"}, "--key-staleness must be at least 5s"},
		{"a kind that nobody changes may be heard of after two minutes only", []string{"--data-staleness=2m"}, "--data-staleness must be at least 3m"},
		{"a level is a known one", []string{"--log-level=loud"}, `--log-level must be debug, info, warn or error, not "loud"`},
		{"a format is a known one", []string{"--log-format=xml"}, `--log-format must be json or text, not "xml"`},
		{"a namespace is needed", []string{"--namespace="}, "--namespace"},
		{"a certificate needs its key", []string{"--tls-cert-file=tls.crt"}, "--tls-cert-file and --tls-private-key-file go together"},
		{"a key needs its certificate", []string{"--tls-private-key-file=tls.key"}, "--tls-cert-file and --tls-private-key-file go together"},
		{"proxies are networks or addresses", []string{"--trusted-proxies=10.0.0.0/8,::1"}, ""},
		{"a name is no network", []string{"--trusted-proxies=proxy"}, "--trusted-proxies"},
		{"nobody is trusted with every address", []string{"--trusted-proxies=0.0.0.0/0"}, "--trusted-proxies"},
		{"a collector of traces", []string{"--otlp-endpoint=http://collector:4318", "--trace-sample-ratio=1"}, ""},
		{"a collector has a scheme", []string{"--otlp-endpoint=collector:4318"}, "--otlp-endpoint must begin with http:// or https://"},
		{"a collector has a host", []string{"--otlp-endpoint=http://:4318"}, "--otlp-endpoint must name a host"},
		{"no credentials in arguments", []string{"--otlp-endpoint=http://me:secret@collector"}, "--otlp-endpoint must have no credentials"},
		{"a URL of Redis is in a file", []string{"--redis-url-file=redis://:secret@redis:6379/0"}, "--redis-url-file must name a file"},
		{"a share is no percentage", []string{"--trace-sample-ratio=10"}, "--trace-sample-ratio must be from 0 to 1"},
		{"a share is a number", []string{"--trace-sample-ratio=NaN"}, "--trace-sample-ratio must be from 0 to 1"},
		{"all mistakes are reported at once", []string{"--log-format=xml", "--key-staleness=0s"}, "--key-staleness"},
	} {
		err := validateAPIServer(test.flags...)
		wantsKnownFlags(t, err)
		harness.ErrorContains(t, test.reason, err, test.want)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the log gets a password: %v", test.reason, err)
		}
	}
}

// Without its files, for example, the REST API would be served over plain HTTP.
func TestAFlagOfAnUnsetVariableIsRefused(t *testing.T) {
	for flags, want := range map[string][]string{
		"apiserver --tls-cert-file= --tls-private-key-file=":      {"--tls-cert-file", "--tls-private-key-file"},
		"apiserver --bind-address= --trusted-proxies=":            {"--bind-address", "--trusted-proxies"},
		"controller --findings-kubeconfig= --cursor-keys-secret=": {"--cursor-keys-secret", "--findings-kubeconfig"},
		"controller --metrics-bind-address= --zap-log-level= ":    {"--log-level", "--metrics-bind-address"},
	} {
		command := newRootCommand()
		command.SetArgs(append(strings.Fields(flags), "--kubeconfig=/nowhere/kubeconfig"))
		var lines []string
		for _, flag := range want {
			lines = append(lines, flag+" has no value: give it one, or leave it out")
		}
		harness.ErrorContains(t, flags, command.ExecuteContext(t.Context()), strings.Join(lines, "\n"))
	}
}

// In a pod such a file must not mean the API server of the pod.
func TestAKubeconfigWithoutAnAPIServerIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plane.kubeconfig")
	o := &commonOptions{kubeconfig: file, findingsKubeconfig: file}
	t.Setenv("KUBECONFIG", file)
	_, err := (&commonOptions{}).local("manager")
	harness.ErrorContains(t, "$KUBECONFIG does not exist", err, "$KUBECONFIG: the kubeconfig file "+file+" names no API server: it does not exist")
	home := clientcmd.RecommendedHomeFile
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	for context, says := range map[string]string{
		``: "names no API server: it does not exist or has no current-context", `, "current-context": "other"`: "cannot be used: ",
	} {
		content := `{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "plane", "cluster": {"server": "https://plane"}}]` + context + `}`
		harness.Must(t, os.WriteFile(file, []byte(content), 0o600))
		for flag, read := range map[string]func(string) (*rest.Config, error){"--kubeconfig": o.local, "--findings-kubeconfig": o.plane} {
			_, err := read("manager")
			harness.ErrorContains(t, flag+", with"+context, err, flag+": the kubeconfig file "+file+" "+says)
		}
		t.Setenv("KUBECONFIG", file)
		_, err := (&commonOptions{}).plane("manager")
		harness.ErrorContains(t, "$KUBECONFIG, with"+context, err, "$KUBECONFIG: the kubeconfig file "+file+" "+says)
		t.Setenv("KUBECONFIG", "")
		clientcmd.RecommendedHomeFile = file
		_, err = (&commonOptions{}).local("manager")
		harness.ErrorContains(t, "~/.kube/config, with"+context, err, "--kubeconfig: the kubeconfig file "+file+" "+says)
	}
}

// The chart mounts the token beside the kubeconfig, at a path that its author need not know.
func TestATokenFileIsBesideItsKubeconfig(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"api.token": "first",
		"api.kubeconfig": `{"apiVersion": "v1", "kind": "Config", "current-context": "plane",
			"clusters": [{"name": "plane", "cluster": {"server": "https://plane.example"}}],
			"users": [{"name": "api", "user": {"tokenFile": "api.token"}}],
			"contexts": [{"name": "plane", "context": {"cluster": "plane", "user": "api"}}]}`,
	} {
		harness.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	o := &commonOptions{findingsKubeconfig: filepath.Join(folder, "api.kubeconfig")}
	config, err := o.plane("test")
	harness.Must(t, err)
	harness.Same(t, "token file", filepath.Join(folder, "api.token"), config.BearerTokenFile)
}

func TestBothHalvesReadTheTimeOfTheAPIServerOfTheKinds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	for _, o := range []commonOptions{{kubeconfig: path}, {kubeconfig: "/nowhere", findingsKubeconfig: path}} {
		testenv.CheckUsesServerTime(t, func(url string) (*rest.Config, error) {
			harness.Must(t, os.WriteFile(path, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
				"clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`,
				url), 0o600))
			return o.plane("test")
		})
	}
}

func TestAPIServerNoticesDeadConnectionsSoonUnlessToldOtherwise(t *testing.T) {
	const idle, ping = "HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"
	t.Setenv(ping, "3") // Setenv also restores both at the end
	t.Setenv(idle, "")
	harness.Must(t, os.Unsetenv(idle))
	// The kubeconfig is read after that.
	command := newRootCommand()
	command.SetArgs([]string{"apiserver", "--kubeconfig=/nowhere/kubeconfig"})
	harness.ErrorContains(t, "it does not exist", command.ExecuteContext(t.Context()), "/nowhere/kubeconfig", "--kubeconfig")
	if os.Getenv(idle) != "5" || os.Getenv(ping) != "3" {
		t.Errorf("%s is %q, want 5; %s is %q, want the operator's 3", idle, os.Getenv(idle), ping, os.Getenv(ping))
	}
}
