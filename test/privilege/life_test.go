package privilege

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/transitions"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	organizationName = "acme"
	home             = v1alpha1.NamespacePrefix + organizationName
)

// TestEveryGrantIsUsedAndNothingElseIsAsked runs both processes through everything they do, with
// the roles of the chart. It is one test, because each step depends on the earlier ones.
func TestEveryGrantIsUsedAndNothingElseIsAsked(t *testing.T) {
	l := begin(t)
	for _, step := range []struct {
		name string
		run  func(*life, *testing.T)
	}{
		{"an organization with quotas", (*life).organize},
		{"an endpoint for every event", (*life).subscribe},
		{"a key that is used, rotated and refused", (*life).keys},
		{"an import, and another in which a problem is gone", (*life).scans},
		{"the same import as an upload", (*life).upload},
		{"triage by REST and by kubectl", (*life).triage},
		{"a review", (*life).review},
		{"deliveries, again, and with another secret", (*life).deliveries},
		{"what was recorded and not delivered when the controllers ended", (*life).owed},
		{"what is triaged changes meanwhile", (*life).conflict},
		{"another signing key", (*life).signingKey},
		{"what others changed is changed back", (*life).restored},
		{"the trends of a project", (*life).trends}, // which take ten seconds: here most of them are over
		{"what others changed while no controller ran is changed back", (*life).restoredLater},
		{"nothing finished is kept, and quotas go", (*life).retention},
		{"a project goes, then its repository", (*life).removals},
		{"the organization goes", (*life).removal},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(l, t) }) {
			t.FailNow() // requests that are missing after this say nothing about the roles
		}
	}
	harness.Must(t, l.controllers.Stop())
	harness.Must(t, l.facade.Stop())

	all, made := granted(t), requests(t)
	seen := map[string]bool{}
	for _, r := range made {
		if r.forbidden && !seen[r.String()] {
			t.Errorf("forbidden is %v", r)
		}
		seen[r.String()] = true
	}
	used := needed(all, made)
	for _, g := range all {
		if g.account == scanner || g.account == uploads || g.account == operations {
			continue // has several uses; other tests cover the rest
		}
		_, known := unseen[g.key()]
		beginsWatch := g
		beginsWatch.verb = "watch"
		switch {
		case g.verb == "list" && used[beginsWatch]:
			// A watch begins with a list if the API server does not stream it.
		case !used[g] && rare[g.String()] == "" && !known:
			t.Errorf("granted and not needed is %v: take it out of config/rbac, or add to this test what needs it", g)
		case used[g] && known:
			t.Errorf("the table has %v as one that no request needs, and one did", g)
		}
	}
}

// life holds what the steps share.
type life struct {
	t                   *testing.T
	controllers, facade *harness.Component
	controllerConfig    *rest.Config
	rest                *apiclient.Client
	receiver            string
	mu                  sync.Mutex
	received            []string
}

func begin(t *testing.T) *life {
	release := install(t)
	env.StartControllerManager(t, "namespace-controller")
	l := &life{t: t}
	var err error
	l.controllerConfig, err = release.Controller(t.Context())
	harness.Must(t, err)
	l.controllers, err = operator(t, "controller").Controller("controller", l.controllerConfig, "--webhook-allow-cidr=127.0.0.0/8")
	harness.Must(t, err)
	l.controllers.Run(t)

	// In a pod, it is mounted.
	keys := &corev1.Secret{}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: releaseName + "-cursor-keys"}, keys)).To(Succeed())
	})
	mounted := t.TempDir()
	for name, key := range keys.Data {
		harness.Must(t, os.WriteFile(filepath.Join(mounted, name), key, 0o600))
	}
	config, err := release.Facade(t.Context())
	harness.Must(t, err)
	l.facade, err = operator(t, "api").Facade("facade", config, "--cursor-keys-dir="+mounted)
	harness.Must(t, err)
	l.facade.Run(t)
	l.rest = &apiclient.Client{Base: "http://" + l.facade.Address}

	l.receiver = harness.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.received = append(l.received, string(body))
		}
	}))
	return l
}

