package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// poisonWriters is the number of concurrent writers.
	poisonWriters = 3
	// writesEach is how many objects per kind, writer and way of writing the short form tries.
	writesEach = 3
	// minWrites is the minimum number of objects that the full form tries.
	minWrites = 5000
)

// Odd objects, written by every requester who may write, do not affect other organizations.
func TestPoison_OddObjectsHarmNobodyElse(t *testing.T) {
	other := newNeighbour(t, poison)
	p := newPoisoner(t)
	defer p.remove(t)
	writes := p.writes(t)

	other.worksDuring(t, func() { p.writeAll(t, writes) })

	p.checkStored(t)
	other.stillWorks(t)
}

// An oddWrite is an odd object together with the way of writing it.
type oddWrite struct {
	kind string
	odd  corpus.Odd
	by   *poisonWriter
	way  string
}

// poisonWriter is a requester who may write objects of those kinds.
type poisonWriter struct {
	role  string
	kinds []string
	ways  []string
	// parts, if not empty, are the only fields that it may write.
	parts  []string
	client *http.Client
}

// poisoner writes odd objects and records the results.
type poisoner struct {
	crds    map[string]*apiextensionsv1.CustomResourceDefinition
	writers []*poisonWriter
	mark    string
	// namespaces maps kinds to namespaces. Endpoints and deliveries are in a separate organization: the main
	// one has many findings, and the quota that limits the number of endpoints to be notified is not
	// enforced here.
	namespaces map[string]string

	mu             sync.Mutex
	tried, written map[string]int
}

func newPoisoner(t *testing.T) *poisoner {
	t.Helper()
	p := &poisoner{mark: letters(6), namespaces: map[string]string{}, tried: map[string]int{}, written: map[string]int{}}
	var err error
	p.crds, err = corpus.CRDs()
	harness.Must(t, err)
	organization, hooks := newOrganization(t, "poison-"+p.mark, plenty), newOrganization(t, "hooks-"+p.mark, plenty)
	for kind := range p.crds {
		p.namespaces[kind] = organization.namespace
	}
	p.namespaces["WebhookEndpoint"], p.namespaces["WebhookDelivery"] = hooks.namespace, hooks.namespace

	kinds := slices.Sorted(maps.Keys(p.crds))
	namespaced := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool {
		return p.crds[kind].Spec.Scope == apiextensionsv1.ClusterScoped || p.namespaces[kind] == hooks.namespace
	})
	reported := []string{"Finding", "Review", "ReviewIssue", "Scan"}
	for _, m := range organization.members(t) {
		w := &poisonWriter{role: m.role, client: httpClient(t, m.config)}
		switch m.role {
		case "viewer":
			continue
		case "triager":
			w.kinds, w.ways, w.parts = []string{"Finding", "Project"}, []string{"merge", "update"}, []string{"spec.triage.", "spec.user."}
		case "owner":
			w.kinds, w.ways = namespaced, []string{"create", "apply", "merge", "update"}
		default:
			w.kinds, w.ways = reported, []string{"create", "apply", "merge"}
		}
		p.writers = append(p.writers, w)
	}
	p.writers = append(p.writers,
		&poisonWriter{role: "administrator", kinds: kinds, ways: []string{"create", "apply", "merge", "update"}, client: httpClient(t, target.env.Config)},
		&poisonWriter{role: "nobody", kinds: kinds, ways: []string{"etcd"}})
	p.makeBases(t)
	return p
}

func httpClient(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	c, err := rest.HTTPClientFor(config)
	harness.Must(t, err)
	c.Timeout = patience
	return c
}

// makeBases creates valid objects to be changed, separate ones for each writer.
func (p *poisoner) makeBases(t *testing.T) {
	t.Helper()
	admin := httpClient(t, target.env.Config)
	for _, w := range p.writers {
		if !slices.Contains(w.ways, "merge") {
			continue
		}
		for _, kind := range w.kinds {
			for i := range poisonBases() {
				content, err := corpus.Object(p.crds[kind], p.namespaces[kind], p.base(w, i), corpus.Odd{})
				harness.Must(t, err)
				status, answer, err := corpus.Send(t.Context(), admin, http.MethodPost, p.url(kind), "application/json", content)
				if err != nil || status != http.StatusCreated {
					t.Fatalf("make a valid %s: %d %.300s (%v)", kind, status, answer, err)
				}
			}
		}
	}
}

