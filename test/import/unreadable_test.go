package import_test

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// spoil stores an object again with a member in its spec that no Go type can hold, as a newer version might write
// it. The object is deleted at the end of the test.
func spoil(t *testing.T, kind string, object client.Object, change func(spec map[string]any)) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	harness.Must(t, err)
	content["apiVersion"], content["kind"] = v1alpha1.GroupVersion.String(), kind
	delete(content["metadata"].(map[string]any), "managedFields")
	delete(content["metadata"].(map[string]any), "resourceVersion")
	change(content["spec"].(map[string]any))
	harness.Must(t, env.PutIntoEtcd(t.Context(), kube.Resource(kind), namespace, object.GetName(), harness.JSON(t, content)))
	t.Cleanup(func() {
		harness.Must(t, client.IgnoreNotFound(env.Client.Delete(context.Background(), partial(kind, object.GetName()))))
	})
}

// noTime returns a change that sets a time that an earlier schema accepted and that Go cannot
// parse.
func noTime(member ...string) func(map[string]any) {
	return func(spec map[string]any) {
		for _, name := range member[:len(member)-1] {
			spec = spec[name].(map[string]any)
		}
		spec[member[len(member)-1]] = "2026-01-01T00:00:00+99:99"
	}
}

// versionsOf returns the resource versions of the findings by name, including unreadable ones.
func (p *project) versionsOf(names ...string) map[string]string {
	p.Helper()
	out := map[string]string{}
	for _, name := range names {
		out[name] = testenv.Get(p, NewWithT(p), env, partial("Finding", name)).ResourceVersion
	}
	return out
}

// An unreadable finding or scan affects only itself: everything else is imported, the finding is not written,
// and its result does not create a second finding.
func TestWhatCannotBeReadIsPassedOver(t *testing.T) {
	p := newProject(t)
	p.imports(document(numbered(4)...), commitA)
	odd, oddGone, scan := p.titled("problem 001"), p.titled("problem 003"), p.scans()[0]
	spoil(t, "Finding", &odd, noTime("scan", "analyzedAt"))
	spoil(t, "Finding", &oddGone, noTime("scan", "analyzedAt"))
	spoil(t, "Scan", &scan, noTime("completedAt"))
	before := p.versionsOf(odd.Name, oddGone.Name)

	results := numbered(6)
	results[2].Level = "note"
	s := p.importsAll(importer.Options{}, collect(t, importer.Choices{Commit: commitA}, document(append(results[1:3], results[4:]...)...)))[0]
	if s.Created != 2 || s.Updated != 1 || s.Closed != 1 || s.SkippedBecause["its finding cannot be read"] != 1 {
		t.Errorf("%+v, want 2 created, 1 updated, 1 closed, 1 skipped", *s)
	}
	warnings := strings.Join(s.Warnings, "\n")
	harness.Contains(t, "the warnings", warnings, "finding "+odd.Name, "finding "+oddGone.Name, "scan "+scan.Name, "correct it with kubectl")
	harness.Same(t, "versions of what cannot be read", before, p.versionsOf(odd.Name, oddGone.Name))
}

// A create conflicts with an unreadable object that the list does not show: the object is not
// overwritten, and the result is skipped.
func TestACreateLeavesWhatCannotBeReadAlone(t *testing.T) {
	p := newProject(t)
	p.imports(document(numbered(1)...), commitA)
	odd := p.titled("problem 000")
	spoil(t, "Finding", &odd, func(spec map[string]any) {
		spec["tool"] = "hidden"
		noTime("scan", "analyzedAt")(spec)
	})
	if s := p.imports(document(numbered(2)...), ""); s.Created != 1 || s.SkippedBecause["its finding cannot be read"] != 1 {
		t.Errorf("%+v, want 1 created and 1 skipped", *s)
	}
}

func TestAReviewPassesOverWhatCannotBeRead(t *testing.T) {
	p := newPull(t)
	p.imports(reviewimport.Options{}, commitA, document(numbered(3)...))
	list := testenv.List(p, NewWithT(p), env, &v1alpha1.ReviewIssueList{}, client.InNamespace(namespace), client.MatchingFields{"spec.reviewRef.name": reviewimport.Name(p.Repository, p.Number)})
	odd := list.Items[0]
	spoil(t, "ReviewIssue", &odd, func(spec map[string]any) { spec["line"] = int64(4294967296) })
	s := p.imports(reviewimport.Options{}, commitB, document(numbered(3)...))
	if s.Created != 0 || s.Skipped != 1 || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], odd.Name) {
		t.Errorf("%+v, want 1 skipped, none created, and a warning of %s", *s, odd.Name)
	}
	if s.Open != 3 || s.OpenHigh != 3 || len(s.Issues) != 3 {
		t.Errorf("%d open, %d of them high, %d listed; want 3: nobody can tell that the issue is not open", s.Open, s.OpenHigh, len(s.Issues))
	}
}
