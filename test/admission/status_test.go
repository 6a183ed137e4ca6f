package admission_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func status(members map[string]any) fragment { return fragment{"status": members} }

var statusChanges = []change{
	{
		name: "state of a finding", object: findingOpen,
		change:  status(map[string]any{"state": "closed", "userStatus": "open"}),
		allowed: []who{controller},
		reason:  "the state is what a controller derived",
	},
	{
		name: "counts of a repository", object: repositoryOf, change: status(map[string]any{"projects": int64(3)}),
		allowed: []who{controller},
		reason:  "counts are what a controller counted",
	},
	{
		name: "summary of a project", object: projectOf, change: status(map[string]any{"summary": "x"}),
		allowed: []who{controller},
		reason:  "effective metadata is what a controller joined",
	},
	{
		name: "phase of a scan", object: scanOf, change: status(map[string]any{"phase": "Completed"}),
		allowed: []who{controller},
		reason:  "an importer says how a scan ended in the spec",
	},
	{
		name: "counters of a review", object: reviewOf, change: status(map[string]any{"openIssueCount": int64(3)}),
		allowed: []who{controller},
		reason:  "counters are what a controller counted",
	},
	{
		name: "state of an issue", object: issueOf, change: status(map[string]any{"state": "resolved"}),
		allowed: []who{controller},
		reason:  "the state follows from the reviewed commits",
	},
	{
		name: "success of an endpoint", object: endpointOf, change: status(map[string]any{"lastSuccessAt": "2026-01-02T03:04:05Z"}),
		allowed: []who{controller},
		reason:  "the sender knows what the receiver answered",
	},
	{
		name: "phase of a delivery", object: deliveryOf,
		// All that the default holds: an apply replaces an atomic status as a whole.
		change:  status(map[string]any{"phase": "Delivered", "observedGeneration": int64(1)}),
		allowed: []who{controller},
		reason:  "what verify answers rests on it",
	},
	{
		name: "id of an API key", object: keyOf, change: status(map[string]any{"keyID": "forged"}),
		allowed: []who{controller},
		reason:  "who writes keyID decides which token is valid",
	},
	{
		name: "last use of an API key", object: keyOf,
		change:  status(map[string]any{"lastUsedAt": "2026-01-02T03:04:05Z"}),
		allowed: []who{controller, facade},
		reason:  "the facade sees a key's use",
	},
	{
		name: "last use and id of an API key", object: keyOf,
		change:  status(map[string]any{"lastUsedAt": "2026-01-02T03:04:05Z", "keyID": "forged"}),
		allowed: []who{controller},
		reason:  "one half that is allowed must not carry the other",
	},
}

func TestOnlyTheControllersWriteStatus(t *testing.T) {
	c := newCast(t, "status")
	next := nextName()
	for _, row := range statusChanges {
		t.Run(row.name, func(t *testing.T) {
			for _, name := range everyone {
				for _, form := range forms {
					t.Run(fmt.Sprintf("%s/%s", name, form.name), func(t *testing.T) {
						allowed := slices.Contains(row.allowed, name) &&
							(form.verb != "update" || name == controller || !slices.Contains(cannotUpdate, name)) // testenv lets the controllers' account
						tryChange(t, c, row, next(), name, form, "status", allowed)
					})
				}
			}
		})
	}
}

// The facade must not remove a field either: without keyID, a key would be revoked permanently.
func TestTheFacadeTakesNothingFromAKeysStatus(t *testing.T) {
	c := newCast(t, "status-removal")
	key := keyOf("key")
	key.SetNamespace(c.namespace)
	live := applied(t.Context(), t, key)
	filled := status(map[string]any{"keyID": "k", "lastUsedAt": "2026-01-02T03:04:05Z"})
	if err := sendMergePatch(t.Context(), t, c.as(controller), live, filled, "status"); err != nil {
		t.Fatal(err)
	}
	for _, removal := range []fragment{
		status(map[string]any{"keyID": nil}), status(map[string]any{"lastUsedAt": nil}), {"status": nil},
	} {
		live = read(t.Context(), t, live)
		if err := sendMergePatch(t.Context(), t, c.as(facade), live, removal, "status"); !isRefusal(err) {
			t.Errorf("facade sent %s: want a refusal, got %v", removal.json(t), err)
		}
	}
}

// A status in a write of the main resource is dropped, whoever sends it.
func TestAWriteOfTheMainResourceCarriesNoStatus(t *testing.T) {
	c := newCast(t, "status-main")
	next := nextName()
	for _, name := range []who{scanner, triager, admin} {
		for _, form := range forms {
			if form.verb == "update" && slices.Contains(cannotUpdate, name) || form.name == "apply under the owner's name" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", name, form.name), func(t *testing.T) {
				fixture := findingOpen(next())
				fixture.SetNamespace(c.namespace)
				before := applied(t.Context(), t, fixture)
				if err := form.send(t.Context(), t, c.as(name), before, status(map[string]any{"state": "closed"}), ""); err != nil {
					t.Fatal(err)
				}
				byDefault := map[string]any{"state": "open", "userStatus": "open"}
				if got := read(t.Context(), t, before).Object["status"]; !cmp.Equal(got, any(byDefault)) {
					t.Errorf("status is %v, want the default", got)
				}
			})
		}
	}
}
