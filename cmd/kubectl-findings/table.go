package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

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
