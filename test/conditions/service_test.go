package conditions_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// service holds the operator's two processes.
type service struct {
	controller, facade *harness.Component
	crds               map[string]*apiextensionsv1.CustomResourceDefinition
}

// startOperator runs both of the operator's processes until the test ends.
func startOperator(t *testing.T) *service {
	t.Helper()
	crds, err := corpus.CRDs()
	harness.Must(t, err)
	controller, facade, err := env.Operator(t.Context(), harness.Operator{Folder: t.TempDir()})
	harness.Must(t, err)
	controller.Run(t)
	facade.Run(t)
	return &service{controller: controller, facade: facade, crds: crds}
}

// put stores an unreadable object of the kind.
func (s *service) put(t *testing.T, kind, namespace, name string) {
	t.Helper()
	crd := s.crds[kind]
	if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		namespace = ""
	}
	odd, known := corpus.Unreadables()[kind]
	if !known {
		t.Fatalf("Unreadables in test/corpus/corpus.go has no %s", kind)
	}
	content, err := corpus.Stored(crd, namespace, name, odd)
	harness.Must(t, err)
	harness.Must(t, env.PutIntoEtcd(t.Context(), crd.Spec.Names.Plural, namespace, name, content))
}

// counted waits, at most maxLate, until both processes count that many unreadable objects of each kind.
func (s *service) counted(t *testing.T, want map[string]int) {
	t.Helper()
	for _, process := range []*harness.Component{s.controller, s.facade} {
		harness.Within(t, maxLate, func(g Gomega) {
			metrics, err := process.Metrics(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			for kind, crd := range s.crds {
				if process == s.facade && !facadeReads[kind] {
					continue
				}
				g.Expect(metrics).To(ContainSubstring("findings_unreadable_objects{kind=%q} %d\n", crd.Spec.Names.Plural, want[kind]))
			}
		})
		_, err := harness.Get(t.Context(), nil, "http://"+process.HealthAddress+"/readyz")
		harness.NoError(t, "not ready", err)
	}
}

// facadeReads are the kinds that the facade watches.
var facadeReads = map[string]bool{
	"APIKey": true, "Finding": true, "Organization": true, "Project": true, "Repository": true, "Review": true, "ReviewIssue": true,
}

// organization was created by the controllers and has a key.
type organization struct {
	s               *service
	name, namespace string
	client          apiclient.Client
}

func (s *service) organization(t *testing.T, name string) *organization {
	t.Helper()
	namespace := env.Reconciled(t, builder.Organization(name).RequestsPerMinute(1_000_000).Build())
	o := &organization{s: s, name: name, namespace: namespace}
	token := env.Key(t, builder.APIKey("ci").In(namespace).Build())
	o.client = apiclient.Client{Base: "http://" + s.facade.Address, Token: token}
	harness.Eventually(t, func(g Gomega) { g.Expect(o.get(t, "/v1/findings")).To(Equal(http.StatusOK)) })
	env.Create(t, builder.Repository("a").In(o.namespace).Build(), builder.Project("a").In(o.namespace).Repository("a").Build())
	return o
}

// get returns the status of an answer. An answer with outdated data is an error.
func (o *organization) get(t *testing.T, path string) int {
	t.Helper()
	return o.ask(t, http.MethodGet, path, "")
}

func (o *organization) ask(t *testing.T, method, path, body string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	answer, err := o.client.Do(ctx, method, path, body)
	if err != nil {
		return 0
	}
	harness.Same(t, "age of the data of "+method+" "+path, "", answer.Header.Get("X-Data-Age"))
	return answer.Status
}

// maxLate is how long a write may stay invisible. A watch that ends at an object that it cannot decode is
// restarted with a list, which takes longer.
const maxLate = 20 * time.Second

// stillWorks creates, shows and changes a finding, and waits for the controllers; each step may take at most
// maxLate.
func (o *organization) stillWorks(t *testing.T, name string) {
	t.Helper()
	finding := testenv.Create(t, env, builder.Finding(name).In(o.namespace).Project("a", "a").Build())
	path := "/v2/repos/a/projects/a/findings/" + name
	harness.Within(t, maxLate, func(g Gomega) { g.Expect(o.get(t, path)).To(Equal(http.StatusOK)) })
	harness.Same(t, "status of PATCH", http.StatusOK, o.ask(t, http.MethodPatch, "/v2/findings/"+name, `{"user_status":"muted"}`))
	harness.Within(t, maxLate, func(g Gomega) {
		testenv.Get(t, g, env, finding)
		g.Expect(finding.Status.ObservedGeneration).To(Equal(finding.Generation))
		g.Expect(string(finding.Spec.Triage.UserStatus)).To(Equal("muted"))
	})
}
