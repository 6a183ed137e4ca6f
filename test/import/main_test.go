// Package import_test imports SARIF into a real API server, with a scanner's own token.
package import_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	repositoryName = "shop"
	commitA        = "1111111111111111111111111111111111111111"
	commitB        = "2222222222222222222222222222222222222222"
)

var (
	env       *testenv.Environment
	namespace string
	// scanner has the token of a service account with only the scanner role.
	scanner *rest.Config
)

func TestMain(m *testing.M) {
	harness.AtATime(6) // all that are parallel: they mostly wait
	harness.Main(m, start)
}

func start(ctx context.Context, stops *harness.Stops) (err error) {
	if env, err = testenv.Start(stops); err != nil {
		return err
	}
	if namespace, err = env.NewOrganization(ctx, "acme"); err != nil {
		return err
	}
	if scanner, err = env.Member(ctx, namespace, "scanner", testenv.Scanner); err != nil {
		return err
	}
	return env.Client.Create(ctx, builder.Repository(repositoryName).In(namespace).URL("https://github.com/acme/shop").Build())
}

// project is a project that belongs to one test.
type project struct {
	*testing.T
	name string
}

func newProject(t *testing.T) *project {
	t.Helper()
	name := regexp.MustCompile(`[^a-z0-9]`).ReplaceAllString(strings.ToLower(t.Name()), "-")
	p := &project{t, strings.Trim(name[max(0, len(name)-60):], "-")}
	env.Create(p, builder.Project(p.name).In(namespace).Repository(repositoryName).Build())
	return p
}

// newClient returns a client with the rights of config.
func newClient(t testing.TB, config *rest.Config) *importer.Client {
	t.Helper()
	c, err := importer.NewClient(config)
	harness.Must(t, err)
	return c
}

// through returns a client with the rights of config whose requests all pass through trip.
func through(t testing.TB, config *rest.Config, trip func(http.RoundTripper, *http.Request) (*http.Response, error)) *importer.Client {
	t.Helper()
	config = rest.CopyConfig(config)
	harness.Between(config, trip)
	return newClient(t, config)
}

func (p *project) target() importer.Target {
	return importer.Target{Namespace: namespace, Repository: repositoryName, Project: p.name}
}

func parse(t testing.TB, document string) *sarif.Log {
	t.Helper()
	log, err := sarif.Parse(strings.NewReader(document), sarif.Options{})
	harness.Must(t, err)
	return log
}

func collect(t testing.TB, choices importer.Choices, documents ...string) []*importer.Batch {
	t.Helper()
	var files []importer.File
	for i, document := range documents {
		files = append(files, importer.File{Name: fmt.Sprintf("file-%d.sarif", i), Log: parse(t, document)})
	}
	batches, err := importer.Collect(files, choices, time.Now())
	harness.Must(t, err)
	return batches
}

// tryImport imports as the scanner, and leaves the error to the caller.
func (p *project) tryImport(options importer.Options, batches []*importer.Batch) ([]*importer.Summary, error) {
	p.Helper()
	as := scanner
	if options.ImportedBy != "" { // a scanner may not set it
		as = env.Impersonate(testenv.ServiceAccountUsername(namespace, v1alpha1.UploadsServiceAccount))
		harness.Must(p, env.LetUploads(p.Context(), namespace))
	}
	return importer.New(newClient(p, as), p.target(), options).Import(p.Context(), batches)
}

// importsAll imports, and expects success.
func (p *project) importsAll(options importer.Options, batches []*importer.Batch) []*importer.Summary {
	p.Helper()
	summaries, err := p.tryImport(options, batches)
	harness.Must(p, err)
	for _, s := range summaries {
		p.wantAdds(s)
	}
	return summaries
}

// imports imports one document of one tool, and expects success.
func (p *project) imports(document string, commit string) *importer.Summary {
	p.Helper()
	return p.importsAll(importer.Options{}, collect(p, importer.Choices{Commit: commit}, document))[0]
}

