package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// plenty is the limit of organizations in tests that are not about limits.
const plenty = 1_000_000

// theDeployment is the tested deployment.
var theDeployment *deployment

type deployment struct {
	// cluster has the administrator's client alone; nil without a kubeconfig.
	cluster *testenv.Environment
	// fixtures is the content of the flag's file; empty without the flag.
	fixtures fixtures

	// run distinguishes this run's organizations from those of other runs.
	run string
	// made counts the created organizations and keys, for their names.
	made atomic.Int64
	// organizations are the created ones, to be removed at the end.
	organizations []string
	mutex         sync.Mutex // of organizations
	// Organizations that tests share.
	sample, another, crowded, asked, apart *sample
	// delivery is a delivery that was sent to this process.
	delivery *delivered
}

// fixtures names objects in the API key's organization.
type fixtures struct {
	// Finding may be triaged by tests.
	Finding struct {
		ID        string `json:"id"`
		RepoID    string `json:"repo_id"`
		ProjectID string `json:"project_id"`
	} `json:"finding"`
	// Project is a project of a repository.
	Project struct {
		RepoID string `json:"repo_id"`
		ID     string `json:"id"`
	} `json:"project"`
	// ReviewIssue is the id of a review issue.
	ReviewIssue string `json:"review_issue"`
	// Delivery is a sent delivery, with the body and the webhook-signature that its receiver got.
	Delivery struct {
		ID        string `json:"id"`
		Payload   string `json:"payload"`
		Signature string `json:"signature"`
	} `json:"delivery"`
}

func newDeployment() (*deployment, error) {
	d := &deployment{run: strings.ToLower(rand.Text()[:6])}
	if *fixturesPath != "" {
		content, err := os.ReadFile(*fixturesPath)
		if err != nil {
			return nil, fmt.Errorf("read -fixtures (give the whole path, tests run in their package's folder): %w", err)
		}
		if err := yaml.UnmarshalStrict(content, &d.fixtures); err != nil {
			return nil, fmt.Errorf("decode %s: %w", *fixturesPath, err)
		}
	}
	if kubeconfigPath == "" {
		return d, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigPath)
	if err != nil {
		return nil, fmt.Errorf("read -kubeconfig (give the whole path, tests run in their package's folder): %w", err)
	}
	config.QPS = -1 // client-go's default of five requests per second is not enough
	d.cluster = &testenv.Environment{Config: config}
	d.cluster.Client, err = client.NewWithWatch(config, client.Options{Scheme: testenv.NewScheme()})
	return d, err
}

// close removes the created organizations with all their contents.
func (d *deployment) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	for _, name := range d.organizations {
		errs = append(errs, client.IgnoreNotFound(d.cluster.Client.Delete(ctx, builder.Organization(name).Build())))
	}
	return errors.Join(errs...)
}

// anyKey returns a caller with a valid key of an organization whose content is unknown.
func anyKey(t *testing.T) *caller {
	t.Helper()
	enter(t)
	if theDeployment.cluster != nil {
		return sampleOrganization(t).caller
	}
	if *apiKey == "" {
		notRun(t, "needs -api-key or -kubeconfig")
	}
	return &caller{t: t, Client: apiclient.Client{Base: *baseURL, Token: *apiKey}, waits: true}
}

// organization was created by the suite and has a key with all scopes.
type organization struct {
	t         *testing.T
	name      string
	namespace string
	*caller
}

// newOrganization creates an organization for one test, with a repository "repo" that has a project
// "proj".
func newOrganization(t *testing.T) *organization {
	t.Helper()
	o := emptyOrganization(t, plenty)
	o.create(
		builder.Repository("repo").In(o.namespace).URL("https://github.com/acme/repo").Build(),
		builder.Project("proj").In(o.namespace).Build(),
	)
	return o
}

// emptyOrganization creates an organization with that limit; 0 keeps the default.
func emptyOrganization(t *testing.T, requestsPerMinute int32) *organization {
	t.Helper()
	enter(t)
	if theDeployment.cluster == nil {
		notRun(t, "needs -kubeconfig, to make an organization")
	}
	name := fmt.Sprintf("conformance-%s-%d", theDeployment.run, theDeployment.made.Add(1))
	b := builder.Organization(name)
	if requestsPerMinute > 0 {
		b.RequestsPerMinute(requestsPerMinute)
	}
	o := &organization{t: t, name: name}
	made := b.Build()
	o.create(made)
	theDeployment.mutex.Lock()
	theDeployment.organizations = append(theDeployment.organizations, name)
	theDeployment.mutex.Unlock()
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, theDeployment.cluster, made)
		g.Expect(made.Status.Namespace).NotTo(BeEmpty(), "are the deployment's controllers running?")
		o.namespace = made.Status.Namespace
	})
	o.caller = o.callerWith(builder.APIKey("conformance").Scopes(v1alpha1.Scopes()...))
	return o
}

