package conformance

import (
	"slices"
	"testing"

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

// wantsIDs checks that a list is one page with exactly these ids, in any order, and returns its items.
func (c *caller) wantsIDs(path string, ids ...string) []record {
	c.t.Helper()
	page := c.get(path).page()
	got, want := slices.Sorted(slices.Values(page.ids())), slices.Sorted(slices.Values(ids))
	if !slices.Equal(got, want) || page.Total != len(want) {
		c.t.Errorf("%s: got %v, total %d; want %v", path, got, page.Total, want)
	}
	return page.Items
}

// wantsList is wantsIDs, and checks that each item is the same when it is read alone.
func (c *caller) wantsList(path, alone string, ids []string) {
	c.t.Helper()
	for _, item := range c.wantsIDs(path, ids...) {
		harness.Same(c.t, item.text("id")+" listed, where alone is wanted", c.get(alone+item.text("id")).object(), item)
	}
}

// wantsMembers checks the members of an item that are in want. An absent member is null.
func wantsMembers(t *testing.T, what string, want, got record) {
	t.Helper()
	members := record{}
	for name := range want {
		members[name] = got[name]
	}
	harness.Same(t, what, want, members)
}

// existing returns a record of that kind: the sample's or, without a cluster, that of the fixtures, if these name one.
func existing(t *testing.T, kind, ofSample, fixture, ofFixtures string) record {
	t.Helper()
	enter(t)
	path, c := ofSample, (*caller)(nil)
	switch {
	case theDeployment.cluster != nil:
		c = sampleOrganization(t).caller
	case fixture != "":
		path, c = ofFixtures, anyKey(t)
	default:
		notRun(t, "needs -kubeconfig, or -fixtures with a "+kind)
	}
	return c.get(path).wants(200, "a "+kind).object()
}
