package slots

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestOrganizationsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2)
		var had []string
		ends := map[string]func(){}
		takes := func(ctx context.Context, organization, work string) {
			go func() {
				end, err := turns.Take(ctx, organization)
				if err != nil {
					had = append(had, work+": "+err.Error())
					return
				}
				had = append(had, work)
				ends[work] = end
			}()
			synctest.Wait()
		}
		wanted := func(reason string, want bool) {
			t.Helper()
			harness.Same(t, "wanted: "+reason, want, turns.Wanted())
		}
		ended := func(reason, work string, next ...string) {
			t.Helper()
			had = nil
			ends[work]()
			synctest.Wait()
			harness.Same(t, reason, next, had)
		}
		gone, leave := context.WithCancelCause(t.Context())
		takes(t.Context(), "acme", "acme 1")
		takes(gone, "acme", "acme 2")
		takes(t.Context(), "acme", "acme 3")
		takes(t.Context(), "globex", "globex 1")
		takes(t.Context(), "globex", "globex 2")
		wanted("each of them waits for its own organization", false)
		takes(t.Context(), "initech", "initech 1")
		wanted("initech waits for one of the others", true)
		harness.Same(t, "one of each organization, and two in all", []string{"acme 1", "globex 1"}, had)
		ended("initech waits behind those of the others, and comes first", "globex 1", "initech 1")
		ended("acme waits longer than globex", "initech 1", "globex 2")
		had = nil
		leave(errors.New("the client is gone"))
		synctest.Wait()
		harness.Same(t, "the one that is gone", []string{"acme 2: the client is gone"}, had)
		ended("the one that is gone gets no turn", "acme 1", "acme 3")
		ended("nobody waits", "globex 2")
		ended("nobody waits", "acme 3")
		harness.Same(t, "free, busy and waiting", [3]int{2, 0, 0}, [3]int{turns.free, len(turns.busy), len(turns.waiting)})
	})
}