func (o *organization) create(objects ...client.Object) {
	o.t.Helper()
	theDeployment.cluster.Create(o.t, objects...)
}

// key creates an API key whose name begins with that name, and returns a caller with it, once the deployment has
// observed the key.
func (o *organization) key(name string, scopes ...v1alpha1.Scope) *caller {
	o.t.Helper()
	return o.keyOf(builder.APIKey(name).Scopes(scopes...))
}

// keyOf makes the key's name unique: in an organization that tests share, keys outlive their tests.
func (o *organization) keyOf(b *builder.APIKeyBuilder) *caller {
	o.t.Helper()
	return o.callerWith(b.Mutate(func(k *v1alpha1.APIKey) {
		k.Name = fmt.Sprintf("%s-%d", k.Name, theDeployment.made.Add(1))
	}))
}

func (o *organization) callerWith(b *builder.APIKeyBuilder) *caller {
	o.t.Helper()
	key := b.In(o.namespace).Build()
	token := theDeployment.cluster.Key(o.t, key)
	c := &caller{t: o.t, Client: apiclient.Client{Base: *baseURL, Token: token}, apiKey: key}
	// The path belongs to no operation, so the key's scopes do not matter. Poll slowly, because
	// requests with an unknown key count against this machine's address. Only the successful
	// request counts against the key.
	NewWithT(o.t).Eventually(func() int { return c.get("/").Status }).WithContext(o.t.Context()).
		WithTimeout(patience).WithPolling(10*interval).Should(Equal(404), "the key must be known")
	return c
}

// finding creates a finding and waits until its controller has observed it and the API shows it.
func (o *organization) finding(b *builder.FindingBuilder) *v1alpha1.Finding {
	o.t.Helper()
	finding := b.In(o.namespace).Build()
	o.create(finding)
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(findingstate.IsRecorded(testenv.Get(o.t, g, theDeployment.cluster, finding))).To(BeTrue())
		shown := o.get(pathOf(finding))
		g.Expect(shown.Status).To(Equal(200))
		g.Expect(shown.object().text("updated_at")).To(Equal(updatedAt(finding)))
	})
	return finding
}

// laterSecond waits until the second of the finding's updated_at is over: within that second only the controllers
// determine the time of a change, and they may record a later second than the answer to a PATCH shows.
func (o *organization) laterSecond(finding *v1alpha1.Finding) {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(time.Since(findingstate.Recorded(finding).Status.UpdatedAt.Time)).To(BeNumerically(">", time.Second))
	})
}

// firstFinding is the detection time of a test's first finding.
var firstFinding = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// findings creates n findings, each detected a minute after the previous one, and returns their
// ids.
func (o *organization) findings(n int) []string {
	o.t.Helper()
	ids, findings := make([]string, n), make([]client.Object, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("f-%03d", i)
		findings[i] = builder.Finding(ids[i]).In(o.namespace).DetectedAt(firstFinding.Add(time.Duration(i) * time.Minute)).Build()
	}
	theDeployment.cluster.CreateAtOnce(o.t, findings...)
	o.settled(n)
	return ids
}

// settled waits until all findings of the organization are listed and no further changes are
// expected.
func (o *organization) settled(n int) {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		list := testenv.List(o.t, g, theDeployment.cluster, &v1alpha1.FindingList{}, client.InNamespace(o.namespace))
		want := map[string]string{}
		for i := range list.Items {
			finding := &list.Items[i]
			g.Expect(findingstate.IsRecorded(finding)).To(BeTrue())
			want[finding.Name] = updatedAt(finding)
		}
		g.Expect(want).To(HaveLen(n))
		shown := map[string]string{}
		for _, item := range o.walk("/v1/findings?size=1000") {
			shown[item.text("id")] = item.text("updated_at")
		}
		g.Expect(shown).To(Equal(want))
	})
}

// pathOf returns the v2 path of a finding.
func pathOf(finding *v1alpha1.Finding) string {
	return findingPath(string(finding.Spec.RepositoryRef.Name), string(finding.Spec.ProjectRef.Name), finding.Name)
}

func findingPath(repository, project, finding string) string {
	return "/v2/repos/" + repository + "/projects/" + project + "/findings/" + finding
}

// shownTime formats a time as the API does.
func shownTime(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// updatedAt returns the time of the finding's last change, as the API shows it.
func updatedAt(finding *v1alpha1.Finding) string {
	return shownTime(findingstate.Recorded(finding).Status.UpdatedAt.Time)
}

// storedFinding returns a finding from the cluster.
func (o *organization) storedFinding(name string) *v1alpha1.Finding {
	o.t.Helper()
	return theDeployment.cluster.Finding(o.t, o.namespace, name)
}

// patchResource patches a resource as an administrator does.
func (o *organization) patchResource(object client.Object, patch string) {
	o.t.Helper()
	theDeployment.cluster.Patch(o.t, object, patch)
}
