package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

const (
	outputTable = "table"
	outputWide  = "wide"
	outputName  = "name"
)

// outputFormats holds the values of --output. kubectl's custom-columns are missing, because the printing library does
// not have them.
var outputFormats = []string{
	outputTable, outputWide, outputJSON, outputYAML, outputName, "jsonpath=...", "jsonpath-as-json=...", "jsonpath-file=...",
	"go-template=...", "go-template-file=...", "template=...", "templatefile=...",
}

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

// listed describes a command that lists all objects of a kind.
type listed[T any] struct {
	need
	// order of the objects; nil: by name.
	order func(a, b unstructured.Unstructured) int
	// none returns what to print about a session's namespace that has no objects.
	none    func(*session) string
	columns []column
	row     func(*T, time.Time) row
}

// listAll prints all objects of a kind in the organization.
func listAll[T any](ctx context.Context, c cli, output *output, l listed[T]) error {
	if err := output.check(); err != nil {
		return err
	}
	session, err := c.open()
	if err != nil {
		return err
	}
	items, err := session.all(ctx, l.need)
	if err != nil {
		return err
	}
	if l.order != nil {
		slices.SortStableFunc(items, l.order)
	}
	if !output.tables() {
		return output.objects(c.streams.Out, items)
	}
	if len(items) == 0 {
		fmt.Fprintln(c.streams.ErrOut, l.none(session))
		return nil
	}
	var rows []row
	for _, object := range readable[T](session, items) {
		rows = append(rows, l.row(object, time.Now()))
	}
	return output.table(c.streams.Out, l.columns, rows)
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

// column of a table; a wide one is only shown on request.
type column struct {
	name string
	wide bool
}

// row has a cell for each column.
type row []string

// printTable makes every cell safe for a terminal, so that no caller can forget it.
func printTable(to io.Writer, columns []column, rows []row, options printers.PrintOptions) error {
	table := &metav1.Table{}
	for _, c := range columns {
		priority := int32(0)
		if c.wide {
			priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions,
			metav1.TableColumnDefinition{Name: c.name, Type: "string", Priority: priority})
	}
	for _, r := range rows {
		cells := make([]any, len(r))
		for i, cell := range r {
			cells[i] = printable(cell)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	return printAll(printers.NewTablePrinter(options), table, to)
}

// table prints rows in the requested format.
func (o *output) table(to io.Writer, columns []column, rows []row) error {
	return printTable(to, columns, rows, printers.PrintOptions{Wide: o.wide(), NoHeaders: o.noHeaders})
}

// ago returns the time since then in the format of kubectl.
func ago(at *v1alpha1.Time, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(at.Time))
}

// instant returns a time in full, for comparison with other records.
func instant(at *v1alpha1.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}