func (l *life) organize(t *testing.T) {
	organization := testenv.CreateReady(t, env, builder.Organization(organizationName).Mutate(func(o *v1alpha1.Organization) {
		o.Spec.Quotas = &v1alpha1.OrganizationQuotas{Findings: new(int64(1000))}
	}).Build())
	testenv.CreateReady(t, env, builder.Repository("repo").In(home).URL("https://github.com/acme/repo").Build())
	testenv.CreateReady(t, env, builder.Project("proj").In(home).Build())
	env.Patch(t, organization, `{"spec":{"quotas":{"findings":2000}}}`)
	harness.Eventually(t, func(g Gomega) {
		quota := testenv.Get(t, g, env, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "findings-quota"}})
		g.Expect(quota.Spec.Hard).To(HaveKey(corev1.ResourceName("count/findings.appsec.dev")))
		limit := quota.Spec.Hard["count/findings.appsec.dev"]
		g.Expect(limit.Value()).To(Equal(int64(2000)))
	})
	for _, label := range []string{"true", ""} {
		env.Patch(t, organization, fmt.Sprintf(`{"spec":{"triage":{"requireReason":%t}}}`, label != ""))
		harness.Eventually(t, func(g Gomega) {
			namespace := testenv.Get(t, g, env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}})
			g.Expect(namespace.Labels[v1alpha1.RequireReasonLabel]).To(Equal(label))
		})
	}
}

func (l *life) subscribe(t *testing.T) {
	testenv.CreateReady(t, env, builder.TriagePolicy("tests", "finding.path.startsWith('test/')").In(home).Build())
	testenv.CreateReady(t, env, builder.WebhookEndpoint("each").In(home).URL(l.receiver).Build())
	testenv.CreateReady(t, env, builder.WebhookEndpoint("batched").In(home).URL(l.receiver).Batched().Build())
	l.awaitEvent(t, "webhook.ping")
}

func (l *life) keys(t *testing.T) {
	key := builder.APIKey("ci").Scopes(v1alpha1.Scopes()...).In(home).Build()
	first := env.Key(t, key)
	l.accepts(t, first)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, key).Status.LastUsedAt).NotTo(BeNil())
	})

	env.Patch(t, key, `{"spec":{"rotation":{"serial":1}}}`)
	second := anotherToken(t, first)
	// An immutable Secret is replaced.
	env.Patch(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "ci-token"}}, `{"immutable":true}`)
	env.Patch(t, key, `{"spec":{"rotation":{"serial":2}}}`)
	l.accepts(t, anotherToken(t, second))

	other := builder.APIKey("other").In(home).Build()
	refused := &apiclient.Client{Base: l.rest.Base, Token: env.Key(t, other)}
	harness.Eventually(t, func(g Gomega) { g.Expect(status(t, refused)).To(Equal(http.StatusOK)) })
	env.Patch(t, other, `{"spec":{"disabled":true}}`)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(status(t, refused)).To(Equal(http.StatusUnauthorized))
		g.Expect(events(g, t, home)).To(ContainElement("RefusedDisabled"))
	})
	harness.Must(t, env.Client.Delete(t.Context(), other))
	// No garbage collector runs here: the Secret of the earlier key of the name is replaced.
	other = builder.APIKey("other").In(home).Build()
	env.Key(t, other)
	harness.Must(t, env.Client.Delete(t.Context(), other))
}