// poisonBases returns the number of valid objects to be changed; more objects make conflicts between writes rarer.
func poisonBases() int { return inForm(1, poisonWriters) }

func (p *poisoner) base(w *poisonWriter, i int) string {
	return fmt.Sprintf("base-%s-%s-%d", p.mark, strings.ReplaceAll(w.role, " ", "-"), i%poisonBases())
}

func (p *poisoner) url(kind string) string {
	return target.env.Config.Host + corpus.Path(p.crds[kind], p.namespaces[kind])
}

// writes returns two of three odd values of every kind, each by another writer in another way than the
// previous one; the short form has some of each writer and way. In both forms, values that no Go type can
// hold are put into etcd.
func (p *poisoner) writes(t *testing.T) []oddWrite {
	t.Helper()
	var all []oddWrite
	for _, kind := range slices.Sorted(maps.Keys(p.crds)) {
		odds := corpus.Of(p.crds[kind], "spec", 1)
		how := p.how(kind)
		for n, d := range how {
			mine := odds
			if d.by.parts != nil {
				mine = slices.DeleteFunc(slices.Clone(odds), func(odd corpus.Odd) bool { return !d.by.mayWrite(odd.Path) })
			}
			step := len(how) * 3 / 2
			if !full {
				step = max(1, len(mine)/writesEach)
			}
			for i := n % step; i < len(mine); i += step {
				if d.odd = mine[i]; d.way != "etcd" || served(d.odd) {
					all = append(all, d)
				}
			}
		}
		all = append(all, oddWrite{kind: kind, odd: corpus.Unreadables()[kind], by: p.writers[len(p.writers)-1], way: "etcd"})
	}
	if full && len(all) < minWrites {
		t.Fatalf("there are %d odd objects, want %d", len(all), minWrites)
	}
	return mixed(all)
}

// how returns the ways in which objects of the kind can be written.
func (p *poisoner) how(kind string) []oddWrite {
	var how []oddWrite
	for _, w := range p.writers {
		for _, way := range w.ways {
			if slices.Contains(w.kinds, kind) {
				how = append(how, oddWrite{kind: kind, by: w, way: way})
			}
		}
	}
	return how
}

func (w *poisonWriter) mayWrite(path string) bool {
	return slices.ContainsFunc(w.parts, func(part string) bool { return strings.HasPrefix(path, part) })
}

// mixed interleaves kinds and writers, so that they are attacked at the same time.
func mixed(writes []oddWrite) []oddWrite {
	const stride = 101
	out := make([]oddWrite, 0, len(writes))
	for first := range stride {
		for i := first; i < len(writes); i += stride {
			out = append(out, writes[i])
		}
	}
	return out
}

// served reports whether the API server can decode the stored object; otherwise its own lists would
// fail.
func served(odd corpus.Odd) bool {
	value, ok := odd.Value.(json.RawMessage)
	var decoded any
	return !ok || utiljson.Unmarshal(value, &decoded) == nil
}

func (p *poisoner) writeAll(t *testing.T, writes []oddWrite) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(poisonWriters)
	for i, d := range writes {
		group.Go(func() error {
			status, err := p.write(t.Context(), d, i)
			attempt(t, poison, err == nil, "%s of a %s by the %s: %s: %v", d.way, d.kind, d.by.role, d.odd, err)
			p.count(d, err == nil && status < 300)
			return nil
		})
	}
	harness.Must(t, group.Wait())
}

// write returns the API server's answer, which may be a refusal.
func (p *poisoner) write(ctx context.Context, d oddWrite, i int) (int, error) {
	crd, namespace, name := p.crds[d.kind], p.namespaces[d.kind], fmt.Sprintf("odd-%s-%d", p.mark, i)
	content, err := corpus.Object(crd, namespace, name, d.odd)
	if err != nil {
		return 0, err
	}
	method, url, contentType := http.MethodPost, p.url(d.kind), "application/json"
	switch d.way {
	case "apply":
		method, url, contentType = http.MethodPatch, url+"/"+name+"?fieldManager=poison&force=true", "application/apply-patch+yaml"
	case "merge":
		method, url, contentType = http.MethodPatch, url+"/"+p.base(d.by, i), "application/merge-patch+json"
		content, err = withMetadata(content, nil)
	case "update":
		method, url = http.MethodPut, url+"/"+p.base(d.by, i)
		var metadata json.RawMessage
		if metadata, err = metadataOf(ctx, d.by.client, url); err == nil {
			content, err = withMetadata(content, metadata)
		}
	case "etcd":
		if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
			namespace = ""
		}
		if content, err = corpus.Stored(crd, namespace, name, d.odd); err != nil {
			return 0, err
		}
		return http.StatusOK, target.env.PutIntoEtcd(ctx, crd.Spec.Names.Plural, namespace, name, content)
	}
	if err != nil {
		return 0, err
	}
	status, _, err := corpus.Send(ctx, d.by.client, method, url, contentType, content)
	return status, err
}

