// Package pagetest renders the console's pages and their parts.
package pagetest

import (
	"testing"

	"github.com/a-h/templ"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Text returns the HTML of a page's part.
func Text(t testing.TB, part templ.Component) string {
	t.Helper()
	text, err := page.Text(t.Context(), part)
	harness.Must(t, err)
	return text
}

// Show serves the page, and returns its response and the HTML of its body.
func Show(t testing.TB, serve page.Handle, v *page.Visit) (page.Response, string) {
	t.Helper()
	response, err := serve(t.Context(), v)
	harness.Must(t, err)
	return response, Text(t, response.Body)
}