// plugin runs the command-line program with the scanner's own token.
func (l *life) plugin(t *testing.T, sarif string, arguments ...string) {
	t.Helper()
	config, err := env.ServiceAccount(t.Context(), home, "scanner")
	harness.Must(t, err)
	arguments = append(arguments, "--kubeconfig", testenv.WriteKubeconfig(t, config, home))
	if sarif != "" {
		file := filepath.Join(t.TempDir(), "results.sarif")
		harness.Must(t, os.WriteFile(file, []byte(sarif), 0o600))
		arguments = append(arguments, file)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(programs, "kubectl-findings"), arguments...).CombinedOutput() //nolint:gosec // built above
	if err != nil {
		t.Fatalf("kubectl findings %v: %v\n%s", arguments, err, out)
	}
}

func (l *life) scans(t *testing.T) {
	into := []string{"import", "--repository", "repo", "--project", "proj", "--force"}
	l.plugin(t, builder.Problems("one", "two", "three"), into...)
	l.waitForFindings(t, 3, 0)
	l.plugin(t, builder.Problems("one", "two"), into...)
	l.waitForFindings(t, 2, 1)
	l.awaitEvent(t, "finding.created")
	l.awaitEvent(t, "finding.batch")
	l.awaitEvent(t, "scan.completed")
	died := testenv.Create(t, env, builder.Scan("died", scanned).In(home).Mutate(func(scan *v1alpha1.Scan) {
		scan.Spec.Lease = &v1alpha1.ScanLease{Name: "import-died", Holder: "runner-1"}
	}).Build())
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, died).Status.Phase).To(Equal(v1alpha1.ScanPhaseFailed))
	})
	harness.Must(t, env.Client.Delete(t.Context(), died))
}

// upload uploads the plugin's results, and expects them to be unchanged.
func (l *life) upload(t *testing.T) {
	key := builder.APIKey("uploads").In(home).Scopes(v1alpha1.ScopeFindingsImport).Build()
	ci := &apiclient.Client{Base: l.rest.Base, Token: env.Key(t, key)}
	harness.Eventually(t, func(g Gomega) {
		answer, err := ci.Do(t.Context(), http.MethodPost, "/v2/repos/repo/projects/proj/scans", builder.Problems("one", "two"),
			apiclient.Header("Content-Type", "application/sarif+json"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Status).To(Equal(http.StatusOK), string(answer.Body))
	})
	l.waitForFindings(t, 2, 1)
	harness.Must(t, env.Client.Delete(t.Context(), key))
}

func (l *life) waitForFindings(t *testing.T, open, closed int) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, env, &v1alpha1.FindingList{}, client.InNamespace(home))
		got := map[bool]int{}
		for i := range list.Items {
			g.Expect(findingstate.IsRecorded(&list.Items[i])).To(BeTrue())
			got[list.Items[i].Status.State == v1alpha1.FindingStateClosed]++
		}
		g.Expect(got[false]).To(Equal(open))
		g.Expect(got[true]).To(Equal(closed))
	})
}

func (l *life) triage(t *testing.T) {
	list := testenv.List(t, NewWithT(t), env, &v1alpha1.FindingList{}, client.InNamespace(home))
	var open []*v1alpha1.Finding
	for i := range list.Items {
		if list.Items[i].Status.State != v1alpha1.FindingStateClosed {
			open = append(open, &list.Items[i])
		}
	}
	harness.Eventually(t, func(g Gomega) {
		answer, err := l.rest.Do(t.Context(), http.MethodPatch, "/v1/findings/"+open[0].Name, `{"user_status":"muted"}`)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Status).To(Equal(http.StatusOK), string(answer.Body))
	})
	env.Kubectl(t, home, "patch", "finding", open[1].Name, "--type=merge",
		"--patch", `{"spec":{"triage":{"userStatus":"active","comments":"seen by hand"}}}`)
	for _, finding := range open {
		harness.Eventually(t, func(g Gomega) {
			g.Expect(testenv.Get(t, g, env, finding).Spec.Triage.UserStatus).NotTo(Equal(v1alpha1.UserStatusOpen))
			g.Expect(finding.Status.ObservedGeneration).To(Equal(finding.Generation))
		})
	}
	l.awaitEvent(t, "finding.triaged")

	operation := builder.TriageOperation("again", "").In(home).Committed().Spec(func(s *v1alpha1.TriageOperationSpec) {
		s.Select = &v1alpha1.FindingSelection{IDs: []v1alpha1.ResourceName{v1alpha1.ResourceName(open[0].Name)}}
	}).Build()
	env.Create(t, operation)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, operation).Status.Changed).To(BeEquivalentTo(1), "%+v", operation.Status)
		g.Expect(operation.Status.Phase).To(Equal(v1alpha1.OperationCompleted))
	})
	l.operate(t)
}

