package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	uploadsOrganization = "uploads"
	uploadsNamespace    = v1alpha1.NamespacePrefix + uploadsOrganization

	// keptResults are in each file, and people decide about them; droppedResults are only in the first.
	keptResults, droppedResults = 12, 3
	// diesWithin is how soon an interrupted scan becomes Failed.
	diesWithin = time.Minute
	// decisionPause is the pause between two decisions.
	decisionPause = 50 * time.Millisecond
	// auditPause is the pause between two reads of the history.
	auditPause = 100 * time.Millisecond

	// The memory that a facade may use: for the process itself, for each finding in its read model, and a
	// multiple of the bytes of decompressed SARIF that it may process concurrently.
	idleBytes, findingBytes, unfoldedBytes, timesUnfolded = 192 << 20, 16 << 10, 128 << 20, 4
)

// uploadsPlan sets the number of concurrent uploads: one per project.
type uploadsPlan struct {
	organizations, projects, results int
	// silence is how long the network of one facade drops all traffic; with 0 its connections are
	// cut.
	silence time.Duration
}

// uploadsTrial runs uploads over two facades, one of which is killed and the other disconnected.
type uploadsTrial struct {
	*trial
	plan    uploadsPlan
	audit   *uploadsAudit
	facades []*rig.Replica
	targets []*uploadTarget

	mutex    sync.Mutex
	complete map[string]string // the complete upload according to its client, by project
	// decisions are the acknowledged decisions, by finding.
	decisions map[string]int
	// waited, unanswered, refused and failed count the attempts that did not complete.
	waited, unanswered, refused, failed int
	peak                                float64
}

// uploadTarget is a project with its uploader.
type uploadTarget struct {
	index                       int
	namespace, project, token   string
	firstContent, secondContent string
}

func (u *uploadTarget) key() string { return u.namespace + "/" + u.project }

// uploads uploads files over two facades, kills one and disconnects the other in the middle, and checks
// the result.
func (s *trial) uploads(plan uploadsPlan) {
	s.t.Helper()
	u := &uploadsTrial{
		trial: s, plan: plan, audit: newUploadsAudit(s.verdict, plan.results),
		complete: map[string]string{}, decisions: map[string]int{},
	}
	second, err := s.NewFacade(s.t.Context(), "facade-of-uploads")
	s.must(err)
	defer func() {
		second.Kill()
		second.Door.Close()
	}()
	u.facades = []*rig.Replica{s.Facade, second}
	for i := range plan.organizations {
		u.prepare(i)
	}
	for _, target := range u.targets {
		u.bring(s.t.Context(), target, firstCommit)
	}
	u.complete = map[string]string{}
	s.must(u.read(s.t.Context()))

	ctx, end := context.WithCancel(s.t.Context())
	defer end()
	var around, clients sync.WaitGroup
	around.Go(func() { u.follow(ctx) })
	around.Go(func() { u.decide(ctx) })
	begun := time.Now()
	for _, target := range u.targets {
		clients.Go(func() { u.bring(ctx, target, secondCommit) })
	}
	u.disturb()
	clients.Wait()
	took := time.Since(begun)
	s.eventually("no scan is under way", func(context.Context) error {
		if left := u.audit.underWay(); len(left) > 0 {
			return fmt.Errorf("%v are", left)
		}
		return nil
	})
	end()
	around.Wait()
	u.judge(took)
}

// prepare creates an organization whose key may import into several projects.
func (u *uploadsTrial) prepare(index int) {
	u.t.Helper()
	name := uploadsOrganization + "-" + strconv.Itoa(index)
	namespace := v1alpha1.NamespacePrefix + name
	u.must(u.Client.Create(u.t.Context(), builder.Organization(name).RequestsPerMinute(unlimited).Build()))
	u.eventually("uploads may write in "+namespace, func(ctx context.Context) error {
		bindings := &rbacv1.RoleBindingList{}
		if err := u.Client.List(ctx, bindings, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, binding := range bindings.Items {
			if slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Name == v1alpha1.UploadsServiceAccount }) {
				return nil
			}
		}
		return errors.New("no RoleBinding names them")
	})
	token := u.newKeyIn(namespace, "ci", v1alpha1.ScopeFindingsImport, v1alpha1.ScopeFindingsRead, v1alpha1.ScopeReposRead)
	u.must(u.Client.Create(u.t.Context(), builder.Repository(repository).In(namespace).Build()))
	for i := range u.plan.projects {
		target := &uploadTarget{
			index: len(u.targets), namespace: namespace, project: "p-" + strconv.Itoa(i), token: token,
			firstContent: sarifOf(firstCommit, u.plan.results), secondContent: sarifOf(secondCommit, u.plan.results),
		}
		u.targets = append(u.targets, target)
		u.must(u.Client.Create(u.t.Context(), builder.Project(target.project).In(namespace).Repository(repository).Build()))
		for _, facade := range u.facades {
			u.eventually("the facade knows "+target.key(), func(ctx context.Context) error {
				code, _, err := u.client(target, facade).call(ctx, http.MethodGet, target.path(), nil)
				if err != nil || code != http.StatusOK {
					return fmt.Errorf("it answers %d: %w", code, err)
				}
				return nil
			})
		}
	}
}

