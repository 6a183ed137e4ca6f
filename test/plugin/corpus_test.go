package plugin_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// These tests of real scanner output are in this package because it runs without the race detector, with which they
// take minutes; those of recognition alone are in scanimport/importer. They import as the plugin does, in this process.

const (
	commitA = "1111111111111111111111111111111111111111"
	commitB = "2222222222222222222222222222222222222222"
)

// named returns the name of a file of the collection.
func named(file string) string { return strings.TrimSuffix(filepath.Base(file), ".sarif") }

// projectOf returns the name of a file's project.
func projectOf(file string) string { return strings.ToLower(named(file)) }

func collect(content string, choices importer.Choices) ([]*importer.Batch, error) {
	log, err := sarif.Parse(strings.NewReader(content), sarif.Options{})
	if err != nil {
		return nil, err
	}
	return importer.Collect([]importer.File{{Name: "the file", Log: log}}, choices, time.Now())
}

// hasProjects creates a project for each file, with a repository of the same name.
func (o *organization) hasProjects(files []string) {
	o.Helper()
	var objects []client.Object
	for _, file := range files {
		name := projectOf(file)
		repository := builder.Repository(name).In(o.namespace).URL("https://github.com/acme/" + name).Build()
		repository.Spec.DefaultBranch = "main"
		objects = append(objects, repository, builder.Project(name).In(o.namespace).Repository(name).Build())
	}
	env.CreateAtOnce(o, objects...)
}

// imports imports into a project, and expects that each result is counted once.
func (o *organization) imports(t *testing.T, as *rest.Config, project string,
	batches []*importer.Batch) []*importer.Summary {
	t.Helper()
	c, err := importer.NewClient(as)
	harness.Must(t, err)
	target := importer.Target{Namespace: o.namespace, Repository: project, Project: project}
	summaries, err := importer.New(c, target, importer.Options{}).Import(t.Context(), batches)
	harness.Must(t, err)
	for _, s := range summaries {
		reasons := 0
		for _, n := range s.SkippedBecause {
			reasons += n
		}
		if sum := s.Created + s.Updated + s.Reopened + s.Unchanged + s.Skipped; sum != s.Results || reasons != s.Skipped {
			t.Errorf("%s: %d results, of which %d are counted, and %d skipped for %d reasons: %+v",
				s.Tool, s.Results, sum, s.Skipped, reasons, *s)
		}
		if n := s.SkippedBecause["refused by the API server"]; n > 0 {
			t.Errorf("%s: the API server refused %d findings: %v", s.Tool, n, s.SkippedExamples)
		}
		t.Logf("%s (%s): %d results, %d created, %d skipped %v, notes %v, incomplete %v",
			s.Tool, s.Category, s.Results, s.Created, s.Skipped, s.SkippedBecause, s.Notes, s.Incomplete)
	}
	return summaries
}

func inProject(name string) client.MatchingFields {
	return client.MatchingFields{"spec.projectRef.name": name}
}

// findingsOf returns the project's findings by name.
func (o *organization) findingsOf(t *testing.T, project string) map[string]v1alpha1.Finding {
	t.Helper()
	list := testenv.List(t, NewWithT(t), env, &v1alpha1.FindingList{}, client.InNamespace(o.namespace), inProject(project))
	out := map[string]v1alpha1.Finding{}
	for _, f := range list.Items {
		out[f.Name] = f
	}
	return out
}

// versionsOf returns the resource versions of the project's findings, by name.
func (o *organization) versionsOf(t *testing.T, project string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, f := range o.findingsOf(t, project) {
		out[name] = f.ResourceVersion
	}
	return out
}

// importsTwice imports a file at two commits: the second import must find everything unchanged. It returns the
// summaries of the first.
func (o *organization) importsTwice(t *testing.T, as *rest.Config, project, content string) []*importer.Summary {
	t.Helper()
	at := func(commit string) []*importer.Summary {
		batches, err := collect(content, importer.Choices{Commit: commit, StartedAt: startedAt})
		harness.Must(t, err)
		return o.imports(t, as, project, batches)
	}
	first, created := at(commitA), 0
	for _, s := range first {
		if s.Created != s.Results-s.Skipped {
			t.Errorf("first import of %s: %d of %d created: %+v", s.Tool, s.Created, s.Results-s.Skipped, *s)
		}
		created += s.Created
	}
	before := o.versionsOf(t, project)
	harness.Same(t, "findings in the cluster, compared with those counted as created", created, len(before))
	for _, s := range at(commitB) {
		if s.Unchanged != s.Results-s.Skipped || s.Closed != 0 {
			t.Errorf("second import of %s wrote: %+v", s.Tool, *s)
		}
	}
	harness.Same(t, "resource versions after the second import", before, o.versionsOf(t, project))
	scans := testenv.List(t, NewWithT(t), env, &v1alpha1.ScanList{}, client.InNamespace(o.namespace), inProject(project))
	for _, scan := range scans.Items {
		if scan.Spec.CompletedAt == nil {
			t.Errorf("scan %s has no end", scan.Name)
		}
	}
	return first
}
