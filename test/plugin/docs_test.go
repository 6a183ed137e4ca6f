package plugin_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var update = flag.Bool("update", false, "write the output of the documentation's examples anew")

var console = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// Every command of docs/kubectl-findings.md is run, in order, and prints what the page shows.
func TestTheExamplesOfTheDocumentation(t *testing.T) {
	page := filepath.Join(harness.Root(), "docs", "kubectl-findings.md")
	content := harness.File(t, page)
	rosa := documented(t)
	folder := folderOf(t, manifestsOf(t, content))
	commands := 0
	written := console.ReplaceAllStringFunc(content, func(block string) string {
		documented := console.FindStringSubmatch(block)[1]
		var got strings.Builder
		for line := range strings.Lines(documented) {
			command, is := strings.CutPrefix(line, "$ ")
			if !is {
				continue
			}
			commands++
			shell := rosa.equip(shellCommand(t, command))
			shell.Dir = folder
			out, err := shell.CombinedOutput()
			if err != nil {
				t.Errorf("%s%v:\n%s", line, err, out)
			}
			got.WriteString(line)
			got.Write(out)
		}
		if diff := cmp.Diff(settled(documented), settled(got.String())); diff != "" && !*update {
			t.Errorf("(-documented +got):\n%s", diff)
		}
		return "```console\n" + got.String() + "```"
	})
	if commands < 15 {
		t.Errorf("found %d commands; did the form of the page change?", commands)
	}
	if *update {
		harness.Must(t, os.WriteFile(page, []byte(written), 0o600))
	}
}

// manifestsOf returns the page's manifests as files that are named after their objects.
func manifestsOf(t *testing.T, page string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, block := range manifestBlock.FindAllStringSubmatch(page, -1) {
		object := &unstructured.Unstructured{}
		harness.Must(t, yaml.UnmarshalStrict([]byte(block[1]), &object.Object))
		files[object.GetName()+".yaml"] = block[1]
	}
	return files
}

var manifestBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

var moving = []*regexp.Regexp{
	regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`),
	regexp.MustCompile(`\b\d+[smhdy](\d+[smhd])?\b`),
	regexp.MustCompile(`\b(mute|confirm|undo)-[a-z0-9]{6}\b`),
	regexp.MustCompile(` +`), // the width of a column depends on its content
}

// settled removes what differs between runs.
func settled(text string) string {
	for i, with := range []string{"TIME", "AGE", "$1-LETTERS", " "} {
		text = moving[i].ReplaceAllString(text, with)
	}
	return text
}

// documented creates the page's organization, and rosa, the user who does everything there.
func documented(t *testing.T) *person {
	t.Helper()
	o := newOrganization(t, "acme")
	at := time.Now().AddDate(0, 0, -12)
	finding := func(name, title, class, tool string, severity v1alpha1.Level) *builder.FindingBuilder {
		return builder.Finding(name).Project("payments", "api").Severity(severity).Title(title).DetectedAt(at).
			Tool(tool, v1alpha1.CategoryCode).Mutate(func(f *v1alpha1.Finding) {
			f.Spec.Class = class
			f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: "orders.go", LineNumber: 13}
		})
	}
	const first = "f-gvoagaawln76qanzzhb4sxqjlh"
	o.has(
		finding(first, "SQL string formatting", "CWE-89", "gosec", v1alpha1.LevelHigh),
		finding("f-2ct6uq3wq4gmjhchz5t6kb5hgi", "Use of a weak random number generator", "CWE-338", "gosec", v1alpha1.LevelMedium),
		finding("f-pnxy4m7kd2zq5r3vwtb6hjlsca", "Errors unhandled", "CWE-703", "gosec", v1alpha1.LevelLow),
		finding("f-yk3dn5q7z2hrmw4xvb6tpjlsce", "Insecure cookie", "CWE-614", "semgrep", v1alpha1.LevelMedium),
	)
	for name := range o.versions() {
		o.observed(name, func(s *v1alpha1.FindingStatus) { s.State = v1alpha1.FindingStateOpen })
	}
	// The page's first decision, as the controllers record it.
	o.observed(first, func(s *v1alpha1.FindingStatus) {
		s.ObservedGeneration = 2
		s.Transitions = []v1alpha1.Transition{
			{Seq: 1, Type: v1alpha1.TransitionCreated, At: v1alpha1.NewTime(at), To: "open", By: "gosec", Scan: "gosec-27x4k"},
			{
				Seq: 2, Type: v1alpha1.TransitionTriaged, At: v1alpha1.NewTime(time.Now()), From: "open", To: "muted",
				By: "rosa@example.com", Comment: "Only the sample reads it",
			},
		}
	})
	o.delivered(map[string]v1alpha1.WebhookDeliveryPhase{
		"dashboard-6c2ogq5d4kq2": v1alpha1.WebhookDeliveryFailed, "dashboard-tyinkx7m5ya2": v1alpha1.WebhookDeliveryFailed,
		"dashboard-w4xvb6tpjlsc": v1alpha1.WebhookDeliveryDelivered,
	})
	issueKeys(t)
	return o.rosa()
}

// rosa returns a user with a realistic name and all rights in the organization.
func (o *organization) rosa() *person {
	o.Helper()
	const name = "rosa@example.com"
	env.Create(o.T, testenv.Bind(o.namespace, "rosa", owner, testenv.User(name)))
	rosa := o.administrator()
	config, err := clientcmd.LoadFromFile(rosa.kubeconfig)
	harness.Must(o, err)
	for _, user := range config.AuthInfos {
		user.Impersonate = name
	}
	harness.Must(o, clientcmd.WriteToFile(*config, rosa.kubeconfig))
	harness.Eventually(o.T, func(g Gomega) {
		out, err := rosa.command("list", "-o", "name").CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), "%s", out)
	})
	return rosa
}

// shellCommand runs a line as a shell would; kubectl is the control plane's.
func shellCommand(t *testing.T, line string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), "sh", "-c", `kubectl() { '`+testenv.Binary(t, "kubectl")+`' "$@"; }; `+line)
}
