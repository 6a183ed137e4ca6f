package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	hooksOrganization = "hooks"
	// foundFindings is the number of findings in the scan; the first one has only firstFindings, a rescan lacks
	// missedFindings, and people triage triagedFindings of the others.
	foundFindings, firstFindings, missedFindings, triagedFindings = 120, 40, 15, 20
	pullRequests, issuesOfEach                                    = 3, 4
	controllerKills                                               = 3
	// maxPending is so small that the endpoints have a backlog after the first scan.
	maxPending = firstFindings / 2
	// trialTimeout bounds each wait of the trial. An event that was interrupted by two kills in a
	// row is retried after six minutes.
	trialTimeout = 8 * time.Minute
)

// subscriptions are the events that each endpoint of the trial subscribes to. All are sent singly. All endpoints get
// the events of new findings, so that these need no status.
var subscriptions = map[string][]v1alpha1.WebhookEventPattern{
	"everything": nil,
	"some":       {"finding.created", "finding.triaged", "review_issue.*", "scan.completed"},
}

// Every change that a status records, or that follows from a new finding without one, reaches the subscribed endpoints
// under one webhook-id, and nothing else does: during an import, rescans that close and reopen, triage and reviews, with
// a controller that is killed repeatedly, endpoints that have a backlog, and a receiver that refuses some events. Once
// the deliveries are retired, a restarted controller sends nothing again.
func TestEachRecordedChangeReachesTheReceiverUnderOneID(t *testing.T) {
	t.Parallel()
	trial := newWebhookTrial(t)

	work, ctx := errgroup.WithContext(t.Context())
	work.Go(func() error { return trial.scanAndRescan(ctx) })
	work.Go(func() error { return trial.review(ctx) })
	for range controllerKills {
		trial.killAmongEvents(t)
	}
	harness.Must(t, work.Wait())
	trial.waitUntilAllIsSent(t)

	recorded := trial.recorded(t)
	trial.checkWork(t, recorded)
	sent := trial.checkOneDeliveryEach(t, recorded)
	trial.checkReceived(t, sent)
	trial.checkNothingIsSentAgain(t, len(recorded))
}

// webhookTrial is a run with an organization, a project and the endpoints of one receiver.
type webhookTrial struct {
	*run
	client    client.Client
	namespace string
	receiver  *receiver
	random    *rand.Rand
	endpoints map[string]types.UID
	folder    string
}

func newWebhookTrial(t *testing.T) *webhookTrial {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed of what is refused and when the controller is killed: %d", seed)
	trial := &webhookTrial{
		run:       start(t, t.TempDir(), "SAMPLES=false", fmt.Sprintf("CONTROLLER_FLAGS=--webhook-max-pending=%d", maxPending)),
		namespace: v1alpha1.NamespacePrefix + hooksOrganization,
		receiver:  newReceiver(t, seed),
		random:    rand.New(rand.NewPCG(seed, seed)),
		endpoints: map[string]types.UID{},
		folder:    t.TempDir(),
	}
	trial.client = trial.admin(t)
	trial.receiver.isFirst = trial.isFirstAttempt
	trial.prepare(t)
	return trial
}

