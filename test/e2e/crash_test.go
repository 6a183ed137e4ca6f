package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

const (
	kills   = 10
	writers = 4
)

// The controllers and the facade are killed ten times, at points that depend on the progress of the
// work, while people triage over REST and a scanner imports. Afterwards every acknowledged triage
// is stored, or a later one of the same writer; no finding exists twice, and no transition is
// recorded twice or omitted.
func TestKillsLoseNothingAcknowledgedAndDoubleNothing(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	rest := newRESTClient(r)
	namespace := r.env["FINDINGS_NAMESPACE"]
	// Far more requests per minute than a person sends.
	r.kubectl(t, "patch", "apikey", "sample", "--namespace", namespace, "--type=merge",
		"--patch", `{"spec":{"rateLimit":{"requestsPerMinute":1000000}}}`)
	ids := identities(rest.list(t, "/v1/findings", 1000))

	work, endWork := context.WithCancel(t.Context())
	defer endWork()
	j := newJournal()
	var busy sync.WaitGroup
	for i := range writers {
		busy.Go(func() { triage(work, rest, j, share(ids, i)) })
	}
	busy.Go(func() { r.importAlternately(work, t, j) })

	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, seed))
	t.Logf("seed of the moments: %d", seed)
	for i := range kills {
		j.waitForMore(t, 5+random.IntN(40))
		name := []string{"controller", "apiserver"}[i%2]
		pid := r.pid(t, name)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("kill %s: %v", name, err)
		}
		eventually(t, name+" is started again", func() bool { return r.pid(t, name) != pid })
	}
	j.waitForMore(t, 20)
	j.waitForImports(t, 2)
	endWork()
	busy.Wait()
	t.Logf("%d triages acknowledged and %d imports done over %d kills", j.acknowledgedCount(), j.importCount(), kills)

	// The last import restored the findings that the previous one closed.
	if _, err := r.importReport(t.Context(), r.path("gosec.sarif")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the controllers have seen every finding", func() bool { return settled(r.findings(t)) })
	findings := r.findings(t)
	checkNothingDoubled(t, findings, ids)
	checkNothingLost(t, findings, j)
	checkDoorsAgree(t, findings, rest)
	checkKilledUpload(t, r, rest)
	checkKilledReview(t, r, rest)

	pids := r.pids(t)
	r.kill()
	r.checkGone(t, pids)
}

// journal records what the writers tried and what was acknowledged, by finding.
type journal struct {
	mutex        sync.Mutex
	acknowledged map[string]int
	attempted    map[string]int
	count        int
	imports      int
}

func newJournal() *journal {
	return &journal{acknowledged: map[string]int{}, attempted: map[string]int{}}
}

// next returns the number of the next attempt on a finding.
func (j *journal) next(id string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.attempted[id]++
	return j.attempted[id]
}

func (j *journal) acknowledge(id string, attempt int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.acknowledged[id] = attempt
	j.count++
}

func (j *journal) imported() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.imports++
}

func (j *journal) acknowledgedCount() int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.count
}

func (j *journal) importCount() int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.imports
}

func (j *journal) waitForMore(t *testing.T, more int) {
	t.Helper()
	target := j.acknowledgedCount() + more
	eventually(t, "more triages are acknowledged", func() bool { return j.acknowledgedCount() >= target })
}

func (j *journal) waitForImports(t *testing.T, count int) {
	t.Helper()
	eventually(t, "imports are done", func() bool { return j.importCount() >= count })
}

// share returns every writers-th id: each finding has one writer, so its latest write is known.
func share(ids []string, writer int) []string {
	var own []string
	for i := writer; i < len(ids); i += writers {
		own = append(own, ids[i])
	}
	return own
}

// triage writes to its findings in turn until the context ends. The comment contains the number of
// the attempt. Unanswered attempts are not repeated: their numbers are skipped.
func triage(ctx context.Context, rest *restClient, j *journal, ids []string) {
	states := []string{"muted", "active", "open"}
	for i := 0; ctx.Err() == nil; i++ {
		id := ids[i%len(ids)]
		attempt := j.next(id)
		status, _, err := rest.call(context.WithoutCancel(ctx), http.MethodPatch, "/v2/findings/"+id, map[string]string{
			"user_status": states[attempt%len(states)], "comments": strconv.Itoa(attempt),
		})
		if err == nil && status == http.StatusOK {
			j.acknowledge(id, attempt)
			continue
		}
		// Leave processor time for restarting the facade.
		select {
		case <-ctx.Done():
		case <-time.After(checkInterval):
		}
	}
}

