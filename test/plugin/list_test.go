package plugin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// mixed creates findings of which each filter selects some and omits others.
func mixed(o *organization) {
	o.Helper()
	old := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o.has(
		builder.Finding("f-high").Severity(v1alpha1.LevelHigh).Tool("gosec", v1alpha1.CategoryCode).DetectedAt(old.Add(time.Hour)),
		builder.Finding("f-medium").Severity(v1alpha1.LevelMedium).Tool("gosec", v1alpha1.CategoryCode).DetectedAt(old.Add(2*time.Hour)),
		builder.Finding("f-low").Severity(v1alpha1.LevelLow).Tool("trivy", v1alpha1.CategoryPackage).DetectedAt(old),
		builder.Finding("f-muted").Severity(v1alpha1.LevelHigh).Project("shop", "web").DetectedAt(old).
			Triage(v1alpha1.UserStatusMuted, "noise").
			Mutate(func(f *v1alpha1.Finding) { f.Spec.Class = "CWE-89"; f.Labels = map[string]string{"team": "web"} }),
		builder.Finding("f-new").DetectedAt(old),
	)
	for name, state := range map[string]v1alpha1.FindingState{
		"f-high": v1alpha1.FindingStateOpen, "f-medium": v1alpha1.FindingStateClosed, "f-low": v1alpha1.FindingStateOpen,
		"f-muted": v1alpha1.FindingStateOpenMuted,
	} {
		o.observed(name, func(s *v1alpha1.FindingStatus) { s.State, s.ObservedGeneration = state, 1 })
	}
}

func TestTheAPIServerDoesTheChoosing(t *testing.T) {
	o := newOrganization(t, "choosing")
	mixed(o)
	token := o.token(testenv.Viewer)
	for name, tc := range map[string]struct {
		flags, want, reason string
	}{
		"everything":    {"", "f-high f-low f-medium f-muted f-new", "no filter"},
		"one severity":  {"--severity HIGH", "f-high f-muted", "one value, in any case"},
		"two":           {"--severity high --severity medium", "f-high f-medium f-muted", "a field selector has no or: the third is ruled out"},
		"all":           {"--severity high,medium,low", "f-high f-low f-medium f-muted f-new", "ruling out none"},
		"state":         {"--state open", "f-high f-low f-new", "what the controllers have yet to see is open as well"},
		"states":        {"--state open --state open_muted", "f-high f-low f-muted f-new", "either"},
		"every state":   {"--state open,open_muted,closed", "f-high f-low f-medium f-muted f-new", "ruling out none"},
		"category":      {"--category code --category Package", "f-high f-low f-medium", "what has no category is in neither"},
		"user status":   {"--user-status muted", "f-muted", "a person's decision"},
		"project":       {"--project web --repository shop", "f-muted", "both must be met"},
		"class":         {"--class CWE-89", "f-muted", "an exact value"},
		"tool":          {"--tool gosec --severity high", "f-high", "both must be met"},
		"label":         {"-l team=web", "f-muted", "a label selector"},
		"field":         {"--field-selector spec.tool!=gosec,metadata.name!=f-new --severity low", "f-low", "all must be met"},
		"nothing":       {"--class nowhere", "", "none matches"},
		"worst first":   {"--sort-by severity", "f-high f-muted f-medium f-low f-new", "ties by name"},
		"latest first":  {"--sort-by detected --limit 2", "f-medium f-high", "the first two of the order, not of the names"},
		"limit":         {"--limit 2", "f-high f-low", "the first by name"},
		"sort by title": {"--sort-by title --limit 1", "f-high", "ascending"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &organization{t, o.name, o.namespace}
			g := &gateway{}
			harness.Same(t, tc.reason, tc.want, g.through(o, token).lists(tc.flags))
			lists := g.sent(http.MethodGet, "/findings")
			want := len(strings.Fields(tc.want))
			switch {
			case strings.Contains(tc.flags, "--sort-by"), strings.Contains(tc.flags, "--state"):
				want = 5 // all other matches must be shown
			case strings.Contains(tc.flags, "--limit"):
				want++ // whether there are more
			}
			if len(lists) != 1 || listed(lists) != want {
				t.Errorf("%d lists with %d findings, want 1 with %d: %s", len(lists), listed(lists), want, tc.reason)
			}
		})
	}
	// The API server's page of two ends before f-new, which does not match.
	few := o.as(token).findings("list", "--severity", "high", "--limit", "2").Wants("f-high", "f-muted")
	harness.Same(t, "what it says if no more findings match", "", few.Stderr)
}

