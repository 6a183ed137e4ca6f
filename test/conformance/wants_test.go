package conformance

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// wantsFacts checks all members of an item, apart from those that are named.
func wantsFacts(t *testing.T, what string, want, got record, apart ...string) {
	t.Helper()
	for _, name := range apart {
		delete(got, name)
	}
	harness.Same(t, what, want, got)
}

// wantsList checks that a list is one page with those ids, and that each item is the same when it is read alone.
func (c *caller) wantsList(path, alone string, ids []string) {
	c.t.Helper()
	page := c.get(path).page()
	got := page.ids()
	slices.Sort(got)
	if diff := cmp.Diff(ids, got); diff != "" || page.Total != len(ids) {
		c.t.Errorf("%s: total %d (-want +got):\n%s", path, page.Total, diff)
	}
	for _, item := range page.Items {
		if diff := cmp.Diff(c.get(alone+item.text("id")).object(), item); diff != "" {
			c.t.Errorf("%s (-alone +listed):\n%s", item.text("id"), diff)
		}
	}
}
