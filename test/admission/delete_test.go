package admission_test

import (
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// otherWay holds the kinds that the controllers delete only singly (true) or only in collections
// (false).
var otherWay = map[bool][]string{
	true:  {"webhook delivery"},
	false: {"project", "review", "review issue"},
}

func TestWhoDeletesWhat(t *testing.T) {
	table := []struct {
		name    string
		object  func(name string) client.Object
		allowed []who
		reason  string
	}{
		{"finding", findingMuted, []who{controller, admin, editor, reporter}, "a scanner closes what is gone, and never deletes a decision"},
		{"scan", scanOf, []who{controller, admin, editor, reporter}, "retention is the controllers'"},
		{"review", reviewOf, []who{controller, admin, editor, reporter}, "a repository's removal takes its reviews along"},
		{"review issue", issueOf, []who{controller, admin, editor, reporter}, "a review's removal takes its issues along"},
		{"webhook endpoint", endpointOf, []who{admin, editor, reporter}, "no controller removes an endpoint"},
		{"webhook delivery", deliveryOf, []who{controller, admin, editor, reporter}, "retention is the controllers'"},
		{"project", projectOf, []who{controller, admin, editor, reporter}, "a repository's removal takes its projects along"},
		{"repository", repositoryOf, []who{admin, editor, reporter}, "no controller removes a repository"},
		{"API key", keyOf, []who{admin, editor, reporter}, "no controller removes a key"},
	}
	c := newCast(t, "delete")
	next := nextName()
	for _, row := range table {
		for _, name := range everyone {
			for _, collection := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/collection=%t", row.name, name, collection), func(t *testing.T) {
					fixture := row.object(next())
					fixture.SetNamespace(c.namespace)
					live := applied(t.Context(), t, fixture)
					var err error
					if collection {
						err = c.as(name).DeleteAllOf(t.Context(), live, client.InNamespace(c.namespace), client.MatchingFields{"metadata.name": live.GetName()})
					} else {
						err = c.as(name).Delete(t.Context(), live)
					}
					if slices.Contains(row.allowed, name) && !(name == controller && slices.Contains(otherWay[collection], row.name)) {
						if err != nil {
							t.Errorf("refused: %v\nreason it must be allowed: %s", err, row.reason)
						}
						return
					}
					if !isRefusal(err) {
						t.Errorf("want a refusal, got error %v\nreason it must be refused: %s", err, row.reason)
					}
					read(t.Context(), t, live)
				})
			}
		}
	}
}