// during returns options that make a change once, in the middle of an import.
func during(change func()) importer.Options {
	once := sync.OnceFunc(change)
	return importer.Options{OnProgress: func(int, int) { once() }}
}

// counts are the numbers of a Summary that say what became of results and findings.
type counts struct{ Created, Updated, Reopened, Unchanged, Closed, Skipped, Adopted, NotAdopted, LeftOpen int }

// did fails the test unless an import counted exactly that, in the numbers of counts.
func (p *project) did(what string, s *importer.Summary, want counts) {
	p.Helper()
	got := counts{s.Created, s.Updated, s.Reopened, s.Unchanged, s.Closed, s.Skipped, s.Adopted, s.NotAdopted, s.LeftOpen}
	if got != want {
		p.Errorf("%s: %+v, want %+v", what, *s, want)
	}
}

func (p *project) wantAdds(s *importer.Summary) {
	p.Helper()
	if sum := s.Created + s.Updated + s.Reopened + s.Unchanged + s.Skipped; sum != s.Results {
		p.Errorf("%s: %d results, but created, updated, reopened, unchanged and skipped add up to %d: %+v", s.Tool, s.Results, sum, *s)
	}
	reasons := 0
	for _, n := range s.SkippedBecause {
		reasons += n
	}
	if reasons != s.Skipped {
		p.Errorf("%s: %d skipped, but the reasons add up to %d: %v", s.Tool, s.Skipped, reasons, s.SkippedBecause)
	}
	if n := s.SkippedBecause["refused by the API server"]; n > 0 {
		p.Errorf("%s: the API server refused %d findings: %v", s.Tool, n, s.SkippedExamples)
	}
}

// findings returns the project's findings by name.
func (p *project) findings() map[string]v1alpha1.Finding {
	p.Helper()
	list := testenv.List(p, NewWithT(p), env, &v1alpha1.FindingList{}, client.InNamespace(namespace), client.MatchingFields{"spec.projectRef.name": p.name})
	out := map[string]v1alpha1.Finding{}
	for _, f := range list.Items {
		out[f.Name] = f
	}
	return out
}

func (p *project) scans() []v1alpha1.Scan {
	p.Helper()
	return testenv.List(p, NewWithT(p), env, &v1alpha1.ScanList{}, client.InNamespace(namespace), client.MatchingFields{"spec.projectRef.name": p.name}).Items
}

// versions returns the resource versions of the findings by name.
func (p *project) versions() map[string]string {
	p.Helper()
	out := map[string]string{}
	for name, f := range p.findings() {
		out[name] = f.ResourceVersion
	}
	return out
}

// titled returns the only finding with that title.
func (p *project) titled(title string) v1alpha1.Finding {
	p.Helper()
	var found []v1alpha1.Finding
	for _, f := range p.findings() {
		if f.Spec.Details.Title == title {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		p.Fatalf("%d findings are titled %q, want 1", len(found), title)
	}
	return found[0]
}

// wantOneFailed fails the test unless one of the scans failed for that reason, and all have an end.
func wantOneFailed(t testing.TB, scans []v1alpha1.Scan, because string) {
	t.Helper()
	failed := 0
	for _, scan := range scans {
		if scan.Spec.CompletedAt == nil {
			t.Errorf("scan %s has no end", scan.Name)
		}
		if scan.Spec.Outcome == v1alpha1.ScanFailed && strings.Contains(scan.Spec.Message, because) {
			failed++
		}
	}
	harness.Same(t, "scans that failed with "+because, 1, failed)
}

func (p *project) wantRefused(err error, words ...string) {
	p.Helper()
	if _, refused := errors.AsType[*importer.RefusedError](err); !refused {
		p.Fatalf("error %v, want a refusal", err)
	}
	harness.ErrorContains(p, "the refusal", err, words...)
}

// partial returns a reference to an object of the namespace, which may be an object that no Go type
// can hold.
func partial(kind, name string) *metav1.PartialObjectMetadata {
	object := kube.MetadataOf(v1alpha1.GroupVersion.WithKind(kind))
	object.Namespace, object.Name = namespace, name
	return object
}
