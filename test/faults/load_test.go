package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The load, which ends with its phase. The pauses keep it well below the service's capacity, so
// that the fault is measured and not overload.
const (
	restCallers    = 4
	kubectlWriters = 2
	restPause      = 80 * time.Millisecond
	kubectlPause   = 150 * time.Millisecond
	walkPause      = 100 * time.Millisecond
	importPause    = 2 * time.Second
	walkSize       = 7
	importTimeout  = 2 * time.Minute
)

// userStatuses are written in turn.
var userStatuses = []v1alpha1.UserStatus{v1alpha1.UserStatusMuted, v1alpha1.UserStatusActive, v1alpha1.UserStatusOpen}

// load runs until it is ended.
type load struct {
	s       *trial
	end     context.CancelFunc
	working sync.WaitGroup
}

// work starts the load of a phase.
func (s *trial) work(phase int) *load {
	ctx, end := context.WithCancel(s.t.Context())
	l := &load{s: s, end: end}
	for i := range restCallers {
		l.working.Go(func() { s.callREST(ctx, i, fmt.Sprintf("p%dc%d", phase, i)) })
	}
	for i := range kubectlWriters {
		l.working.Go(func() { s.patchByKubectl(ctx, i, phase) })
	}
	l.working.Go(func() { s.decideByHand(ctx) })
	l.working.Go(func() { s.operate(ctx, phase) })
	l.working.Go(func() { s.changePolicy(ctx) })
	l.working.Go(func() { s.readKubectls(ctx) })
	l.working.Go(func() { s.walk(ctx) })
	l.working.Go(func() { s.importAlternately(ctx) })
	return l
}

// stop ends the load once requests in flight are answered.
func (l *load) stop() {
	l.end()
	l.working.Wait()
}

// callREST writes and reads the findings that only REST writes; several callers share each finding.
func (s *trial) callREST(ctx context.Context, caller int, name string) {
	ids := s.staged[byREST]
	for n := 1; harness.Pause(ctx, restPause); n++ {
		id := ids[rand.IntN(len(ids))] //nolint:gosec // no secret
		if rand.IntN(10) < 4 {         //nolint:gosec // no secret
			s.readREST(caller, id)
		} else {
			s.writeREST(caller, id, fmt.Sprintf("%s-%d", name, n), userStatuses[n%len(userStatuses)])
		}
	}
}

// writeREST reports whether the write was acknowledged.
func (s *trial) writeREST(caller int, id, value string, status v1alpha1.UserStatus) bool {
	uptime := s.monitor.uptime()
	op := operation{id: id, Operation: porcupine.Operation{ClientId: caller, Input: step{write: value}, Call: s.journal.now()}}
	code, got, err := s.rest.call(context.WithoutCancel(s.t.Context()), http.MethodPatch, "/v2/findings/"+id,
		map[string]string{"user_status": string(status), "comments": value})
	op.Return = s.journal.now()
	op.unknown = err != nil || code != http.StatusOK
	s.journal.wrote(write{id: id, value: value, door: "REST", acknowledged: !op.unknown})
	s.journal.did(op)
	switch {
	case err != nil:
		s.checkNoAnswer(uptime, "PATCH", err)
	case code != http.StatusOK:
		s.checkRefusal(code, got)
	default:
		if shown, err := got.item(); err != nil || shown.Comments != value {
			s.verdict.wrong("a PATCH of %s to %q was answered with %q: %v", id, value, shown.Comments, err)
		}
	}
	return !op.unknown
}

func (s *trial) readREST(caller int, id string) {
	op := operation{id: id, Operation: porcupine.Operation{ClientId: caller, Input: step{}, Call: s.journal.now()}}
	shown, ok := s.get(id)
	op.Output, op.Return = shown.Comments, s.journal.now()
	if ok {
		s.journal.did(op)
	}
}

// get reads a finding over REST, and reports whether it was shown.
func (s *trial) get(id string) (item, bool) {
	uptime := s.monitor.uptime()
	code, got, err := s.rest.call(context.WithoutCancel(s.t.Context()), http.MethodGet, findingPath(id), nil)
	switch {
	case err != nil:
		s.checkNoAnswer(uptime, "GET", err)
		return item{}, false
	case code != http.StatusOK:
		s.checkRefusal(code, got)
		return item{}, false
	}
	shown, err := got.item()
	if err != nil {
		s.verdict.wrong("GET %s answered %q: %v", id, got.body, err)
	}
	return shown, err == nil
}

// checkNoAnswer allows a missing answer only if the facade was down during the request.
func (s *trial) checkNoAnswer(before int, method string, err error) {
	if after := s.monitor.uptime(); before == after && before%2 == 1 {
		s.verdict.wrong("a %s was not answered though the facade runs: %v", method, err)
	}
}

// checkRefusal allows only the status 500, and only these reasons.
func (s *trial) checkRefusal(code int, got answer) {
	detail := got.detail()
	if code == http.StatusInternalServerError &&
		(strings.HasSuffix(detail, "; try again") || detail == "authorization data is stale") {
		s.journal.count("refusals that say what to do")
		return
	}
	s.verdict.wrong("a request was answered with %d %q", code, detail)
}

// numbersOfPhase is how many numbers a phase has for its kubectl writes: an attempted number is not
// reused.
const numbersOfPhase = 100_000

