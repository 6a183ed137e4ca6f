package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// afterFloods bounds the time until an organization's own flood is processed: hundreds of operations, one at a time.
const afterFloods = 3 * patience

const operationsPath = "/v2/triage-operations"

// shownOperation is a triage operation as the API shows it, without the members that differ between
// any two.
type shownOperation struct {
	ID                                              string
	Phase, Detail                                   string
	Matched, Changed, Unchanged, Conflicted, Failed int
	CreatedBy                                       string `json:"created_by"`
	CommittedBy                                     string `json:"committed_by"`
}

func decide(body string) shot {
	return shot{method: http.MethodPost, path: operationsPath, body: body}
}

// operation sends a request that creates an operation, and returns the finished operation.
func (o *tenant) operation(t *testing.T, s shot) shownOperation {
	t.Helper()
	a := target.facade.send(t, o.token, s)
	path := a.header.Get("Location") // also of one that has failed
	if path == "" {
		t.Fatalf("%s: %s", s, a)
	}
	var made shownOperation
	harness.Eventually(t, func(g Gomega) {
		a := target.facade.send(t, o.token, shot{method: http.MethodGet, path: path})
		g.Expect(json.Unmarshal(a.body, &made)).To(Succeed())
		g.Expect(made.Phase).To(BeElementOf("preview", "completed", "failed"))
	})
	return made
}

// An operation only affects its own organization's findings, whatever it names, and reveals nothing
// about others.
func TestIsolation_OperationsReachNobodyElse(t *testing.T) {
	const muted = `"set":{"user_status":"muted","comments":"attacked"},"commit":true}`
	pairs(t, func(t *testing.T, attacker, victim *tenant) {
		absent := victim.absent()
		for what, body := range map[string]string{
			"finding": `{"ids":["%s"],` + muted, "repository": `{"filters":{"repo_id":"%s"},` + muted,
			"project": `{"filters":{"project_id":"%s"},` + muted, "triage-operation": `{"undo":"%s","commit":true}`,
		} {
			foreign, none := fmt.Sprintf(body, victim.ids[what]), fmt.Sprintf(body, absent[what])
			allowed := []int{http.StatusCreated, http.StatusAccepted}
			if what == "triage-operation" {
				allowed = []int{http.StatusBadRequest} // there is none to undo
			}
			fire(t, attacker, victim, decide(foreign), allowed...)
			a, b := attacker.operation(t, decide(foreign)), attacker.operation(t, decide(none))
			a.ID, a.Detail = "", strings.ReplaceAll(a.Detail, victim.ids[what], absent[what])
			b.ID = ""
			attempt(t, isolation, a == b && a.Changed == 0, "%s: %+v, and of none: %+v", foreign, a, b)
		}
		victim.unharmed(t)
		forged := decide(`{"ids":["none"],` + muted).signedAs("apikey/" + victim.mark)
		made := attacker.operation(t, forged)
		want := "apikey/key-" + attacker.mark
		attempt(t, isolation, made.CreatedBy == want && made.CommittedBy == want, "signed by %q and %q, want %q", made.CreatedBy, made.CommittedBy, want)
	})
}

// An invalid operation, or one from a caller without the right, is refused with an explanation.
func TestInput_InvalidOperationsAreRefused(t *testing.T) {
	o := newOrganization(t, "refused-"+letters(6), plenty)
	const set = `"set":{"comments":"x"}`
	ids := func(n int) string { return `"ids":[` + strings.TrimSuffix(strings.Repeat(`"f",`, n), ",") + `]` }
	reader := o.key(t, "reader", v1alpha1.ScopeFindingsRead)
	scanner := o.key(t, "scanner", v1alpha1.ScopeFindingsImport, v1alpha1.ScopeFindingsRead)
	commit := shot{method: http.MethodPost, path: operationsPath + "/op-none/commit"}
	o.refuses(t, operationsPath, []refusal{
		{"a scanner's key", scanner, decide(`{"ids":["f"],` + set + `}`), http.StatusForbidden},
		{"a scanner's key that undoes", scanner, decide(`{"undo":"op-1","commit":true}`), http.StatusForbidden},
		{"a scanner's key that commits", scanner, commit, http.StatusForbidden},
		{"a reader's key that commits", reader, commit, http.StatusForbidden},
		{"no key", "", decide(`{"ids":["f"],` + set + `}`), http.StatusUnauthorized},
		{"a forged author", o.token, decide(`{"ids":["f"],"by":"ann",` + set + `}`), http.StatusBadRequest},
		{"a forged author of the commit", o.token, decide(`{"ids":["f"],"committed_by":"ann",` + set + `}`), http.StatusBadRequest},
		{"a forged author of the decision", o.token, decide(`{"ids":["f"],"set":{"comments":"x","by":"ann"}}`), http.StatusBadRequest},
		{"another organization in the body", o.token, decide(`{"ids":["f"],"organization":"x",` + set + `}`), http.StatusBadRequest},
		{"401 ids", o.token, decide(`{` + ids(401) + `,` + set + `}`), http.StatusBadRequest},
		{"50,001 ids", o.token, decide(`{` + ids(50_001) + `,` + set + `}`), http.StatusBadRequest},
		{"megabytes of ids", o.token, decide(`{` + ids(5<<20) + `,` + set + `}`), http.StatusBadRequest},
		{"megabytes of comments", o.token, decide(`{"ids":["f"],"set":{"comments":"` + strings.Repeat("x", 20<<20) + `"}}`), http.StatusBadRequest},
		{"comments that are too long", o.token, decide(`{"ids":["f"],"set":{"comments":"` + strings.Repeat("x", 10_001) + `"}}`), http.StatusBadRequest},
		{"an object without an end", o.token, decide(strings.Repeat(`{"filters":`, 20_000)), http.StatusBadRequest},
		{"an id of another shape", o.token, decide(`{"ids":["../../org-other/findings/f"],` + set + `}`), http.StatusBadRequest},
		{"a selector of the cluster", o.token, decide(`{"filters":{"labelSelector":"a=b"},` + set + `}`), http.StatusBadRequest},
	})
}

