package readmodel

import "testing"

// Pages are kept by revision, so whatever shows has another, of no other organization, and what is not
// shown has none.
func TestEachStateOfEachOrganizationHasARevisionOfItsOwn(t *testing.T) {
	m, _ := newTestModel(t)
	seen := map[uint64]string{}
	fresh := func(organization, after string) {
		t.Helper()
		revision := m.Revision(organization)
		if before, ok := seen[revision]; ok || revision == 0 {
			t.Errorf("%s, %s: revision %d, as %s", organization, after, revision, before)
		}
		seen[revision] = organization + ", " + after
	}
	if got := m.Revision(acme); got != 0 {
		t.Errorf("an organization that is not there has revision %d", got)
	}
	feed(t, m, organizations, organization(acme, acmeNamespace, 10), organization("other", "org-other", 11))
	settle(t, m)
	fresh(acme, "nothing there")
	fresh("other", "nothing there")
	feed(t, m, findings, finding("f-1", 12))
	settle(t, m)
	fresh(acme, "a finding")
	feed(t, m, projects, project("api", 13))
	settle(t, m)
	fresh(acme, "what the finding is joined with")
	if _, err := m.Apply(finding("f-1", 14)); err != nil {
		t.Fatal(err)
	}
	fresh(acme, "a change by REST")
	before := m.Revision("other")
	feedDeletion(t, m, findings, finding("f-1", 15))
	settle(t, m)
	fresh(acme, "a deletion")
	if m.Revision("other") != before {
		t.Error("another organization's change is taken for one's own")
	}
	feedDeletion(t, m, organizations, organization(acme, acmeNamespace, 16))
	if got := m.Revision(acme); got != 0 {
		t.Errorf("an organization that is gone has revision %d", got)
	}
}