func TestMoreFindingsThanAPageHoldsAreListedInPagesAndNotAllOffered(t *testing.T) {
	o := newOrganization(t, "pages").withMany(620)
	t.Run("list", func(t *testing.T) {
		o := &organization{t, o.name, o.namespace}
		g := &gateway{}
		viewer := g.through(o, o.token(testenv.Viewer))
		a := viewer.findings("list", "--no-headers").Wants()
		harness.Same(t, "lines", 620, strings.Count(a.Stdout, "\n"))
		if lists := g.sent(http.MethodGet, "/findings"); len(lists) != 2 || lists[0].items != 500 || lists[1].items != 120 {
			t.Errorf("%d lists with %d findings, want pages of 500 and 120", len(lists), listed(lists))
		}
		a = viewer.findings("list", "--no-headers", "--limit", "510").Wants("more findings match than the 510 shown")
		if lists := g.sent(http.MethodGet, "/findings")[2:]; strings.Count(a.Stdout, "\n") != 510 || len(lists) != 2 || listed(lists) != 511 {
			t.Errorf("%d lines from %d lists with %d findings, want 510, and one more that is only read", strings.Count(a.Stdout, "\n"), len(lists), listed(lists))
		}
	})
	t.Run("completion", func(t *testing.T) {
		o := &organization{t, o.name, o.namespace}
		g := &gateway{}
		a := g.through(o, o.token(testenv.Viewer)).findings("__complete", "triage", "").Wants("f-0199")
		if strings.Contains(a.Stdout, "f-0200") || len(g.sent(http.MethodGet, "/findings")) != 1 {
			t.Errorf("a key press takes %d lists and offers:\n%s", len(g.sent(http.MethodGet, "/findings")), a.Stdout)
		}
	})
}

// unreadable stores an object that its Go type cannot hold, until the test ends.
func (o *organization) unreadable(kind, name string) {
	o.Helper()
	crds, err := corpus.CRDs()
	harness.Must(o, err)
	content, err := corpus.Stored(crds[kind], o.namespace, name, corpus.Unreadables()[kind])
	harness.Must(o, err)
	harness.Must(o, env.PutIntoEtcd(o.Context(), crds[kind].Spec.Names.Plural, o.namespace, name, content))
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	harness.Eventually(o, func(g Gomega) {
		testenv.Get(o, g, env, object)
	})
	o.Cleanup(func() { harness.Must(o, env.Client.Delete(context.Background(), object)) })
}

func TestAnObjectThatCannotBeReadHidesNoOther(t *testing.T) {
	o := newOrganization(t, "list-unreadable")
	o.has(builder.Finding("f-good"), builder.Finding("f-then"))
	o.delivered(map[string]v1alpha1.WebhookDeliveryPhase{"one-good": v1alpha1.WebhookDeliveryFailed})
	env.Create(t, builder.APIKey("good").In(o.namespace).Build(), builder.TriageOperation("good", "G1").In(o.namespace).Build())
	for kind, name := range map[string]string{
		"APIKey": "odd", "Finding": "f-odd", "TriageOperation": "odd", "WebhookDelivery": "one-odd",
	} {
		o.unreadable(kind, name)
	}
	triager := o.member(testenv.Triager)
	for command, names := range map[string][2]string{
		"list": {"f-good", "f-odd"}, "list --limit 1": {"more findings match than the 1 shown", "f-odd"}, "key list": {"good", "odd"}, "operations": {"good", "odd"},
		"redeliver -l !team --dry-run": {"one-good", "one-odd"},
	} {
		a := triager.findings(strings.Fields(command)...).
			Wants(names[0], " "+names[1]+" cannot be read and is left out", "Upgrade the plugin if", "kubectl edit")
		harness.Lacks(t, command+": the list, without what it cannot read", a.Stdout, "odd")
	}
	// The API server's own form needs no Go type.
	triager.findings("key", "list", "-o", "name").Wants("apikey.appsec.dev/odd")
	triager.findings("list", "-o", "name").Wants("finding.appsec.dev/f-odd")
}

func TestTheFormsOfAList(t *testing.T) {
	o := newOrganization(t, "forms")
	mixed(o)
	viewer := o.member(testenv.Viewer)

	viewer.findings("list", "--severity", "high").Wants("NAME", "SEVERITY", "f-muted", "open_muted").Omits("TRIAGED BY")
	viewer.findings("list", "-o", "wide").Wants("TRIAGED BY", "CWE-89", "gosec")
	viewer.findings("list", "--class", "nowhere").Wants("no findings match in namespace " + o.namespace)

	for format, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(data []byte, into any) error { return yaml.Unmarshal(data, into) },
	} {
		var list struct {
			APIVersion, Kind string
			Items            []v1alpha1.Finding
		}
		a := viewer.findings("list", "--severity", "high", "-o", format).Wants()
		if err := decode([]byte(a.Stdout), &list); err != nil || list.Kind != "List" || list.APIVersion != "v1" || len(list.Items) != 2 {
			t.Fatalf("-o %s: %v; kind %q with %d items:\n%s", format, err, list.Kind, len(list.Items), a.Stdout)
		}
		if f := list.Items[1]; f.Kind != "Finding" || f.Spec.Triage.Comments != "noise" || len(f.ManagedFields) != 0 {
			t.Errorf("-o %s: the finding is not whole, or not as kubectl shows it:\n%s", format, a.Stdout)
		}
	}
	a := viewer.findings("list", "--severity", "high", "-o", "jsonpath={.items[*].metadata.name}").Wants()
	harness.Same(t, "jsonpath", "f-high f-muted", a.Stdout)
	for _, format := range []string{
		"table", "jsonpath-as-json={.items[*].metadata.name}",
		"go-template={{range .items}}{{.metadata.name}}{{end}}", "template={{range .items}}{{.metadata.name}}{{end}}",
	} {
		viewer.findings("list", "-o", format).Wants("f-high")
	}
}