// refusal is a request that must be refused with that status.
type refusal struct {
	reason, token string
	shot          shot
	status        int
}

// refuses expects all to be refused in time with an explanation, and that nothing was made of them under the path.
func (o *tenant) refuses(t *testing.T, path string, all []refusal) {
	t.Helper()
	for _, c := range all {
		a := target.facade.send(t, c.token, c.shot)
		said := a.status == http.StatusUnauthorized || a.holds(`"detail":`)
		attempt(t, inputOf, a.status == c.status && said && a.took <= maxLate, "%s: after %s: %s", c.reason, a.took, a)
	}
	total := target.facade.send(t, o.token, shot{method: http.MethodGet, path: path}).page(t).Total
	attempt(t, inputOf, total == 0, "%d of %s were made", total, path)
}

// flood returns how many operations are created concurrently, and the total number.
func flood() (atATime, n int) {
	if full {
		return 16, 220 // more than an organization may keep
	}
	return 8, 24
}

// An organization that creates operations continuously does not delay those of others.
func TestInput_FloodsOfOperationsDelayNobodyElse(t *testing.T) {
	other := newNeighbour(t, inputOf)
	o := newOrganization(t, "flood-"+letters(6), plenty)
	o.nameAll()
	target.env.Create(t, o.repository(), o.project(), o.finding(0))
	other.worksDuring(t, func() {
		var clients sync.WaitGroup
		defer clients.Wait()
		atATime, n := flood()
		slots := make(chan struct{}, atATime)
		for i := range n {
			slots <- struct{}{}
			clients.Go(func() {
				defer func() { <-slots }()
				body := fmt.Sprintf(`{"filters":{"text":"title"},"set":{"comments":"%d"},"commit":true}`, i)
				a, err := target.facade.try(t, o.token, decide(body))
				answers := []int{http.StatusCreated, http.StatusAccepted}
				if n > triageoperation.MaxOperations {
					answers = append(answers, http.StatusConflict) // it has failed
				}
				attempt(t, inputOf, err == nil && slices.Contains(answers, a.status), "operation %d: %v %s", i, err, a)
			})
			if i == n/2 {
				clients.Go(func() { other.operates(t) })
			}
		}
	})
	o.keepsSoMany(t)
	harness.Must(t, target.env.Client.DeleteAllOf(t.Context(), &v1alpha1.TriageOperation{}, client.InNamespace(o.namespace)))
}

// operates expects that the neighbour's own operation completes while others flood the service.
func (b *neighbour) operates(t *testing.T) {
	t.Helper()
	a, err := target.facade.try(t, b.token, decide(`{"filters":{"repo_id":"`+b.ids["repository"]+`"},"set":{"user_status":"active"}}`))
	if err != nil {
		attempt(t, b.class, false, "an operation: %v", err)
		return
	}
	var made shownOperation
	attempt(t, b.class, a.status == http.StatusCreated && json.Unmarshal(a.body, &made) == nil && a.took <= maxLate,
		"a preview, after %s: %s", a.took, a)
	start := time.Now()
	one := operationsPath + "/" + made.ID
	a, err = target.facade.try(t, b.token, shot{method: http.MethodPost, path: one + "/commit"})
	attempt(t, b.class, err == nil && (a.status == http.StatusOK || a.status == http.StatusAccepted), "its commit: %v %s", err, a)
	err = wait.PollUntilContextTimeout(t.Context(), interval, patience, true, func(context.Context) (bool, error) {
		a, err = target.facade.try(t, b.token, shot{method: http.MethodGet, path: one})
		return err == nil && a.holds(`"completed"`), err
	})
	attempt(t, b.class, err == nil, "its commit: %v %s", err, a)
	t.Logf("another organization's operation is completed after %s", time.Since(start))
}

// keepsSoMany expects operations beyond the limit to be refused with a helpful message, and the
// lists to be in order.
func (o *tenant) keepsSoMany(t *testing.T) {
	t.Helper()
	_, n := flood()
	var all struct{ Items []shownOperation }
	var a *answer
	harness.Within(t, afterFloods, func(g Gomega) {
		a = target.facade.send(t, o.token, shot{method: http.MethodGet, path: operationsPath + "?size=1000"})
		g.Expect(json.Unmarshal(a.body, &all)).To(Succeed())
		g.Expect(all.Items).To(HaveLen(n))
		g.Expect(all.Items).To(HaveEach(HaveField("Phase", BeElementOf("completed", "failed"))))
	})
	attempt(t, inputOf, a.took <= maxLate, "the list took %s", a.took)
	failed := 0
	for _, operation := range all.Items {
		if operation.Phase == "failed" {
			failed++
			attempt(t, inputOf, strings.Contains(operation.Detail, "delete some"), "a refused operation says %q", operation.Detail)
		}
	}
	attempt(t, inputOf, failed == max(0, n-triageoperation.MaxOperations), "of %d operations %d were refused", n, failed)
}
