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

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// plenty is the limit of organizations whose tests are not about limits.
const plenty = 1_000_000

// theDeployment is what is tested.
var theDeployment *deployment

type deployment struct {
	// cluster is the administrator's client; nil without a kubeconfig.
	cluster client.Client
	// fixtures is what the flag named; all empty without.
	fixtures fixtures

	// run tells this run's organizations from those of others.
	run  string
	made atomic.Int64
	// organizations that were made, to be removed at the end.
	organizations []string
	mutex         sync.Mutex // of organizations
	// Organizations that tests share.
	sample, another, crowded *sample
	// delivery that was sent to this process.
	delivery *delivered
}

// fixtures name what the API key's organization holds.
type fixtures struct {
	// Finding may be triaged by tests.
	Finding struct {
		ID        string `json:"id"`
		RepoID    string `json:"repo_id"`
		ProjectID string `json:"project_id"`
	} `json:"finding"`
	// Project of a repository.
	Project struct {
		RepoID string `json:"repo_id"`
		ID     string `json:"id"`
	} `json:"project"`
	// ReviewIssue is one's id.
	ReviewIssue string `json:"review_issue"`
	// Delivery that was sent, with the body and the webhook-signature that its receiver got.
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
	config.QPS = -1 // client-go's five requests a second are not enough
	d.cluster, err = client.New(config, client.Options{Scheme: testenv.NewScheme()})
	return d, err
}

// close removes the organizations that were made, and with them all that is in them.
func (d *deployment) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	for _, name := range d.organizations {
		errs = append(errs, client.IgnoreNotFound(d.cluster.Delete(ctx, builder.Organization(name).Build())))
	}
	return errors.Join(errs...)
}

// anyKey is a caller with a valid key, of an organization of which nothing is known.
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

// organization is one that the suite has made, with a key that may do everything.
type organization struct {
	t         *testing.T
	name      string
	namespace string
	*caller
}

// newOrganization makes an organization for one test, with a repository "repo" that has a
// project "proj".
func newOrganization(t *testing.T) *organization {
	t.Helper()
	o := emptyOrganization(t, plenty)
	o.create(
		builder.Repository("repo").In(o.namespace).URL("https://github.com/acme/repo").Build(),
		builder.Project("proj").In(o.namespace).Build(),
	)
	return o
}

// emptyOrganization makes an organization with that limit; 0 leaves it to the default.
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
		g.Expect(theDeployment.cluster.Get(t.Context(), client.ObjectKeyFromObject(made), made)).To(Succeed())
		g.Expect(made.Status.Namespace).NotTo(BeEmpty(), "are the deployment's controllers running?")
		o.namespace = made.Status.Namespace
	})
	o.caller = o.key("conformance", v1alpha1.Scopes()...)
	return o
}