// operate creates and commits a triage operation over REST, and creates and applies a policy.
func (l *life) operate(t *testing.T) {
	var made struct{ ID, Phase string }
	ask := func(method, path, body string) {
		answer, err := l.rest.Do(t.Context(), method, path, body, apiclient.Header("Content-Type", "application/json"))
		harness.Must(t, err)
		if answer.Status > http.StatusAccepted {
			t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
		}
		harness.Must(t, json.Unmarshal(answer.Body, &made))
	}
	const operations, policies = "/v2/triage-operations", "/v2/triage-policies"
	ask(http.MethodPost, operations, `{"filters":{"severity":"high"},"set":{"comments":"seen"}}`)
	one := operations + "/" + made.ID
	ask(http.MethodPost, one+"/commit", "")
	ask(http.MethodGet, one, "")
	ask(http.MethodGet, one+"/findings", "")
	ask(http.MethodGet, operations, "")
	ask(http.MethodPost, policies, `{"match":"finding.title == 'nobody'","set":{"user_status":"muted","reason":"duplicate"}}`)
	one = policies + "/" + made.ID
	ask(http.MethodPatch, one, `{"mode":"apply"}`)
	ask(http.MethodGet, one, "")
	ask(http.MethodGet, policies, "")
}

func (l *life) review(t *testing.T) {
	record := []string{"review", "--repository", "repo", "--pr", "7"}
	l.plugin(t, builder.Problems("four", "five"), append(record, "--commit", strings.Repeat("1", 40))...)
	l.plugin(t, builder.Problems("four"), append(record, "--commit", strings.Repeat("2", 40))...)
	l.plugin(t, "", append(record, "--status", "merged")...)
	l.awaitEvent(t, "review_issue.resolved")
	l.awaitEvent(t, "review.updated")
}

func (l *life) deliveries(t *testing.T) {
	list := &v1alpha1.WebhookDeliveryList{}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(env.Client.List(t.Context(), list, client.InNamespace(home))).To(Succeed())
		for i := range list.Items {
			g.Expect(list.Items[i].Status.Phase).To(Equal(v1alpha1.WebhookDeliveryDelivered))
		}
	})
	again := &list.Items[0]
	asked, err := l.rest.Do(t.Context(), http.MethodPost, "/v2/webhook-deliveries/"+again.Name+"/redeliver", "")
	harness.Must(t, err)
	if asked.Status != http.StatusAccepted {
		t.Errorf("redeliver answers %d %s", asked.Status, asked.Body)
	}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, again).Status.Redelivery).NotTo(BeNil())
	})
	// Another payload, so that verifying it only reads.
	answer, err := l.rest.Do(t.Context(), http.MethodPost, "/v2/webhook-deliveries/"+again.Name+"/verify", `{"payload":"x","signature":"y"}`)
	harness.Must(t, err)
	if answer.Status != http.StatusOK {
		t.Errorf("verify answers %d %s", answer.Status, answer.Body)
	}
	endpoint := builder.WebhookEndpoint("each").In(home).Build()
	env.Patch(t, endpoint, `{"spec":{"rotation":{"serial":1}}}`)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, endpoint).Status.RotationSerial).To(Equal(int64(1)))
	})
}