// exitClosedPipe is what a shell reports for a program that SIGPIPE has ended.
const exitClosedPipe = 128 + int(syscall.SIGPIPE)

// closedPipe returns a pipe that nobody reads.
func closedPipe(t *testing.T) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	harness.Must(t, err)
	harness.Must(t, reader.Close())
	t.Cleanup(func() { _ = writer.Close() })
	return writer
}

// As with `| head`.
func TestAListThatNobodyReadsEndsQuietly(t *testing.T) {
	o := newOrganization(t, "list-unread").withMany(1)
	viewer := o.member(testenv.Viewer)
	for _, format := range []string{"table", "json", "yaml", "name", "jsonpath={.items}", "go-template={{.items}}"} {
		cmd := viewer.direct("list", "-o", format)
		var stderr strings.Builder
		cmd.Stdout, cmd.Stderr = closedPipe(t), &stderr
		_ = cmd.Run()
		harness.Same(t, format+": exit code", exitClosedPipe, cmd.ProcessState.ExitCode())
		harness.Same(t, format+": standard error", "", stderr.String())
	}
}

// Control characters in a scanner's output must not affect a reader's terminal.
func TestATableObeysNoScanner(t *testing.T) {
	o := newOrganization(t, "escapes")
	const evil = "clear\x1b[2J title\x1b]0;owned\a c1\u009b31m bidi\u202edesrever\r\noverwritten"
	o.has(builder.Finding("f-evil").Title(evil).Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Class, f.Spec.Tool = "\x1b[31mred", "\u2066tool"
		f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: "a\x1b[8m.go", LineNumber: 1}
	}))
	triager := o.member(testenv.Triager)
	for _, arguments := range [][]string{
		{"list"},
		{"list", "-o", "wide"},
		{"triage", "--field-selector", "metadata.name=f-evil", "--mute", "--dry-run"},
		{"__complete", "triage", ""},
	} {
		triager.findings(arguments...).Wants("f-evil", `clear\x1b[2J`, "desrever").
			Omits("\x1b", "\a", "\r", "\u009b", "\u202e", "\u2066")
	}
	var list v1alpha1.FindingList
	a := triager.findings("list", "-o", "json").Wants()
	if err := json.Unmarshal([]byte(a.Stdout), &list); err != nil || list.Items[0].Spec.Details.Title != evil {
		t.Errorf("JSON is for programs, and the title must be whole: %v\n%s", err, a.Stdout)
	}
}

func TestAnotherOrganizationAndAllOfThem(t *testing.T) {
	one, other := newOrganization(t, "all-one"), newOrganization(t, "all-other")
	one.has(builder.Finding("f-one").Mutate(func(f *v1alpha1.Finding) { f.Spec.Class = "CWE-all" }))
	other.has(builder.Finding("f-other").Mutate(func(f *v1alpha1.Finding) { f.Spec.Class = "CWE-all" }))

	a := one.administrator().findings("list", "-A", "--class", "CWE-all").Wants("NAMESPACE", one.namespace, "f-one", other.namespace, "f-other")
	harness.Same(t, "lines", 3, strings.Count(a.Stdout, "\n"))
	one.administrator().findings("list", "--organization", other.name).Wants("f-other")
	// The name depends on the scan alone, and says nothing about the organization to the next command of a script.
	one.administrator().findings("list", "-A", "-o", "name").Fails("can have the same name", "--organization", "{.metadata.namespace} {.metadata.name}")
	viewer := one.member(testenv.Viewer)
	viewer.findings("list", "-A").Fails("forbidden", "ClusterRoleBinding", "--organization")
	viewer.findings("list", "--organization", other.name).Fails("forbidden", "findings-viewer", "--clusterrole=findings-viewer")
}

func TestAListSaysWhatToDoNext(t *testing.T) {
	o := newOrganization(t, "list-next")
	viewer := o.member(testenv.Viewer)
	viewer.findings("list", "--server", "https://127.0.0.1:1").Fails("refused")
	t.Run("no such kind", func(t *testing.T) {
		o := &organization{t, o.name, o.namespace}
		g := &gateway{before: func(_ http.ResponseWriter, r *http.Request) bool {
			r.URL.Path = strings.Replace(r.URL.Path, v1alpha1.GroupName, "absent.example", 1)
			return false
		}}
		missing := g.through(o, o.token(owner))
		missing.findings("list").Fails("knows no findings", "install findings-operator")
		missing.findings("history", "f-1").Fails("knows no findings")
		missing.findings("triage", "f-1", "--mute").Fails("knows no findings")
	})
	t.Run("unknown user", func(t *testing.T) {
		o := &organization{t, o.name, o.namespace}
		config := o.token(testenv.Viewer)
		config.BearerToken = "nobody"
		o.as(config).findings("list").Fails("log in")
	})
}