// withMetadata returns an object's JSON with other metadata, or without any.
func withMetadata(content []byte, metadata json.RawMessage) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	if object["metadata"] = metadata; metadata == nil {
		delete(object, "metadata")
	}
	return json.Marshal(object)
}

func metadataOf(ctx context.Context, c *http.Client, url string) (json.RawMessage, error) {
	status, answer, err := corpus.Send(ctx, c, http.MethodGet, url, "application/json", nil)
	if err != nil {
		return nil, err
	}
	var object struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(answer, &object); err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("get %s: %d %.300s (%w)", url, status, answer, err)
	}
	return object.Metadata, nil
}

func (p *poisoner) count(d oddWrite, written bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range []string{"all", d.kind, d.by.role + " " + d.way} {
		p.tried[of]++
		if written {
			p.written[of]++
		}
	}
}

// checkStored expects that some object of each kind, by each writer in each way, was stored, and that the
// service has seen the unreadable ones: otherwise the test proves nothing.
func (p *poisoner) checkStored(t *testing.T) {
	t.Helper()
	for _, of := range slices.Sorted(maps.Keys(p.tried)) {
		t.Logf("%-24s tried %5d, written %5d", of, p.tried[of], p.written[of])
		if p.written[of] == 0 {
			t.Errorf("nothing was written of: %s", of)
		}
	}
	harness.Eventually(t, func(g Gomega) {
		metrics, err := target.facade.Metrics(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		for _, kind := range []string{"apikeys", "findings", "organizations", "projects", "repositories", "reviewissues", "reviews"} {
			g.Expect(metrics).To(MatchRegexp(`findings_unreadable_objects\{kind=%q\} [1-9]`, kind))
		}
	})
}

// remove removes the written objects, for later tests.
func (p *poisoner) remove(t *testing.T) {
	t.Helper()
	for kind, crd := range p.crds {
		object := kube.MetadataOf(v1alpha1.GroupVersion.WithKind(kind))
		if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
			harness.NoError(t, "remove objects of "+kind, target.env.Client.DeleteAllOf(t.Context(), object, client.InNamespace(p.namespaces[kind])))
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		harness.Must(t, target.env.Client.List(t.Context(), list))
		for i := range list.Items {
			if item := &list.Items[i]; strings.Contains(item.Name, "-"+p.mark+"-") {
				harness.NoError(t, "remove "+kind+" "+item.Name, client.IgnoreNotFound(target.env.Client.Delete(t.Context(), item)))
			}
		}
	}
}

// stillWorks expects the facade to be ready, and a new organization to become ready, with a finding in it.
func (b *neighbour) stillWorks(t *testing.T) {
	t.Helper()
	_, err := harness.Get(t.Context(), nil, "http://"+target.facade.HealthAddress+"/readyz")
	attempt(t, b.class, err == nil, "the facade is not ready: %v", err)
	made := newOrganization(t, "after-"+letters(6), plenty)
	testenv.AwaitReady(t, target.env, builder.Organization(made.name).Build())
	attempt(t, b.class, true, "")
	reported := b.finding(0) // one that needs a status, though nobody has decided about it
	reported.Name += "-" + letters(6)
	reported.Spec.Triage = builder.Finding("f").Build().Spec.Triage
	reported.Spec.Suppression = &v1alpha1.FindingSuppression{Kind: v1alpha1.SuppressionInSource}
	harness.Must(t, b.scanner.Create(t.Context(), reported))
	for _, finding := range []*v1alpha1.Finding{b.finding(0), reported} {
		testenv.AwaitObserved(t, target.env, finding)
	}
	attempt(t, b.class, true, "")
}
