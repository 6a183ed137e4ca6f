package admission_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func status(members map[string]any) fragment { return fragment{"status": members} }

var statusChanges = []change{
	{"state of a finding", findingOpen, status(map[string]any{"state": "closed", "userStatus": "open"}), []who{controller}, "the state is what a controller derived"},
	{"counts of a repository", repositoryOf, status(map[string]any{"projects": int64(3)}), []who{controller}, "counts are what a controller counted"},
	{"summary of a project", projectOf, status(map[string]any{"summary": "x"}), []who{controller}, "effective metadata is what a controller joined"},
	{"phase of a scan", scanOf, status(map[string]any{"phase": "Completed"}), []who{controller}, "an importer says how a scan ended in the spec"},
	{"counters of a review", reviewOf, status(map[string]any{"openIssueCount": int64(3)}), []who{controller}, "counters are what a controller counted"},
	{"state of an issue", issueOf, status(map[string]any{"state": "resolved"}), []who{controller}, "the state follows from the reviewed commits"},
	{"success of an endpoint", endpointOf, status(map[string]any{"lastSuccessAt": "2026-01-02T03:04:05Z"}), []who{controller}, "the sender knows what the receiver answered"},
	// All that the default holds: an apply replaces an atomic status as a whole.
	{"phase of a delivery", deliveryOf, status(map[string]any{"phase": "Delivered", "observedGeneration": int64(1)}), []who{controller}, "what verify answers rests on it"},
	{"id of an API key", keyOf, status(map[string]any{"keyID": "forged"}), []who{controller}, "who writes keyID decides which token is valid"},
	{"last use of an API key", keyOf, status(map[string]any{"lastUsedAt": "2026-01-02T03:04:05Z"}), []who{controller, facade}, "the facade sees a key's use"},
	{"last use and id of an API key", keyOf, status(map[string]any{"lastUsedAt": "2026-01-02T03:04:05Z", "keyID": "forged"}), []who{controller}, "one half that is allowed must not carry the other"},
}

func TestOnlyTheControllersWriteStatus(t *testing.T) {
	c, next := newCast(t, "status"), nextName()
	for _, row := range statusChanges {
		c.everyoneTries(t, row, next, "status", func(name who, form form) bool {
			return slices.Contains(row.allowed, name) &&
				(form.verb != "update" || name == controller || !slices.Contains(cannotUpdate, name)) // testenv lets the controllers' account
		})
	}
}

// The facade must not remove a field either: without keyID, a key would be revoked permanently.
func TestTheFacadeTakesNothingFromAKeysStatus(t *testing.T) {
	c := newCast(t, "status-removal")
	live := applied(t, in(c.namespace, keyOf("key")))
	filled := status(map[string]any{"keyID": "k", "lastUsedAt": "2026-01-02T03:04:05Z"})
	harness.Must(t, sendMergePatch(t, c.as(controller), live, filled, "status"))
	for _, removal := range []fragment{
		status(map[string]any{"keyID": nil}), status(map[string]any{"lastUsedAt": nil}), {"status": nil},
	} {
		live = env.Stored(t, live)
		wantRefusal(t, fmt.Sprintf("facade sent %s", harness.JSON(t, removal)), sendMergePatch(t, c.as(facade), live, removal, "status"))
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
				before := applied(t, in(c.namespace, findingOpen(next())))
				harness.Must(t, form.send(t, c.as(name), before, status(map[string]any{"state": "closed"}), ""))
				byDefault := map[string]any{"state": "open", "userStatus": "open"}
				harness.Same(t, "status", any(byDefault), env.Stored(t, before).Object["status"])
			})
		}
	}
}