// patchByKubectl writes increasing numbers to the writer's own findings, as kubectl patches.
func (s *trial) patchByKubectl(ctx context.Context, writer, phase int) {
	ids := s.staged[byKubectl]
	number := phase * numbersOfPhase
	for n := writer; harness.Pause(ctx, kubectlPause); n += kubectlWriters {
		number++
		s.patchOnce(ids[n%len(ids)], number)
	}
}

// patchOnce reports whether the patch was acknowledged.
func (s *trial) patchOnce(id string, value int) bool {
	text := strconv.Itoa(value)
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"triage": map[string]any{
		"userStatus": userStatuses[value%len(userStatuses)], "comments": text,
	}}})
	if err != nil {
		panic(err) // values of ours always encode
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), requestTimeout)
	defer cancel()
	finding := &v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id}}
	err = s.Client.Patch(ctx, finding, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-patch"))
	s.journal.wrote(write{id: id, value: text, door: "kubectl", acknowledged: err == nil})
	return err == nil
}

// readKubectls reads the findings that kubectl writes over REST: their numbers must never decrease.
func (s *trial) readKubectls(ctx context.Context) {
	ids := s.staged[byKubectl]
	for n := 0; harness.Pause(ctx, restPause); n++ {
		id := ids[n%len(ids)]
		floor := s.journal.floor(id)
		if shown, ok := s.get(id); ok {
			s.checkNumber(shown, floor)
			s.journal.count("REST reads")
		}
	}
}

func (s *trial) checkNumber(shown item, floor int) {
	if shown.Comments == "" && floor == 0 {
		return
	}
	value, err := strconv.Atoi(shown.Comments)
	if err != nil {
		s.verdict.wrong("%s shows the comment %q, which nobody wrote", shown.ID, shown.Comments)
		return
	}
	s.journal.saw(shown.ID, floor, value)
}

// walk lists all findings repeatedly, page by page. No finding changes its position, so each walk
// shows each finding once, whatever else changes and whichever process is killed meanwhile.
func (s *trial) walk(ctx context.Context) {
	counted := map[string]bool{}
	for _, id := range s.staged[byKubectl] {
		counted[id] = true
	}
	for ctx.Err() == nil {
		seen := map[string]int{}
		cursor, more := "", true
		for more {
			if !harness.Pause(ctx, walkPause) {
				return
			}
			floors := map[string]int{}
			for id := range counted {
				floors[id] = s.journal.floor(id)
			}
			uptime := s.monitor.uptime()
			code, got, err := s.rest.call(context.WithoutCancel(ctx), http.MethodGet,
				fmt.Sprintf("/v2/findings?size=%d&cursor=%s", walkSize, url.QueryEscape(cursor)), nil)
			switch {
			case err != nil:
				s.checkNoAnswer(uptime, "GET of a list", err)
				continue
			case code != http.StatusOK:
				s.checkRefusal(code, got)
				continue
			}
			p, err := got.page()
			if err != nil {
				s.verdict.wrong("a list was answered with %.200q: %v", got.body, err)
				return
			}
			if p.Total != total() {
				s.verdict.lose("a list counts %d findings; there are %d", p.Total, total())
			}
			for _, shown := range p.Items {
				seen[shown.ID]++
				if counted[shown.ID] {
					s.checkNumber(shown, floors[shown.ID])
				}
			}
			cursor, more = p.NextCursor, p.HasMore
			s.journal.count("pages listed")
		}
		s.checkWalk(seen)
	}
}

func (s *trial) checkWalk(seen map[string]int) {
	for id, times := range seen {
		if times > 1 {
			s.verdict.double("a walk over the list shows %s %d times", id, times)
		}
	}
	if len(seen) != total() {
		s.verdict.lose("a walk over the list shows %d findings of %d", len(seen), total())
	}
}

// importAlternately imports the scan without and with its last results, so that findings close and
// reopen. An import fails while the API server is down, and is then repeated.
func (s *trial) importAlternately(ctx context.Context) {
	for n := 0; harness.Pause(ctx, importPause); n++ {
		scan := []string{s.part, s.whole}[n%2]
		s.journal.imported(s.importScan(context.WithoutCancel(ctx), scan))
	}
}

// importScan runs the importer as people do.
func (s *trial) importScan(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(s.binaries, "kubectl-findings"), "import", path, //nolint:gosec // the project's own binary
		"--kubeconfig="+s.Kubeconfig, "--namespace="+namespace, "--repository="+repository, "--project="+project)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("import %s: %w\n%s", filepath.Base(path), err, out)
	}
	return nil
}

// writeScan writes a SARIF file that leaves out the last of the importer's findings, and returns its path.
func (s *trial) writeScan(name string, leaveOut int) string {
	s.t.Helper()
	var results []builder.Result
	for _, g := range []group{byREST, byKubectl, probed, byMany, byImporter} {
		count := members[g]
		if g == byImporter {
			count -= leaveOut
		}
		for i := range count {
			results = append(results, builder.Result{
				Rule: "R" + strconv.Itoa(i%5), Message: fmt.Sprintf("problem %d of %s", i, g),
				Path: fmt.Sprintf("src/%s-%02d.go", g, i), Line: i + 1,
			})
		}
	}
	path := filepath.Join(s.t.TempDir(), name+".sarif")
	s.must(os.WriteFile(path, []byte(builder.SARIF("lint", results...)), 0o600))
	return path
}