func (o *organization) create(objects ...client.Object) {
	o.t.Helper()
	for _, object := range objects {
		if err := theDeployment.cluster.Create(o.t.Context(), object); err != nil {
			o.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// key makes an API key and returns a caller with it, once the deployment knows it.
func (o *organization) key(name string, scopes ...v1alpha1.Scope) *caller {
	o.t.Helper()
	return o.keyOf(builder.APIKey(name).Scopes(scopes...))
}

func (o *organization) keyOf(b *builder.APIKeyBuilder) *caller {
	o.t.Helper()
	key := b.In(o.namespace).Build()
	o.create(key)
	c := &caller{t: o.t, Client: apiclient.Client{Base: *baseURL, Token: o.token(key)}}
	// Of no operation, so that it does not matter what the key may do. Seldom, because requests
	// without a known key count against this machine's address. The one that comes through is
	// the only one that counts against the key.
	NewWithT(o.t).Eventually(func() int { return c.get("/").Status }).WithContext(o.t.Context()).
		WithTimeout(patience).WithPolling(10*interval).Should(Equal(404), "the key must be known")
	return c
}

// token waits for the key's token.
func (o *organization) token(key *v1alpha1.APIKey) string {
	o.t.Helper()
	var token string
	harness.Eventually(o.t, func(g Gomega) {
		ctx := o.t.Context()
		g.Expect(theDeployment.cluster.Get(ctx, client.ObjectKeyFromObject(key), key)).To(Succeed())
		g.Expect(v1alpha1.IsConditionTrue(key.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		secret := &corev1.Secret{}
		name := client.ObjectKey{Namespace: key.Namespace, Name: string(key.Status.SecretRef.Name)}
		g.Expect(theDeployment.cluster.Get(ctx, name, secret)).To(Succeed())
		token = string(secret.Data[v1alpha1.APIKeyTokenKey])
	})
	return token
}

// finding makes a finding and waits until its controller has seen it and the API shows it.
func (o *organization) finding(b *builder.FindingBuilder) *v1alpha1.Finding {
	o.t.Helper()
	finding := b.In(o.namespace).Build()
	o.create(finding)
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(theDeployment.cluster.Get(o.t.Context(), client.ObjectKeyFromObject(finding), finding)).To(Succeed())
		g.Expect(finding.Status.ObservedGeneration).To(Equal(finding.Generation))
		shown := o.get(pathOf(finding))
		g.Expect(shown.Status).To(Equal(200))
		g.Expect(shown.object().text("updated_at")).To(Equal(shownTime(finding.Status.UpdatedAt.Time)))
	})
	return finding
}

// laterSecond waits until the second of the finding's updated_at is over: a change within it is dated only by the
// controllers, who may record a later second than the answer to a PATCH shows.
func (o *organization) laterSecond(finding *v1alpha1.Finding) {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(time.Since(finding.Status.UpdatedAt.Time)).To(BeNumerically(">", time.Second))
	})
}

// firstFinding is when the first of a test's findings was detected.
var firstFinding = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// findings makes n findings, each a minute younger than the one before, and returns their ids.
func (o *organization) findings(n int) []string {
	o.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("f-%03d", i)
		o.create(builder.Finding(ids[i]).In(o.namespace).DetectedAt(firstFinding.Add(time.Duration(i) * time.Minute)).Build())
	}
	o.settled(n)
	return ids
}

// settled waits until all findings of the organization are listed, and none will change again.
func (o *organization) settled(n int) {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		list := &v1alpha1.FindingList{}
		g.Expect(theDeployment.cluster.List(o.t.Context(), list, client.InNamespace(o.namespace))).To(Succeed())
		want := map[string]string{}
		for i := range list.Items {
			finding := &list.Items[i]
			g.Expect(finding.Status.ObservedGeneration).To(Equal(finding.Generation))
			want[finding.Name] = shownTime(finding.Status.UpdatedAt.Time)
		}
		g.Expect(want).To(HaveLen(n))
		shown := map[string]string{}
		for _, item := range o.walk("/v1/findings?size=1000") {
			shown[item.text("id")] = item.text("updated_at")
		}
		g.Expect(shown).To(Equal(want))
	})
}

// pathOf is where v2 shows a finding.
func pathOf(finding *v1alpha1.Finding) string {
	return findingPath(string(finding.Spec.RepositoryRef.Name), string(finding.Spec.ProjectRef.Name), finding.Name)
}

func findingPath(repository, project, finding string) string {
	return "/v2/repos/" + repository + "/projects/" + project + "/findings/" + finding
}

// shownTime is how the API shows a time.
func shownTime(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// storedFinding is a finding as the cluster has it.
func (o *organization) storedFinding(name string) *v1alpha1.Finding {
	o.t.Helper()
	finding := &v1alpha1.Finding{}
	if err := theDeployment.cluster.Get(o.t.Context(), client.ObjectKey{Namespace: o.namespace, Name: name}, finding); err != nil {
		o.t.Fatal(err)
	}
	return finding
}

// patchResource patches a resource as an administrator does.
func (o *organization) patchResource(object client.Object, patch string) {
	o.t.Helper()
	if err := theDeployment.cluster.Patch(o.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		o.t.Fatalf("patch %T %s: %v", object, object.GetName(), err)
	}
}