// owed resets emittedSeq so that the last transition of one object of each kind counts as not
// emitted, and deletes all deliveries: this is the state if controllers end after storing the
// transition and before creating the delivery.
func (l *life) owed(t *testing.T) {
	harness.Must(t, l.controllers.Stop())
	findings, reviews := &v1alpha1.FindingList{}, &v1alpha1.ReviewList{}
	issues, scans := &v1alpha1.ReviewIssueList{}, &v1alpha1.ScanList{}
	for _, list := range []client.ObjectList{findings, reviews, issues, scans} {
		harness.Must(t, env.Client.List(t.Context(), list, client.InNamespace(home)))
	}
	as := env.As(t, l.controllerConfig)
	emitted := map[client.Object]*int64{
		&findings.Items[0]: &findings.Items[0].Status.EmittedSeq, &reviews.Items[0]: &reviews.Items[0].Status.EmittedSeq,
		&issues.Items[0]: &issues.Items[0].Status.EmittedSeq, &scans.Items[0]: &scans.Items[0].Status.EmittedSeq,
	}
	before := map[client.Object]int64{}
	for object, seq := range emitted {
		before[object] = *seq
		patch := fmt.Sprintf(`{"status":{"emittedSeq":%d}}`, *seq-1)
		harness.Must(t, as.Status().Patch(t.Context(), object, testenv.MergePatch(patch)))
	}
	harness.Must(t, env.Client.DeleteAllOf(t.Context(), &v1alpha1.WebhookDelivery{}, client.InNamespace(home)))
	harness.Must(t, l.controllers.StartReady(t.Context()))
	for object, seq := range emitted {
		harness.Eventually(t, func(g Gomega) {
			testenv.Get(t, g, env, object)
			// More may have been owed: entries that waited for their page when the controllers
			// ended.
			g.Expect(*seq).To(BeNumerically(">=", before[object]), "%T %s", object, object.GetName())
		})
	}
}

// conflict changes a finding repeatedly, until a triage over REST has met a change that the facade
// had not observed, and has read the finding again; then it does the same with the issue of a
// review.
func (l *life) conflict(t *testing.T) {
	findings := testenv.List(t, NewWithT(t), env, &v1alpha1.FindingList{}, client.InNamespace(home))
	issues := testenv.List(t, NewWithT(t), env, &v1alpha1.ReviewIssueList{}, client.InNamespace(home))
	l.contend(t, &findings.Items[0], "findings", "/v2/findings/")
	l.contend(t, &issues.Items[0], "reviewissues", "/v2/issues/")
}

func (l *life) contend(t *testing.T, object client.Object, resource, path string) {
	ctx, stop := context.WithCancel(t.Context())
	changed := make(chan struct{})
	defer func() { stop(); <-changed }()
	go func() {
		defer close(changed)
		for n := 0; ctx.Err() == nil; n++ {
			patch := fmt.Sprintf(`{"metadata":{"labels":{"example.com/n":"%d"}}}`, n)
			target := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it is one
			if err := env.Client.Patch(ctx, target, testenv.MergePatch(patch)); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	}()
	comment := 0
	harness.Eventually(t, func(g Gomega) {
		comment++
		_, err := l.rest.Do(t.Context(), http.MethodPatch, path+object.GetName(), fmt.Sprintf(`{"comments":"%d"}`, comment))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(requests(t)).To(ContainElement(Satisfy(func(r request) bool {
			return r.account == facade && r.verb == "get" && r.resource == resource
		})))
	})
}

func (l *life) signingKey(t *testing.T) {
	public := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "findings-signing-keys"}}
	harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(public), public))
	before := env.TokenNow(t, builder.APIKey("ci").In(home).Build())
	env.Patch(t, public, `{"metadata":{"annotations":{"appsec.dev/rotate-signing-key":"1","appsec.dev/signing-key-overlap":"1s"}}}`)
	endNotice(t)
	after := anotherToken(t, before)
	harness.Eventually(t, func(g Gomega) {
		now := testenv.Get(t, g, env, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: public.Name}})
		g.Expect(now.Data).To(HaveLen(1))
		g.Expect(now.Data).NotTo(Equal(public.Data))
	})
	l.accepts(t, after)
}