// prepare creates the endpoints first, and then the objects that findings belong to: an endpoint
// receives no events from before its creation.
func (w *webhookTrial) prepare(t *testing.T) {
	t.Helper()
	w.create(t, builder.Organization(hooksOrganization).Build())
	w.eventually(t, "the organization has its namespace", func(ctx context.Context) (bool, error) {
		err := w.client.Get(ctx, client.ObjectKey{Name: w.namespace}, &corev1.Namespace{})
		return err == nil, client.IgnoreNotFound(err)
	})
	for name, events := range subscriptions {
		w.create(t, builder.WebhookEndpoint(name).In(w.namespace).URL(w.receiver.url+"/"+name).Events(events...).
			Mutate(func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true }).Build())
		secret := &corev1.Secret{}
		w.eventually(t, name+" has a secret", func(ctx context.Context) (bool, error) {
			err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name + "-webhook"}, secret)
			return err == nil, client.IgnoreNotFound(err)
		})
		w.receiver.expect(t, name, string(secret.Data[v1alpha1.WebhookSecretKey]))
		// The receiver can verify requests only from now on.
		endpoint := &v1alpha1.WebhookEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		harness.Must(t, w.client.Patch(t.Context(), endpoint, testenv.MergePatch(`{"spec":{"disabled":false}}`)))
		w.endpoints[name] = endpoint.UID
	}
	w.eventually(t, "each endpoint is greeted", func(context.Context) (bool, error) {
		_, _, events := w.receiver.counts()
		return events == len(subscriptions), nil
	})
	w.create(t, builder.Repository("shop").In(w.namespace).Build())
	w.create(t, builder.Project("api").In(w.namespace).Repository("shop").Build())
}

// scanAndRescan imports a scan, another that lacks findings and a third that contains them again,
// while people triage others.
func (w *webhookTrial) scanAndRescan(ctx context.Context) error {
	whole, part := w.writeScan("whole", foundFindings), w.writeScan("part", foundFindings-missedFindings)
	if err := w.createBacklog(ctx); err != nil {
		return err
	}
	imports, importCtx := errgroup.WithContext(ctx)
	imports.Go(func() error { return w.receiveOnceOneWaits(importCtx) })
	// A finding that closes before its first reconcile was never observed open.
	imports.Go(func() error { return w.importScan(importCtx, whole, "--wait") })
	if err := imports.Wait(); err != nil {
		return err
	}
	findings := &v1alpha1.FindingList{}
	if err := w.client.List(ctx, findings, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	unseen := func(f v1alpha1.Finding) bool { return !findingstate.IsRecorded(&f) }
	if len(findings.Items) != foundFindings || slices.ContainsFunc(findings.Items, unseen) {
		return errors.New("the import has waited, and not every finding has a status or needs none")
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.triage(ctx) })
	group.Go(func() error {
		if err := w.importUntilClosed(ctx, part); err != nil {
			return err
		}
		return w.importScan(ctx, whole)
	})
	return group.Wait()
}

// createBacklog imports a first scan while the receiver answers nothing.
func (w *webhookTrial) createBacklog(ctx context.Context) error {
	if err := w.importScan(ctx, w.writeScan("first", firstFindings)); err != nil {
		return err
	}
	return w.poll(ctx, "the endpoints have a backlog", func(ctx context.Context) (bool, error) {
		list := &v1alpha1.WebhookEndpointList{}
		err := w.client.List(ctx, list, client.InNamespace(w.namespace))
		return !slices.ContainsFunc(list.Items, func(e v1alpha1.WebhookEndpoint) bool { return !webhooks.Backlogged(&e) }), err
	})
}

// receiveOnceOneWaits lets the receiver answer once there are more findings than those of the first scan: they wait for
// the backlog.
func (w *webhookTrial) receiveOnceOneWaits(ctx context.Context) error {
	defer close(w.receiver.gate)
	return w.poll(ctx, "a finding waits for the backlog", func(ctx context.Context) (bool, error) {
		findings := &v1alpha1.FindingList{}
		err := w.client.List(ctx, findings, client.InNamespace(w.namespace))
		return len(findings.Items) > firstFindings, err
	})
}

// importUntilClosed imports a scan that lacks findings until all of them are observed closed. An
// import leaves a finding open if another writer changes it at that moment; and a finding that
// closes and reopens between two reconciles records no change.
func (w *webhookTrial) importUntilClosed(ctx context.Context, path string) error {
	return w.poll(ctx, "the missed findings are closed", func(ctx context.Context) (bool, error) {
		findings := &v1alpha1.FindingList{}
		if err := w.client.List(ctx, findings, client.InNamespace(w.namespace)); err != nil {
			return false, err
		}
		closed, seen := 0, 0
		for i := range findings.Items {
			if findings.Items[i].Spec.Closed != nil {
				closed++
			}
			if findings.Items[i].Status.State == v1alpha1.FindingStateClosed {
				seen++
			}
		}
		if closed < missedFindings {
			return false, w.importScan(ctx, path)
		}
		return seen == missedFindings, nil
	})
}

