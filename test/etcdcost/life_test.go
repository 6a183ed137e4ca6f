package etcdcost

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// Writes of a finding, as the API server counts them.
var (
	byScanner  = request{"findings", "APPLY"}
	byPerson   = request{"findings", "PATCH"}
	byOperator = request{"findings/status", "PATCH"}
	// nobody means that no writer is expected.
	nobody = request{}
)

// life is the life of the findings of an organization.
type life struct {
	*testing.T
	n         int
	namespace string
	// most is how often the operator may write a finding in a step in which its caller has written
	// it.
	most int
	// subscribed is set once an endpoint gets all events of findings.
	subscribed bool
	// unattended is set while no controllers run.
	unattended bool
	// scanner imports and person triages, each with the rights of its role.
	scanner, person *importer.Client
	rest            *apiclient.Client
	steps           []step
}

// step holds the counts of one step.
type step struct {
	name    string
	counted *counters
	took    time.Duration
}

// TestAStepOfAFindingsLifeIsOneWriteOfTheOperator takes findings through their life, once without
// and once with a subscribed endpoint, and counts the writes.
func TestAStepOfAFindingsLifeIsOneWriteOfTheOperator(t *testing.T) {
	controller, facade := operator(t)
	controller.Run(t)
	facade.Run(t)
	address := "http://" + facade.Address

	alone := newLife(t, "alone", address)
	alone.settle()
	harness.Must(t, controller.Stop()) // so that the importer's writes are counted separately from the controllers'
	alone.unattended = true
	alone.step("create: an import, no controllers yet", byScanner, func() { alone.imports("first", commitA, everything) })
	alone.unattended = false
	alone.step("the controllers start: what is as created needs no status", nobody, func() { harness.Must(t, controller.StartReady(t.Context())) })
	alone.goOn()
	alone.step("the controllers start again", nobody, func() {
		harness.Must(t, errors.Join(controller.Stop(), controller.StartReady(t.Context())))
	})

	notified := newLife(t, "heard", address)
	notified.subscribe()
	notified.most = 0 // the deliveries of the creation are its record
	notified.step("create: an import", byScanner, func() { notified.imports("first", commitA, everything) })
	notified.most = 2 // what has happened is stored before its deliveries are made
	notified.goOn()
	if *report != "" {
		harness.Must(t, writeReport(*report, alone, notified))
	}
}

// goOn runs the steps after the creation of the findings.
func (l *life) goOn() {
	l.Helper()
	l.step("rescan, the same results", nobody, func() { l.imports("first", commitA, everything) })
	described := "first"
	l.step("triage by REST", byPerson, func() { l.triageByREST("muted", "Only tests call it.") })
	if !l.subscribed || *report != "" { // steps that an endpoint does not affect
		l.step("triage by kubectl", byPerson, func() { l.triageByKubectl("active", "It is reachable after all.") })
		l.step("repeated without changes: a rescan at another commit, triage by REST and kubectl", nobody, func() {
			l.imports("first", commitB, everything)
			l.triageByREST("active", "It is reachable after all.")
			l.triageByKubectl("active", "It is reachable after all.")
		})
		described = "second"
		l.step("rescan, all described anew", byScanner, func() { l.imports(described, commitB, everything) })
	}
	l.step("rescan, all gone: closed", byScanner, func() { l.imports(described, commitB, nothing) })
	l.step("rescan, all back: reopened", byScanner, func() { l.imports(described, commitB, everything) })
}

func newLife(t *testing.T, name, address string) *life {
	t.Helper()
	l := &life{T: t, n: *findings, most: 1}
	l.namespace = env.Reconciled(t, builder.Organization(name).RequestsPerMinute(1_000_000).Build())
	env.Create(t,
		builder.Repository("repo").In(l.namespace).URL("https://github.com/acme/repo").Build(),
		builder.Project("proj").In(l.namespace).Build())
	l.rest = &apiclient.Client{Base: address, Token: env.Key(t, builder.APIKey("team").In(l.namespace).Build())}
	harness.Eventually(t, func(g Gomega) {
		answer, err := l.rest.Do(t.Context(), http.MethodGet, "/v1/findings", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Status).To(Equal(http.StatusOK))
	})
	l.scanner, l.person = l.member("scanner", testenv.Scanner), l.member("person", testenv.Triager)
	return l
}