// endNotice ends the minute for which the next signing key is published before it signs.
func endNotice(t *testing.T) {
	t.Helper()
	const since = v1alpha1.GroupName + "/next-published-at"
	held := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "findings-signing-key"}}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, held).Annotations).To(HaveKey(since))
	})
	env.Patch(t, held, fmt.Sprintf(`{"metadata":{"annotations":{%q:"2000-01-01T00:00:00Z"}}}`, since))
}

// restored removes the same object twice: the second Event about it joins the series of the first.
func (l *life) restored(t *testing.T) {
	for range 2 {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "findings-viewer"}}
		env.Patch(t, binding, `{"subjects":null}`)
		harness.Eventually(t, func(g Gomega) {
			g.Expect(testenv.Get(t, g, env, binding).Subjects).To(HaveLen(1))
		})
	}
	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, env, &eventsv1.EventList{})
		g.Expect(list.Items).To(ContainElement(Satisfy(func(e eventsv1.Event) bool {
			return e.Reason == "AccessRestored" && e.Series != nil && e.Series.Count > 1
		})))
	})
}

func (l *life) trends(t *testing.T) {
	harness.Eventually(t, func(g Gomega) { g.Expect(remaining(g, t, &v1alpha1.FindingTrendList{})).NotTo(BeZero()) })
}

// restoredLater removes the label by which the controllers recognise their own objects: objects
// without it are in no cache, and are read only when creating them fails.
func (l *life) restoredLater(t *testing.T) {
	harness.Must(t, l.controllers.Stop())
	const unlabelled = `{"metadata":{"labels":null}}`
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "scanner"}}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "findings-quota"}}
	triager := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "findings-triager"}}
	for _, object := range []client.Object{account, quota, triager} {
		env.Patch(t, object, unlabelled)
	}
	// A binding's roleRef is immutable, so this binding is replaced by another.
	viewer := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "findings-viewer"}}
	harness.Must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(viewer), viewer))
	harness.Must(t, env.Client.Delete(t.Context(), viewer.DeepCopy()))
	viewer.ResourceVersion, viewer.UID, viewer.RoleRef.Name = "", "", "findings-triager"
	env.Create(t, viewer)

	harness.Must(t, l.controllers.StartReady(t.Context()))
	for _, object := range []client.Object{account, quota, triager} {
		harness.Eventually(t, func(g Gomega) {
			g.Expect(testenv.Get(t, g, env, object).GetLabels()).To(HaveKey(v1alpha1.ManagedByLabel))
		})
	}
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, viewer).RoleRef.Name).To(Equal("findings-viewer"))
	})
}

// retention removes a review about whose issue nobody has decided, and keeps the one with a comment.
func (l *life) retention(t *testing.T) {
	l.plugin(t, builder.Problems("six"), "review", "--repository", "repo", "--pr", "8", "--commit", strings.Repeat("3", 40))
	harness.Eventually(t, func(g Gomega) {
		owed := 0
		for _, r := range testenv.List(t, g, env, &v1alpha1.ReviewList{}, client.InNamespace(home)).Items {
			g.Expect(r.Status.OpenIssueCount).To(BeNumerically(">", 0), "open issues of pull request %d", r.Spec.PRNumber)
			owed += len(transitions.Of(r.Status.Transitions, r.Status.EmittedSeq).Owed())
		}
		for _, i := range testenv.List(t, g, env, &v1alpha1.ReviewIssueList{}, client.InNamespace(home)).Items {
			g.Expect(i.Status.ObservedGeneration).To(Equal(i.Generation))
			owed += len(transitions.Of(i.Status.Transitions, i.Status.EmittedSeq).Owed())
		}
		g.Expect(owed).To(BeZero())
	})
	organization := builder.Organization(organizationName).Build()
	env.Patch(t, organization, `{"spec":{"quotas":null,"retention":{"closedFindings":"0s","finishedScans":"0s","idleReviews":"0s","finishedDeliveries":"0s","finishedOperations":"0s","includeTriaged":true}}}`)
	l.waitForFindings(t, 2, 0)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(remaining(g, t, &v1alpha1.WebhookDeliveryList{})).To(BeZero())
		g.Expect(remaining(g, t, &v1alpha1.ScanList{})).To(Equal(1))
		g.Expect(remaining(g, t, &v1alpha1.ReviewList{})).To(Equal(1))
		g.Expect(remaining(g, t, &v1alpha1.TriageOperationList{})).To(BeZero())
		g.Expect(remaining(g, t, &corev1.ResourceQuotaList{})).To(BeZero())
	})
}