func (w *webhookTrial) importScan(ctx context.Context, path string, flags ...string) error {
	_, err := w.command(ctx, w.importer(), append([]string{"import", path,
		"--namespace=" + w.namespace, "--repository=shop", "--project=api"}, flags...)...)
	return err
}

// triage mutes findings, and then confirms every other one.
func (w *webhookTrial) triage(ctx context.Context) error {
	findings := &v1alpha1.FindingList{}
	if err := w.client.List(ctx, findings, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	for i := range triagedFindings {
		for _, status := range []string{"muted", "active"}[:1+i%2] {
			patch := []byte(`{"spec":{"triage":{"userStatus":"` + status + `"}}}`)
			if err := w.client.Patch(ctx, &findings.Items[i], client.RawPatch(types.MergePatchType, patch)); err != nil {
				return err
			}
		}
	}
	return nil
}

// review records three commits of each pull request: with all issues, half of them, and all again.
func (w *webhookTrial) review(ctx context.Context) error {
	select { // no event may wait for the receiver until its second attempt: the next is minutes later
	case <-w.receiver.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	all, half := w.writeScan("all", issuesOfEach), w.writeScan("half", issuesOfEach/2)
	for n := 1; n <= pullRequests; n++ {
		for i, report := range []string{all, half, all} {
			commit := fmt.Sprintf("%038d%d%d", 0, n, i)
			if _, err := w.command(ctx, w.importer(), "review", report, "--namespace="+w.namespace,
				"--tool=reviewer", // findings of the scans are in the base, so they are not issues
				"--repository=shop", "--pr="+strconv.Itoa(n), "--commit="+commit); err != nil {
				return err
			}
			want := map[string]int{"open": issuesOfEach, "counted as open": issuesOfEach}
			if i == 1 {
				const left = issuesOfEach / 2
				want = map[string]int{"open": left, "counted as open": left, "resolved": issuesOfEach - left}
			}
			if err := w.poll(ctx, "the issues are "+fmt.Sprint(want), func(ctx context.Context) (bool, error) {
				states, err := w.issueStates(ctx, n)
				return maps.Equal(states, want), err
			}); err != nil {
				return err
			}
		}
	}
	_, err := w.command(ctx, w.importer(), "review", "--namespace="+w.namespace, "--repository=shop", "--pr=1", "--status=merged")
	return err
}

// issueStates counts the issues of a pull request by state, and those that its review counts as open: the review is
// reconciled later than its issues, and two changes between two reconciles would be one event.
func (w *webhookTrial) issueStates(ctx context.Context, pullRequest int) (map[string]int, error) {
	reviews, issues := &v1alpha1.ReviewList{}, &v1alpha1.ReviewIssueList{}
	if err := errors.Join(w.client.List(ctx, reviews, client.InNamespace(w.namespace)),
		w.client.List(ctx, issues, client.InNamespace(w.namespace))); err != nil {
		return nil, err
	}
	states := map[string]int{}
	for i := range reviews.Items {
		review := &reviews.Items[i]
		if int(review.Spec.PRNumber) != pullRequest {
			continue
		}
		states["counted as open"] = int(reviewstate.CountsOf(&review.Status).Open)
		for j := range issues.Items {
			if string(issues.Items[j].Spec.ReviewRef.Name) == review.Name {
				states[string(issues.Items[j].Status.State)]++
			}
		}
	}
	return states, nil
}

// writeScan writes a SARIF file with that many results and returns its path. A shorter file
// contains the first results of a longer one.
func (w *webhookTrial) writeScan(name string, results int) string {
	list := make([]builder.Result, results)
	for i := range list {
		list[i] = builder.Result{
			Rule: "R" + strconv.Itoa(i%7), Message: fmt.Sprintf("problem %d", i), Path: fmt.Sprintf("src/file%d.go", i), Line: i + 1,
		}
	}
	path := filepath.Join(w.folder, name+".sarif")
	if err := os.WriteFile(path, []byte(builder.SARIF("lint", list...)), 0o600); err != nil {
		panic(err) // The test's own folder and text.
	}
	return path
}

// killAmongEvents kills the controller some events after the last kill, at whatever point it is
// then.
func (w *webhookTrial) killAmongEvents(t *testing.T) {
	t.Helper()
	_, _, before := w.receiver.counts()
	target := before + 20 + w.random.IntN(60)
	w.eventually(t, fmt.Sprintf("%d events are received", target), func(context.Context) (bool, error) {
		_, _, events := w.receiver.counts()
		return events >= target, nil
	})
	w.restartController(t)
}

func (w *webhookTrial) restartController(t *testing.T) {
	t.Helper()
	pid := w.pid(t, "controller")
	harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	w.eventually(t, "the controller is started again", func(context.Context) (bool, error) {
		return w.pid(t, "controller") != pid, nil
	})
}

// isFirstAttempt reports whether a delivery has had no earlier attempt.
func (w *webhookTrial) isFirstAttempt(id string) bool {
	delivery := &v1alpha1.WebhookDelivery{}
	err := w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: id}, delivery)
	return err == nil && delivery.Spec.Event.Type != "webhook.ping" && len(delivery.Status.Attempts) == 1
}