func (l *life) member(name string, role testenv.Role) *importer.Client {
	l.Helper()
	config, err := env.Member(l.Context(), l.namespace, name, role)
	harness.Must(l.T, err)
	c, err := importer.NewClient(config)
	harness.Must(l.T, err)
	return c
}

// subscribe has all events of findings sent to a receiver that accepts them.
func (l *life) subscribe() {
	l.Helper()
	receiver := harness.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	endpoint := builder.WebhookEndpoint("all").In(l.namespace).URL(receiver).Events("finding.*")
	testenv.CreateReady(l.T, env, endpoint.Build())
	l.subscribed = true
	l.settle()
}

// step runs do, waits until all resulting writes are done, and checks their number against the
// step's limits; the given writer writes each finding once.
func (l *life) step(name string, writer request, do func()) {
	l.Helper()
	before, err := read(l.Context())
	harness.Must(l.T, err)
	started := time.Now()
	do()
	after := l.settle()
	s := step{name: name, counted: after.since(before), took: time.Since(started)}
	l.steps = append(l.steps, s)
	l.Logf("%s, %s: %s", l.namespace, name, s.summary())
	l.judge(&s, writer)
}

// perScan is how often a step may write objects of a kind that is written per scan, not per
// finding. One more write is allowed per second of the step.
const perScan = 6

// judge fails the test if a step has cost more than it may.
func (l *life) judge(s *step, writer request) {
	l.Helper()
	n, most := l.n, l.most
	if writer == nobody {
		n, most = 0, 0
	}
	c := s.counted
	callers := written(c, byScanner) + written(c, byPerson)
	switch {
	case writer == nobody: // the callers may have sent requests that change nothing
	case written(c, writer) != n:
		l.Errorf("%s: %v of findings is granted %d times, want %d", s.name, writer, written(c, writer), n)
	case callers > n:
		l.Errorf("%s: the callers have written %d findings, want %d", s.name, callers, n)
	}
	if l.unattended {
		most = 0
	}
	if got := written(c, byOperator); got > most*n {
		l.Errorf("%s: the operator has written findings %d times, want %d at most", s.name, got, most*n)
	}
	if got := int(c.stored["findings"]); got > n+most*n {
		l.Errorf("%s: findings were stored %d times, want %d at most", s.name, got, n+most*n)
	}
	l.judgeDeliveries(s, n)
	for resource, got := range c.stored {
		switch resource {
		case "findings", "webhookdeliveries":
			continue
		}
		if limit := perScan + s.took.Seconds(); got > limit {
			l.Errorf("%s: %s were stored %.0f times, want %.0f at most: not one for each finding", s.name, resource, got, limit)
		}
	}
}

// judgeDeliveries expects one delivery per finding if an endpoint is subscribed. A delivery is
// stored when it is created, and before and after it is sent.
func (l *life) judgeDeliveries(s *step, n int) {
	l.Helper()
	if !l.subscribed {
		n = 0
	}
	made := written(s.counted, request{"webhookdeliveries", "POST"})
	harness.Same(l, s.name+": deliveries made", n, made)
	const stored = 3
	if got := int(s.counted.stored["webhookdeliveries"]); got > stored*n {
		l.Errorf("%s: deliveries were stored %d times, want %d at most", s.name, got, stored*n)
	}
}

// written returns how often that request was granted.
func written(c *counters, r request) int { return int(c.requests[r]) }

// summary lists all writes of a step.
func (s *step) summary() string {
	var out []string
	for r, n := range s.counted.requests {
		out = append(out, fmt.Sprintf("%s %s %.0f", r.verb, r.resource, n))
	}
	for resource, n := range s.counted.stored {
		out = append(out, fmt.Sprintf("stored %s %.0f", resource, n))
	}
	slices.Sort(out)
	return fmt.Sprintf("%v; etcd: %.0f puts, %.0f bytes, in use %+.0f; %s", out, s.counted.puts, s.counted.putBytes, s.counted.inUse, s.took)
}

