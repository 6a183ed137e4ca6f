package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/jsonpath"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestACommandToCopyConnectsAsThisOneDid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "it's mine")
	harness.Must(t, os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": {}}],
		"clusters": [{"name": "c", "cluster": {"server": "https://plane"}}], "current-context": "x",
		"contexts": [{"name": "x", "context": {"cluster": "c", "namespace": "org-x"}}]}`), 0o600))
	t.Setenv("KUBECONFIG", file)
	for reason, tc := range map[string]struct {
		given []string
		want  string
	}{
		"the context's own":        {nil, "-n org-x"},
		"the cluster and the user": {[]string{"--context", "x", "--cluster=c", "--user", "u"}, "-n org-x --cluster=c --context=x --user=u"},
		"in the shell's quotes":    {[]string{"--kubeconfig", file}, `-n org-x '--kubeconfig=` + strings.ReplaceAll(file, "'", `'\''`) + `'`},
		"each group":               {[]string{"--as=jo", "--as-group=a", "--as-group=b c"}, "-n org-x --as=jo --as-group=a '--as-group=b c'"},
		"no secret":                {[]string{"--server=https://here", "--token=secret"}, `-n org-x --server=https://here --token=TOKEN`},
		"no password": {[]string{"--server=https://jo:hunter2@here/a@b", "--proxy-url=http://jo:hunter2@proxy:3128"},
			"-n org-x --proxy-url=http://proxy:3128 --server=https://here/a@b"},
		"nor one without a scheme": {[]string{"--server=jo:hunter2@here:6443"}, "-n org-x --server=here:6443"},
		"the organization once":    {[]string{"--organization=acme"}, "-n org-acme"},
	} {
		flags := newConnectionFlags(io.Discard)
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.AddFlags(set)
		harness.Must(t, set.Parse(tc.given))
		s, err := cli{streams: genericiooptions.NewTestIOStreamsDiscard(), kubeconfig: flags}.open()
		harness.Must(t, err)
		harness.Same(t, reason, "kubectl findings triage --undo mute-1 "+tc.want, s.command("findings", "triage", "--undo", "mute-1"))
	}
}

func TestEveryAdviceNamesACommandOfTheSameCluster(t *testing.T) {
	s := &session{namespace: "org-acme", config: &rest.Config{Host: "https://jo:hunter2@here"}, chosen: []string{"--context=other"}}
	operation := &operating{session: s, name: "mute-1", triageOptions: &triageOptions{}}
	finding := builder.Finding("f-1").In("org-acme").Build()
	for advice, text := range map[string]string{
		"an operation":                  operation.whatNext(),
		"what stays decided":            operation.listDecided(),
		"a summary":                     string((&bulkSummary{Operation: "mute-1", undo: operation.undoing(), Done: []string{"f-1"}}).text()),
		"an object that cannot be read": s.repair("Finding", "f-1", "org-acme"),
		"a reason for all":              s.nextWithoutReason(need{kind: kindOperation}),
		"an issue":                      s.ofOtherKind(need{kind: "Finding", name: "i-1", role: roleViewer}),
		"a rotation":                    s.printField("status.rotationSerial", "ci"),
		"a lost answer":                 (&triager{session: s}).errUnknown(errors.New("lost"), "f-1", finding).Error(),
		"a name with a slash":           s.checkNamed(t.Context(), need{kind: "Project", name: "a/b"}).Error(),
	} {
		commands := strings.Count(text, "kubectl ")
		if commands == 0 || commands != strings.Count(text, " -n org-acme --context=other") {
			t.Errorf("%s: %s", advice, text)
		}
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s contains a password: %s", advice, text)
		}
	}
}

func TestWordsAreQuotedForTheSystem(t *testing.T) {
	harness.Same(t, "a path of Windows", `"--kubeconfig=C:\Users\jo"`, quoted("windows", `--kubeconfig=C:\Users\jo`))
	harness.Same(t, "plain", "--context=a", quoted("windows", "--context=a"))
	harness.Same(t, "a JSONPath", `"jsonpath={.items[?(@.a=='b')]}"`, quoted("windows", "jsonpath={.items[?(@.a=='b')]}"))
	harness.Same(t, "elsewhere", `'--kubeconfig=a\b'`, quoted("linux", `--kubeconfig=a\b`))
}

// cmd and PowerShell do not agree about a double quote within an argument.
func TestTheFindingsOfAnOperationCanBeListedFromEveryShell(t *testing.T) {
	advice := (&operating{session: &session{namespace: "org-acme"}, name: "mute-1"}).listDecided()
	_, format, _ := strings.Cut(advice, "'jsonpath=")
	format, _, _ = strings.Cut(format, "' -n org-acme")
	format = strings.ReplaceAll(format, `'\''`, "'")
	harness.Lacks(t, advice, format, `"`)
	decided := func(name, by string) any {
		return map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"triage": map[string]any{"by": by}}}
	}
	names, printed := jsonpath.New("names"), bytes.Buffer{}
	harness.Must(t, names.Parse(format))
	harness.Must(t, names.Execute(&printed, map[string]any{"items": []any{
		decided("f-1", "operation/mute-1"), decided("f-2", "operation/mute-2"), decided("f-3", "operation/mute-1"),
	}}))
	harness.Same(t, advice, "f-1\nf-3\n", printed.String())
}