// importAlternately imports the scan without and with its last results until the context ends, so
// that findings close and reopen continuously.
func (r *run) importAlternately(ctx context.Context, t *testing.T, j *journal) {
	whole := r.path("gosec.sarif")
	part := writeShortened(t, whole)
	for i := 0; ctx.Err() == nil; i++ {
		// An import depends only on the API server: no kill may make it fail.
		if _, err := r.importReport(context.WithoutCancel(ctx), []string{part, whole}[i%2]); err != nil {
			t.Error(err)
			return
		}
		j.imported()
	}
}

func (r *run) importReport(ctx context.Context, report string) (string, error) {
	return r.command(ctx, r.importer(), "import", report,
		"--kubeconfig="+r.path("kubeconfigs", "scanner"), "--namespace="+r.env["FINDINGS_NAMESPACE"],
		"--repository=vulnerable-service", "--project=vulnerable-service")
}

// findings reads all Findings with kubectl.
func (r *run) findings(t *testing.T) []v1alpha1.Finding {
	t.Helper()
	var list v1alpha1.FindingList
	out := r.kubectl(t, "get", "findings", "--namespace", r.env["FINDINGS_NAMESPACE"], "--output=json", "--show-managed-fields")
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("kubectl printed no list: %v", err)
	}
	return list.Items
}

func settled(findings []v1alpha1.Finding) bool {
	return !slices.ContainsFunc(findings, func(f v1alpha1.Finding) bool { return !findingstate.IsRecorded(&f) })
}

func checkNothingDoubled(t *testing.T, findings []v1alpha1.Finding, ids []string) {
	t.Helper()
	names := map[string]bool{}
	places := map[string]string{}
	for i := range findings {
		f := &findings[i]
		names[f.Name] = true
		place := fmt.Sprintf("%s %s:%d %s %v", f.Spec.RuleID, f.Spec.Details.Location.FilePath,
			f.Spec.Details.Location.LineNumber, f.Spec.Details.Title, f.Spec.Fingerprints)
		if other, taken := places[place]; taken {
			t.Errorf("%s and %s are one finding: %s", other, f.Name, place)
		}
		places[place] = f.Name
		if f.Spec.Closed != nil {
			t.Errorf("%s is closed, and the last import reports it", f.Name)
		}
		checkTransitions(t, f)
	}
	if want := slices.Sorted(slices.Values(ids)); !slices.Equal(want, slices.Sorted(maps.Keys(names))) {
		t.Errorf("there are %d findings after the kills, and %d before", len(names), len(ids))
	}
}

// checkTransitions fails the test if a number occurs twice or is missing.
func checkTransitions(t *testing.T, f *v1alpha1.Finding) {
	t.Helper()
	for i := 1; i < len(f.Status.Transitions); i++ {
		if before, at := f.Status.Transitions[i-1].Seq, f.Status.Transitions[i].Seq; at != before+1 {
			t.Errorf("%s records transition %d after %d", f.Name, at, before)
		}
	}
}

func checkNothingLost(t *testing.T, findings []v1alpha1.Finding, j *journal) {
	t.Helper()
	for i := range findings {
		f := &findings[i]
		acknowledged := j.acknowledged[f.Name]
		if acknowledged == 0 {
			continue
		}
		got, err := strconv.Atoi(f.Spec.Triage.Comments)
		if err != nil || got < acknowledged || got > j.attempted[f.Name] {
			t.Errorf("%s holds triage %q; %d was acknowledged and %d the last tried",
				f.Name, f.Spec.Triage.Comments, acknowledged, j.attempted[f.Name])
		}
	}
}

func checkDoorsAgree(t *testing.T, findings []v1alpha1.Finding, rest *restClient) {
	t.Helper()
	want := map[string]string{}
	for i := range findings {
		f := &findings[i]
		want[f.Name] = strings.Join([]string{string(f.Status.State), string(f.Spec.Triage.UserStatus), f.Spec.Triage.Comments}, " ")
	}
	eventually(t, "REST shows what kubectl shows", func() bool {
		got := map[string]string{}
		for _, f := range rest.list(t, "/v2/findings", 1000) {
			got[f.text("id")] = strings.Join([]string{f.text("status"), f.text("user_status"), f.text("comments")}, " ")
		}
		return maps.Equal(want, got)
	})
}
