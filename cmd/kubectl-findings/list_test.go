package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// 20,000 whole findings take hundreds of megabytes.
func TestAListOfNamesHoldsNothingElse(t *testing.T) {
	names := newOutput()
	*names.flags.OutputFormat = outputName
	for reason, order := range map[string]string{"as they come": "", "sorted": "severity"} {
		l := &listing{output: names, order: sortings[order]}
		harness.Must(t, l.add(&session{errOut: io.Discard}, []unstructured.Unstructured{
			stored(t, builder.Finding("f-1").In("org-acme").Build()),
		}))
		harness.Same(t, reason, []unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "appsec.dev/v1alpha1", "kind": "Finding", "metadata": map[string]any{"name": "f-1"},
		}}}, l.objects())
	}
}

func TestNamesAreAcceptedAsTheyArePrinted(t *testing.T) {
	got := bare("Finding", "f-1", "finding.appsec.dev/f-2", "findings.appsec.dev/f-3", "finding/f-4", "Findings/f-5",
		"fnd/f-6", "scan.appsec.dev/s-1", "scans/s-1", "scn/s-1", "secret/f-1", "finding.other.io/f-1")
	harness.Same(t, "names", []string{"f-1", "f-2", "f-3", "f-4", "f-5", "f-6", "scan.appsec.dev/s-1", "scans/s-1",
		"scn/s-1", "secret/f-1", "finding.other.io/f-1"}, got)
	for kind, short := range shortNames {
		crd := harness.RepositoryFile(t, "config", "crd", "bases", "appsec.dev_"+kube.Resource(kind)+".yaml")
		if want := "    shortNames:\n    - " + short + "\n"; !strings.Contains(crd, want) {
			t.Errorf("%s: %s is not its short name", kind, short)
		}
	}
}

// kubectl's printers of tables and names drop the errors of a full disk.
func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	full := errors.New("no space left on device")
	from, to := io.Pipe()
	harness.Must(t, from.CloseWithError(full))
	o := newOutput()
	harness.ErrorContains(t, "a table", o.table(to, []column{{name: "Name"}}, []row{{"f-1"}}), full.Error())
	*o.flags.OutputFormat = outputName
	items := []unstructured.Unstructured{stored(t, builder.Finding("f-1").Build())}
	harness.ErrorContains(t, "names", o.objects(to, items), full.Error())
}

// kubectl too takes --template for another format only if there is no --output.
func TestATemplateIsThatOfTheOutput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names.tmpl")
	const template = "{{range .items}}<{{.metadata.name}}>{{end}}"
	harness.Must(t, os.WriteFile(file, []byte(template), 0o600))
	items := []unstructured.Unstructured{stored(t, builder.Finding("f-1").Build())}
	for _, tc := range []struct{ output, template, want string }{
		{"", template, "<f-1>"},
		{"go-template", template, "<f-1>"},
		{"go-template-file", file, "<f-1>"},
		{"jsonpath", "{.items[*].metadata.name}", "f-1"},
		{"json", template, `"kind": "List"`},
		{"name", template, "finding.appsec.dev/f-1\n"},
		{"wide", template, "a table"},
		{"nonsense", template, `--output is "nonsense" and must be table, wide`},
	} {
		o, cmd, args := newOutput(), &cobra.Command{}, []string{"--template", tc.template}
		if o.addFlags(cmd); tc.output != "" {
			args = append(args, "--output", tc.output)
		}
		harness.Must(t, cmd.ParseFlags(args))
		var out bytes.Buffer
		if err := o.check(); err != nil {
			out.WriteString(err.Error())
		} else if o.tables() {
			out.WriteString("a table")
		} else {
			harness.Must(t, o.objects(&out, items))
		}
		harness.Contains(t, "-o "+tc.output, out.String(), tc.want)
	}
}