// settle waits until every finding is recorded, and none of this project's objects has been written for a while. It
// returns the counters. It mostly looks into etcd, because the API server's metrics are megabytes. They are read when it
// is calm and when it is quiet, because only they count requests that change nothing.
func (l *life) settle() *counters {
	l.Helper()
	if !l.unattended {
		l.recorded()
	}
	var last stored
	var since time.Time
	var counted *counters
	NewWithT(l).Eventually(func(g Gomega) {
		now, err := readStored(l.Context())
		g.Expect(err).NotTo(HaveOccurred())
		if now != last || since.IsZero() {
			last, since, counted = now, time.Now(), nil
		}
		g.Expect(time.Since(since)).To(BeNumerically(">", calm), "time since the last write")
		if counted == nil {
			counted, err = read(l.Context())
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(time.Since(since)).To(BeNumerically(">", quiet), "time since the last write")
		before := counted
		counted, err = read(l.Context())
		g.Expect(err).NotTo(HaveOccurred())
		if !counted.sameWrites(before) {
			since = time.Now()
		}
		g.Expect(counted.requests).To(Equal(before.requests), "requests that change nothing are sent")
	}).WithContext(l.Context()).WithTimeout(harness.Patience).WithPolling(interval).Should(Succeed())
	return counted
}

// recorded waits until the controllers have recorded all changes of the findings, and have sent all
// deliveries.
func (l *life) recorded() {
	l.Helper()
	harness.Eventually(l.T, func(g Gomega) {
		list := testenv.List(l, g, env, &v1alpha1.FindingList{}, client.InNamespace(l.namespace))
		for i := range list.Items {
			f := &list.Items[i]
			g.Expect(findingstate.IsRecorded(f)).To(BeTrue())
			g.Expect(findingstate.History(&f.Status).Owed()).To(BeEmpty())
		}
	})
}

const (
	commitA = "1111111111111111111111111111111111111111"
	commitB = "2222222222222222222222222222222222222222"
)

// The results of a scan.
const (
	everything = true
	nothing    = false
)

// imports imports the results of a scan with the real importer.
func (l *life) imports(wording, commit string, all bool) {
	l.Helper()
	n := 0
	if all {
		n = l.n
	}
	log, err := sarif.Parse(strings.NewReader(document(l.T, n, wording)), sarif.Options{})
	harness.Must(l.T, err)
	batches, err := importer.Collect([]importer.File{{Name: "scan.sarif", Log: log}}, importer.Choices{Commit: commit}, time.Now())
	harness.Must(l.T, err)
	target := importer.Target{Namespace: l.namespace, Repository: "repo", Project: "proj"}
	// Force, because a scan here may close all findings, and may follow within a second.
	summaries, err := importer.New(l.scanner, target, importer.Options{Force: true}).Import(l.Context(), batches)
	harness.Must(l.T, err)
	for _, s := range summaries {
		if s.Skipped > 0 || s.LeftOpen > 0 {
			l.Errorf("the import skipped %d findings (%v) and left %d open", s.Skipped, s.SkippedExamples, s.LeftOpen)
		}
	}
}

func (l *life) names() []string {
	l.Helper()
	return env.Names(l.T, &v1alpha1.FindingList{}, l.namespace)
}

func (l *life) triageByREST(status, comments string) {
	l.Helper()
	for _, name := range l.names() {
		body := harness.JSON(l.T, map[string]string{"user_status": status, "comments": comments})
		answer, err := l.rest.Do(l.Context(), http.MethodPatch, "/v2/findings/"+name, string(body))
		harness.Must(l.T, err)
		if answer.Status != http.StatusOK {
			l.Fatalf("triage of %s: %d %s", name, answer.Status, answer.Body)
		}
	}
}

// triageByKubectl sends the same request as `kubectl patch --type=merge`.
func (l *life) triageByKubectl(status, comments string) {
	l.Helper()
	patch := harness.JSON(l.T, map[string]any{"spec": map[string]any{"triage": map[string]string{"userStatus": status, "comments": comments}}})
	for _, name := range l.names() {
		finding := builder.Finding(name).In(l.namespace).Build()
		harness.Must(l.T, l.person.Patch(l.Context(), finding, testenv.MergePatch(string(patch)), client.FieldOwner("kubectl-patch")))
	}
}