// waitUntilAllIsSent waits until no object has transitions to emit and no delivery is pending.
func (w *webhookTrial) waitUntilAllIsSent(t *testing.T) {
	t.Helper()
	var left string
	// The lists are long, and what is refused or interrupted is sent again after minutes.
	err := wait.PollUntilContextTimeout(t.Context(), 200*checkInterval, trialTimeout, true, func(context.Context) (bool, error) {
		left = ""
		for _, o := range w.observed(t) {
			if o.seen != o.generation || o.emitted != o.last() {
				left = fmt.Sprintf("%s %s (generation %d of %d, emitted %d of %d)", o.kind, o.name, o.seen, o.generation, o.emitted, o.last())
				return false, nil
			}
		}
		for _, d := range w.deliveries(t) {
			if d.Status.Phase != v1alpha1.WebhookDeliveryDelivered {
				left = fmt.Sprintf("delivery %s of %s: %+v", d.Name, d.Spec.Event.Type, d.Status)
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("not all is sent: %s: %v", left, err)
	}
}

// observedObject holds what an object's status records.
type observedObject struct {
	kind, prefix, name string
	uid                types.UID
	generation, seen   int64
	emitted            int64
	transitions        []v1alpha1.Transition
}

func (o *observedObject) last() int64 {
	if n := len(o.transitions); n > 0 {
		return o.transitions[n-1].Seq
	}
	return 0
}

// observed reads all objects that record transitions.
func (w *webhookTrial) observed(t *testing.T) []observedObject {
	t.Helper()
	findings, reviews := &v1alpha1.FindingList{}, &v1alpha1.ReviewList{}
	issues, scans := &v1alpha1.ReviewIssueList{}, &v1alpha1.ScanList{}
	for _, list := range []client.ObjectList{findings, reviews, issues, scans} {
		harness.Must(t, w.client.List(t.Context(), list, client.InNamespace(w.namespace)))
	}
	var out []observedObject
	add := func(kind, prefix string, m *metav1.ObjectMeta, seen, emitted int64, transitions []v1alpha1.Transition) {
		out = append(out, observedObject{kind, prefix, m.Name, m.UID, m.Generation, seen, emitted, transitions})
	}
	created := map[string]int{}
	for _, d := range w.deliveries(t) {
		if d.Spec.Event.Type == "finding.created" {
			created[string(d.Spec.Event.Subject.Name)]++
		}
	}
	for i := range findings.Items {
		f := findingstate.Recorded(&findings.Items[i])
		emitted := f.Status.EmittedSeq
		if hasNoStatus(&findings.Items[i]) && created[f.Name] == len(subscriptions) {
			emitted = 1 // the deliveries are the record
		}
		add("Finding", "finding.", &f.ObjectMeta, f.Status.ObservedGeneration, emitted, f.Status.Transitions)
	}
	for i := range reviews.Items {
		r := &reviews.Items[i]
		add("Review", "review.", &r.ObjectMeta, r.Status.ObservedGeneration, r.Status.EmittedSeq, r.Status.Transitions)
	}
	for i := range issues.Items {
		s := &issues.Items[i]
		add("ReviewIssue", "review_issue.", &s.ObjectMeta, s.Status.ObservedGeneration, s.Status.EmittedSeq, s.Status.Transitions)
	}
	for i := range scans.Items {
		s := &scans.Items[i]
		add("Scan", "scan.", &s.ObjectMeta, s.Status.ObservedGeneration, s.Status.EmittedSeq, s.Status.Transitions)
	}
	return out
}

func hasNoStatus(f *v1alpha1.Finding) bool { return f.Status.UpdatedAt == nil }

// change identifies a recorded transition, independently of its receivers.
type change struct {
	kind, name, uid string
	seq             int64
}

// recorded returns the types of all recorded transitions. A history that lacks number 1 has dropped
// its oldest entries, which the trial is too short for.
func (w *webhookTrial) recorded(t *testing.T) map[change]string {
	t.Helper()
	out := map[change]string{}
	for _, o := range w.observed(t) {
		for i, transition := range o.transitions {
			if transition.Seq != int64(i+1) {
				t.Fatalf("%s %s records transition %d as its %d.", o.kind, o.name, transition.Seq, i+1)
			}
			out[change{o.kind, o.name, string(o.uid), transition.Seq}] = o.prefix + string(transition.Type)
		}
	}
	return out
}

// checkWork checks that the trial caused the intended events.
func (w *webhookTrial) checkWork(t *testing.T, recorded map[change]string) {
	t.Helper()
	counts := map[string]int{}
	for _, event := range recorded {
		counts[event]++
	}
	scans := &v1alpha1.ScanList{}
	harness.Must(t, w.client.List(t.Context(), scans, client.InNamespace(w.namespace)))
	half := pullRequests * (issuesOfEach - issuesOfEach/2)
	for event, want := range map[string]int{
		"finding.created": foundFindings, "finding.closed": missedFindings, "finding.reopened": missedFindings,
		"scan.completed": len(scans.Items), "review_issue.opened": pullRequests*issuesOfEach + half, "review_issue.resolved": half,
	} {
		harness.Same(t, "recorded transitions "+event, want, counts[event])
	}
	// Two changes between two reconciles count as one: how often a kill causes that is unknown.
	for event, least := range map[string]int{"finding.triaged": triagedFindings, "review.updated": 3 * pullRequests} {
		if counts[event] < least {
			t.Errorf("%d transitions %s are recorded; want %d at least", counts[event], event, least)
		}
	}
	findings := &v1alpha1.FindingList{}
	harness.Must(t, w.client.List(t.Context(), findings, client.InNamespace(w.namespace)))
	stored := slices.DeleteFunc(findings.Items, func(f v1alpha1.Finding) bool { return hasNoStatus(&f) })
	if len(stored) > missedFindings+triagedFindings+10 {
		t.Errorf("%d of %d findings have a status, though most have not changed", len(stored), foundFindings)
	}
	t.Logf("recorded over %d kills: %v; findings with a status: %d", controllerKills, counts, len(stored))
}

func (w *webhookTrial) deliveries(t *testing.T) []v1alpha1.WebhookDelivery {
	t.Helper()
	list := &v1alpha1.WebhookDeliveryList{}
	harness.Must(t, w.client.List(t.Context(), list, client.InNamespace(w.namespace)))
	return list.Items
}

// checkOneDeliveryEach checks that each endpoint has exactly one delivery for each recorded
// transition that it subscribes to, and no others. It returns the deliveries by webhook-id.
func (w *webhookTrial) checkOneDeliveryEach(t *testing.T, recorded map[change]string) map[string]v1alpha1.WebhookDelivery {
	t.Helper()
	sent := map[string]v1alpha1.WebhookDelivery{}
	of := map[string]map[change][]string{} // the webhook-ids of each change, by endpoint
	pings := map[string]int{}
	for _, d := range w.deliveries(t) {
		endpoint, event := string(d.Spec.EndpointRef.Name), d.Spec.Event
		if other, twice := sent[event.ID]; twice {
			t.Errorf("%s and %s have one webhook-id", other.Name, d.Name)
		}
		sent[event.ID] = d
		if event.Type == "webhook.ping" {
			pings[endpoint]++
			continue
		}
		var payload struct {
			Type string
			Data struct {
				UID string
				Seq int64
			}
		}
		harness.Must(t, json.Unmarshal([]byte(d.Spec.Payload), &payload))
		what := change{event.Subject.Kind, string(event.Subject.Name), payload.Data.UID, payload.Data.Seq}
		if recorded[what] != event.Type || payload.Type != event.Type || !asksFor(subscriptions[endpoint], event.Type) {
			t.Errorf("%s is sent to %s: %s; %+v is recorded as %q", event.Type, endpoint, d.Spec.Payload, what, recorded[what])
		}
		if of[endpoint] == nil {
			of[endpoint] = map[change][]string{}
		}
		of[endpoint][what] = append(of[endpoint][what], event.ID)
	}
	for endpoint, patterns := range subscriptions {
		harness.Same(t, "pings of "+endpoint, 1, pings[endpoint])
		for what, event := range recorded {
			if asksFor(patterns, event) && len(of[endpoint][what]) != 1 {
				t.Errorf("%s has the webhook-ids %v for %s of %+v; want one", endpoint, of[endpoint][what], event, what)
			}
		}
	}
	return sent
}

// asksFor implements the documented meaning of patterns: a type, or a group of types; no patterns
// stand for all events.
func asksFor(patterns []v1alpha1.WebhookEventPattern, event string) bool {
	group, _, _ := strings.Cut(event, ".")
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p v1alpha1.WebhookEventPattern) bool {
		return string(p) == event || string(p) == group+".*"
	})
}

// checkReceived compares the received payloads with those to be sent, byte for byte.
func (w *webhookTrial) checkReceived(t *testing.T, sent map[string]v1alpha1.WebhookDelivery) {
	t.Helper()
	got, problems := w.receiver.all()
	for _, problem := range problems {
		t.Errorf("the receiver: %s", problem)
	}
	for id, d := range sent {
		event, there := got[id]
		switch {
		case !there || !event.accepted:
			t.Errorf("%s, %s, was not received", id, d.Spec.Event.Type)
		case event.payload != d.Spec.Payload || event.endpoint != string(d.Spec.EndpointRef.Name):
			t.Errorf("%s is %s for %s, and %s was received at %s", id, d.Spec.Payload, d.Spec.EndpointRef.Name, event.payload, event.endpoint)
		}
	}
	for id, event := range got {
		if _, there := sent[id]; !there {
			t.Errorf("%s was received and has no delivery: %s", id, event.payload)
		}
	}
	requests, refused, _ := w.receiver.counts()
	t.Logf("%d events in %d requests, of which the receiver refused %d", len(got), requests, refused)
	if refused == 0 {
		t.Error("nothing was refused, so no retry was tried")
	}
}

// checkNothingIsSentAgain deletes all deliveries, waits until the controller has stored the statuses of the findings that
// only these recorded, and restarts it.
func (w *webhookTrial) checkNothingIsSentAgain(t *testing.T, recorded int) {
	t.Helper()
	harness.Must(t, w.client.DeleteAllOf(t.Context(), &v1alpha1.WebhookDelivery{}, client.InNamespace(w.namespace)))
	w.eventually(t, "the deliveries are gone", func(context.Context) (bool, error) { return len(w.deliveries(t)) == 0, nil })
	w.eventually(t, "statuses record what was sent", func(ctx context.Context) (bool, error) {
		findings := &v1alpha1.FindingList{}
		err := w.client.List(ctx, findings, client.InNamespace(w.namespace))
		return !slices.ContainsFunc(findings.Items, func(f v1alpha1.Finding) bool { return hasNoStatus(&f) }), err
	})
	requests, _, _ := w.receiver.counts()
	creates := w.creates(t)
	if creates < float64(recorded) {
		t.Fatalf("the API server counts %v creates of deliveries for %d transitions: the metric is another", creates, recorded)
	}
	w.restartController(t)
	objects := map[string]int{}
	for _, o := range w.observed(t) {
		objects[strings.ToLower(o.kind)]++
	}
	w.eventually(t, "the new controller has looked at everything", func(ctx context.Context) (bool, error) {
		return w.controllerHasSettled(ctx, t, objects), nil
	})
	harness.Same(t, "created deliveries after the restart", creates, w.creates(t))
	for _, d := range w.deliveries(t) {
		t.Errorf("%s is there again: %s", d.Name, d.Spec.Payload)
	}
	again, _, _ := w.receiver.counts()
	harness.Same(t, "requests after the restart", requests, again)
}

// creates returns how many requests to create a delivery the API server has received, by its own
// metrics.
func (w *webhookTrial) creates(t *testing.T) float64 {
	t.Helper()
	sum, err := harness.Sum(w.kubectl(t, "get", "--raw", "/metrics"), "apiserver_request_total",
		map[string]string{"resource": "webhookdeliveries", "verb": "POST"})
	harness.Must(t, err)
	return sum
}

// controllerHasSettled reports whether the controllers' caches are synced, each has reconciled as
// many objects as exist of its kind, and their queues are empty.
func (w *webhookTrial) controllerHasSettled(ctx context.Context, t *testing.T, objects map[string]int) bool {
	t.Helper()
	if _, err := harness.Get(ctx, nil, "http://"+w.controllerFlag(t, "--health-probe-bind-address")+"/readyz"); err != nil {
		return false
	}
	metrics, err := harness.Get(ctx, nil, "http://"+w.controllerFlag(t, "--metrics-bind-address")+"/metrics")
	if err != nil {
		return false
	}
	for name, count := range objects {
		done, err := harness.Sum(metrics, "controller_runtime_reconcile_total", map[string]string{"controller": name})
		if err != nil || done < float64(count) {
			return false
		}
	}
	queued, errQueued := harness.Sum(metrics, "workqueue_depth", nil)
	active, errActive := harness.Sum(metrics, "controller_runtime_active_workers", nil)
	return errQueued == nil && errActive == nil && queued == 0 && active == 0
}

// controllerFlag returns the value of a flag of the running controller.
func (w *webhookTrial) controllerFlag(t *testing.T, name string) string {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", w.pid(t, "controller")))
	if err != nil {
		t.Fatalf("the controller's flags: %v", err)
	}
	for argument := range strings.SplitSeq(string(line), "\x00") {
		if value, found := strings.CutPrefix(argument, name+"="); found {
			return value
		}
	}
	return ""
}

func (w *webhookTrial) create(t *testing.T, object client.Object) {
	t.Helper()
	harness.Must(t, w.client.Create(t.Context(), object))
}

func (w *webhookTrial) eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	harness.Must(t, w.poll(t.Context(), what, condition))
}

// poll polls slowly: some of the checks are expensive, and the machine has other work.
func (w *webhookTrial) poll(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, 10*checkInterval, trialTimeout, true, condition); err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}
