package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// Values of --output.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputName  = "name"
	outputJSON  = "json"
	outputYAML  = "yaml"
)

// outputFormats holds the values of --output. kubectl's custom-columns are missing, because the printing library does
// not have them.
var outputFormats = []string{
	outputTable, outputWide, outputJSON, outputYAML, outputName, "jsonpath=...", "jsonpath-as-json=...", "jsonpath-file=...",
	"go-template=...", "go-template-file=...", "template=...", "templatefile=...",
}

// Values of --output for summaries, and for summaries of many objects.
var (
	summaryFormats = []string{outputJSON, outputYAML}
	bulkFormats    = []string{outputJSON, outputYAML, outputName}
)

// output is the format in which objects are printed: our own table, or a format of kubectl's library.
type output struct {
	flags     *genericclioptions.PrintFlags
	noHeaders bool
}

func newOutput() *output {
	return &output{flags: genericclioptions.NewPrintFlags("").WithDefaultOutput(outputTable)}
}

func (o *output) addFlags(cmd *cobra.Command) {
	o.flags.JSONYamlPrintFlags.AddFlags(cmd)
	o.flags.TemplatePrinterFlags.AddFlags(cmd)
	cmd.Flags().StringVarP(o.flags.OutputFormat, "output", "o", outputTable,
		alternatives(outputFormats))
	// Without this, the library prints with --template whatever --output says.
	o.flags.OutputFlagSpecified = func() bool { return cmd.Flags().Changed("output") }
	completeWords(cmd, "output", []string{outputTable, outputWide, outputJSON, outputYAML, outputName})
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "do not print the headings of a table")
}

// tables reports whether a table was requested instead of the objects themselves.
func (o *output) tables() bool {
	format := *o.flags.OutputFormat
	return (format == outputTable || format == outputWide || format == "") &&
		(*o.flags.TemplatePrinterFlags.TemplateArgument == "" || o.flags.OutputFlagSpecified())
}

func (o *output) wide() bool { return *o.flags.OutputFormat == outputWide }

// names reports whether only the names of the objects were requested.
func (o *output) names() bool { return *o.flags.OutputFormat == outputName }

// check refuses an unknown format before any request is sent.
func (o *output) check() error {
	if o.tables() {
		return nil
	}
	_, err := o.flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return fmt.Errorf("--output is %q and must be %s", *o.flags.OutputFormat, alternatives(outputFormats))
	}
	return err
}

// objects prints the objects as one List, as kubectl does.
func (o *output) objects(to io.Writer, items []unstructured.Unstructured) error {
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return err
	}
	return printAll(printer, &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}},
		Items:  items,
	}, to)
}

// table prints rows in the requested format.
func (o *output) table(to io.Writer, columns []column, rows []row) error {
	return printTable(to, columns, rows, printers.PrintOptions{Wide: o.wide(), NoHeaders: o.noHeaders})
}

// printAll prints with a printer of kubectl's library. It returns the error of the writer itself, which the library's
// printers of tables and names drop.
func printAll(printer printers.ResourcePrinter, object runtime.Object, to io.Writer) error {
	out := &failing{Writer: to}
	err := printer.PrintObj(object, out)
	return cmp.Or(out.err, err) // that of a template quotes the objects
}

// failing remembers the first error of a writer.
type failing struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (f *failing) Write(data []byte) (int, error) {
	n, err := f.Writer.Write(data)
	f.err = cmp.Or(f.err, err)
	return n, err
}

// addSummaryOutput adds --output for a summary that is printed in one of the formats, or as text.
func addSummaryOutput(cmd *cobra.Command, output *string, formats []string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "format of the summary: "+alternatives(formats)+"; default: text")
	completeWords(cmd, "output", formats)
}

// checkOutput accepts the formats, and none for text.
func checkOutput(output string, formats []string) error {
	if output != "" && !slices.Contains(formats, output) {
		return fmt.Errorf("--output is %q and must be %s", output, alternatives(formats))
	}
	return nil
}

// write encodes a summary in the requested format, or writes its text.
func write(to io.Writer, format string, summary any, text func() []byte) error {
	var out []byte
	var err error
	switch format {
	case outputJSON:
		out, err = json.MarshalIndent(summary, "", "  ")
		out = append(out, '\n')
	case outputYAML:
		out, err = yaml.Marshal(summary)
	default:
		out = text()
	}
	if err != nil {
		return err
	}
	_, err = to.Write(out)
	return err
}