func (u *uploadTarget) path() string { return "/v2/repos/" + repository + "/projects/" + u.project }

func (u *uploadsTrial) client(target *uploadTarget, facade *rig.Replica) *restClient {
	return &restClient{base: "http://" + facade.Address, token: target.token, http: probes}
}

// sarifOf returns the file of a commit.
func sarifOf(commit string, results int) string {
	var list []builder.Result
	for path := range expected(commit, results) {
		// The code differs between results: identical ones could be matched with each other as moved.
		list = append(list, builder.Result{
			Rule: "R1", Message: "Something is wrong here, which is told at some length.",
			Path: path, Line: 7, Snippet: "read('" + path + "')",
		})
	}
	return builder.SARIF("lint", list...)
}

// bring uploads the file of the commit until an upload completes, as a patient client does.
func (u *uploadsTrial) bring(ctx context.Context, target *uploadTarget, commit string) {
	content := target.secondContent
	if commit == firstCommit {
		content = target.firstContent
	}
	for attempt := 0; ; attempt++ {
		via := u.client(target, u.facades[(target.index+attempt)%len(u.facades)])
		code, got, err := via.send(ctx, http.MethodPost, target.path()+"/scans?commit="+commit, "application/sarif+json", strings.NewReader(content))
		again := time.Second
		switch {
		case err != nil:
			u.count(&u.unanswered)
		case code == http.StatusOK, code == http.StatusAccepted:
			if u.completed(ctx, target, got) {
				return
			}
			u.count(&u.failed)
		case code == http.StatusTooManyRequests:
			u.count(&u.waited)
			seconds, invalid := strconv.Atoi(got.header.Get("Retry-After"))
			if invalid != nil || seconds < 1 {
				u.verdict.wrong("an upload is told to wait for %q seconds", got.header.Get("Retry-After"))
			}
			again = time.Duration(seconds) * time.Second
		default:
			u.count(&u.refused)
			u.checkRefusal(code, got)
		}
		if !harness.Pause(ctx, again) {
			return
		}
	}
}

func (u *uploadsTrial) count(what *int) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	*what++
}

// completed follows an accepted upload to its end, asking both facades in turn, and reports whether it is complete.
func (u *uploadsTrial) completed(ctx context.Context, target *uploadTarget, got answer) bool {
	for n := 0; ; n++ {
		var upload struct{ ID, Status string }
		if err := json.Unmarshal(got.body, &upload); err != nil {
			u.verdict.wrong("an upload is answered with %.200q: %v", got.body, err)
			return false
		}
		switch upload.Status {
		case "completed":
			u.mutex.Lock()
			u.complete[target.key()] = upload.ID
			u.mutex.Unlock()
			return true
		case "failed":
			return false
		}
		for code := 0; code != http.StatusOK; n++ {
			if !harness.Pause(ctx, time.Second) {
				return false
			}
			var err error
			if code, got, err = u.client(target, u.facades[n%len(u.facades)]).call(ctx, http.MethodGet, "/v2/uploads/"+upload.ID, nil); err == nil &&
				code != http.StatusOK {
				u.checkRefusal(code, got)
			}
		}
	}
}

// disturb kills the first facade, and then disconnects the other, each in the middle of an upload.
func (u *uploadsTrial) disturb() {
	u.t.Helper()
	if !u.awaitMiddle(0) {
		u.verdict.wrong("no upload was in the middle when the facade was killed")
	}
	before := u.audit.underWay()
	killed := time.Now()
	u.killFacade()
	u.t.Logf("one facade is killed while %d scans are under way", len(before))
	if u.awaitMiddle(1) {
		u.verdict.injected(1)
	} else { // the killed facade restarted slowly: the uploads may all be done by then
		u.t.Log("no upload was in the middle when the other facade was disconnected")
	}
	if u.plan.silence == 0 {
		u.must(u.facades[1].Door.Cut())
		u.checkEnds(before, killed)
		return
	}
	silenced := u.audit.underWay()
	begun := time.Now()
	u.must(u.facades[1].Door.BlackHole())
	harness.Pause(u.t.Context(), u.plan.silence)
	u.must(u.facades[1].Door.Heal(u.t.Context()))
	u.checkEnds(before, killed)
	u.checkEnds(silenced, begun)
}

// awaitMiddle waits until an upload that began at the facade has begun to write but is not finished. It returns false
// if all are done instead.
func (u *uploadsTrial) awaitMiddle(facade int) (found bool) {
	u.t.Helper()
	u.within("an upload is in the middle", func(context.Context) error {
		done := 0
		for _, target := range u.targets {
			added := u.audit.added(target.key())
			if target.index%len(u.facades) == facade && added > u.plan.results/4 && added < u.plan.results {
				found = true
				return nil
			}
			if added == u.plan.results {
				done++
			}
		}
		if done == len(u.targets) {
			return nil
		}
		return errors.New("none is")
	})
	return found
}