func (l *life) removals(t *testing.T) {
	harness.Must(t, env.Client.Delete(t.Context(), builder.Project("proj").In(home).Build()))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(remaining(g, t, &v1alpha1.ProjectList{})).To(BeZero())
		g.Expect(remaining(g, t, &v1alpha1.FindingList{})).To(BeZero())
		g.Expect(remaining(g, t, &v1alpha1.ScanList{})).To(BeZero())
	})
	testenv.CreateReady(t, env, builder.Project("proj").In(home).Build())
	harness.Must(t, env.Client.Delete(t.Context(), builder.Repository("repo").In(home).Build()))
	harness.Eventually(t, func(g Gomega) {
		for _, list := range []client.ObjectList{&v1alpha1.RepositoryList{}, &v1alpha1.ProjectList{}, &v1alpha1.ReviewList{}, &v1alpha1.ReviewIssueList{}} {
			g.Expect(remaining(g, t, list)).To(BeZero())
		}
	})
}

func (l *life) removal(t *testing.T) {
	organization := builder.Organization(organizationName).Build()
	harness.Must(t, env.Client.Delete(t.Context(), organization))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Ready(t, g, env, organization).Reason).To(Equal(v1alpha1.ReasonNotEmpty), "the endpoints are left")
	})
	env.Patch(t, organization, `{"metadata":{"annotations":{"`+v1alpha1.RemoveContentsAnnotation+`":"true"}}}`)
	env.AwaitGone(t, organization)
}

// awaitEvent waits until the receiver has received an event of the type.
func (l *life) awaitEvent(t *testing.T, event string) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		l.mu.Lock()
		defer l.mu.Unlock()
		g.Expect(l.received).To(ContainElement(ContainSubstring(`"` + event + `"`)))
	})
}

// accepts waits until the REST API accepts the token, and uses it from then on.
func (l *life) accepts(t *testing.T, token string) {
	t.Helper()
	l.rest.Token = token
	harness.Eventually(t, func(g Gomega) { g.Expect(status(t, l.rest)).To(Equal(http.StatusOK)) })
}

func status(t *testing.T, caller *apiclient.Client) int {
	t.Helper()
	answer, err := caller.Do(t.Context(), http.MethodGet, "/v1/findings", "")
	harness.Must(t, err)
	return answer.Status
}

// anotherToken waits until the key ci has another token, and returns it.
func anotherToken(t *testing.T, before string) (after string) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		after = env.TokenNow(t, builder.APIKey("ci").In(home).Build())
		g.Expect(after).NotTo(BeEmpty())
		g.Expect(after).NotTo(Equal(before))
	})
	return after
}

func remaining(g Gomega, t *testing.T, list client.ObjectList) int {
	g.Expect(env.Client.List(t.Context(), list, client.InNamespace(home))).To(Succeed())
	return meta.LenList(list)
}

func events(g Gomega, t *testing.T, in string) []string {
	list := testenv.List(t, g, env, &eventsv1.EventList{}, client.InNamespace(in))
	var reasons []string
	for i := range list.Items {
		reasons = append(reasons, list.Items[i].Reason)
	}
	return reasons
}