// within is eventually for waits that depend on imports: it allows for the rate at which a slow machine
// writes findings.
func (u *uploadsTrial) within(what string, check func(context.Context) error) {
	u.t.Helper()
	const findingsPerSecond = 50
	patience := settleTimeout + time.Duration(len(u.targets)*u.plan.results/findingsPerSecond)*time.Second
	u.must(harness.UntilWithin(u.t.Context(), patience, what, check))
}

// checkEnds waits until each of the scans has ended or been declared dead, and fails if a scan takes longer than
// allowed.
func (u *uploadsTrial) checkEnds(scans []string, since time.Time) {
	u.t.Helper()
	u.within("every scan that was disturbed has an end", func(context.Context) error {
		u.audit.mutex.Lock()
		defer u.audit.mutex.Unlock()
		var dead int
		var took time.Duration
		for _, key := range scans {
			scan := u.audit.scans[key]
			if scan.outcome == "" && !scan.gaveUp {
				return fmt.Errorf("%s has none", key)
			}
			if scan.outcome == "" {
				dead++
				took = max(took, scan.gaveUpAt.Sub(since))
			}
		}
		if took > diesWithin+noiseOfUploads {
			u.verdict.wrong("it took %s until all of %d imports that died were Failed; promised is %s", short(took), dead, diesWithin)
		}
		return nil
	})
}

// noiseOfUploads is the delay that a busy machine may add.
const noiseOfUploads = 30 * time.Second

// follow reads the history while it grows, and records the memory of the facades.
func (u *uploadsTrial) follow(ctx context.Context) {
	for harness.Pause(ctx, auditPause) {
		if err := u.read(ctx); err != nil && ctx.Err() == nil {
			u.verdict.wrong("read the history of uploads: %v", err)
			return
		}
		for _, facade := range u.facades {
			u.weigh(ctx, facade)
		}
	}
}

func (u *uploadsTrial) read(ctx context.Context) error {
	upTo, err := u.History(ctx, u.audit.revision, u.audit.take)
	u.audit.revision = upTo
	return err
}

// weigh records the memory of a facade, if it runs.
func (u *uploadsTrial) weigh(ctx context.Context, facade *rig.Replica) {
	if bytes, err := metric(ctx, facade, "process_resident_memory_bytes"); err == nil {
		u.mutex.Lock()
		u.peak = max(u.peak, bytes)
		u.mutex.Unlock()
	}
}

// decide repeatedly makes decisions, as people do with kubectl, about the findings that every file
// contains.
func (u *uploadsTrial) decide(ctx context.Context) {
	var keys []client.ObjectKey
	u.audit.mutex.Lock()
	for key, f := range u.audit.findings {
		if strings.HasPrefix(f.path, keptPrefix) {
			namespace, name, _ := strings.Cut(key, "/")
			keys = append(keys, client.ObjectKey{Namespace: namespace, Name: name})
		}
	}
	u.audit.mutex.Unlock()
	for n := 1; harness.Pause(ctx, decisionPause); n++ {
		key := keys[n%len(keys)]
		patch := fmt.Sprintf(`{"spec":{"triage":{"userStatus":%q,"comments":"%d"}}}`, userStatuses[n%len(userStatuses)], n)
		finding := &v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		err := u.Client.Patch(attempt, finding, testenv.MergePatch(patch), client.FieldOwner("kubectl-patch"))
		cancel()
		if err != nil {
			u.verdict.wrong("a decision was refused: %v", err)
			return
		}
		u.decisions[key.String()] = n
	}
}

// judge compares the answers with the stored state.
func (u *uploadsTrial) judge(took time.Duration) {
	u.t.Helper()
	u.must(u.read(u.t.Context()))
	if len(u.complete) != len(u.targets) {
		u.verdict.lose("%d of %d uploads were completed", len(u.complete), len(u.targets))
	}
	u.audit.check(u.complete, u.decisions)
	findings := len(u.targets) * (keptResults + droppedResults + u.plan.results)
	sent := len(u.targets) * len(u.targets[0].secondContent)
	allowed := float64(idleBytes + findingBytes*findings + min(unfoldedBytes, sent)*timesUnfolded)
	if u.peak > allowed || u.peak == 0 {
		u.verdict.wrong("a facade took %.0f MiB; with %d findings it may take %.0f", u.peak/(1<<20), findings, allowed/(1<<20))
	}
	succeeded, failed, dead := u.audit.ended()
	u.t.Logf("%d uploads of %d results in %s: scans %d completed, %d failed, %d died; attempts told to wait %d, without an answer %d, "+
		"answered with 500 %d, failed after 202 %d; %d decisions; a facade took at most %.0f MiB of the %.0f it may",
		len(u.targets), u.plan.results, short(took), succeeded, failed, dead, u.waited, u.unanswered, u.refused, u.failed,
		len(u.decisions), u.peak/(1<<20), allowed/(1<<20))
}
