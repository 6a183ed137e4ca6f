package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Every object that the API server accepts, however odd its spec, is shown as the contract describes.
func TestWhatTheSchemaAcceptsIsShown(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	// The objects that a generated object refers to.
	o.create(builder.Repository("a").In(o.namespace).Build(), builder.Project("a").In(o.namespace).Repository("a").Build(),
		builder.Review("a").In(o.namespace).PullRequest("a", 1).Build())
	for _, door := range []struct {
		kind  string
		lists []string
		one   func(name string) string
	}{
		{kind: "Repository", lists: []string{"/v2/repos"}},
		{kind: "Finding", lists: []string{"/v1/findings", "/v2/findings"}},
		{kind: "Review", lists: []string{"/v1/reviews"}},
		{kind: "Project", one: func(name string) string { return "/v2/repos/a/projects/" + name }},
		{kind: "ReviewIssue", one: func(name string) string { return "/v2/issues/" + name }},
	} {
		t.Run(door.kind, func(t *testing.T) {
			accepted := o.odd(t, door.kind)
			if len(accepted) < 25 {
				t.Fatalf("%d odd objects were accepted: they prove nothing", len(accepted))
			}
			t.Logf("%d odd objects are accepted", len(accepted))
			for _, list := range door.lists {
				harness.Eventually(t, func(g Gomega) {
					g.Expect(c.idsOfAll(list)).To(ContainElements(accepted))
				})
			}
			if door.one == nil {
				return
			}
			for _, name := range accepted {
				harness.Eventually(t, func(g Gomega) { g.Expect(c.get(door.one(name)).status).To(Equal(http.StatusOK), name) })
			}
		})
	}
}

// idsOfAll returns the ids on all pages of a list.
func (c *caller) idsOfAll(list string) []string {
	c.t.Helper()
	var ids []string
	for cursor := ""; ; {
		page := decoded[listOf[shown]](c.get(list+"?size=200"+cursor).wants(http.StatusOK, list))
		ids = append(ids, idsOf(page.Items)...)
		if !page.HasMore {
			return ids
		}
		cursor = "&cursor=" + page.NextCursor
	}
}

// odd creates objects of a kind with odd specs, and returns the names of those that the API server
// accepted. It leaves out objects that refer to a parent that does not exist.
func (o *organization) odd(t *testing.T, kind string) (accepted []string) {
	t.Helper()
	crds, err := corpus.CRDs()
	harness.Must(t, err)
	client, err := rest.HTTPClientFor(env.Config)
	harness.Must(t, err)
	const sparse, writers = 8, 4
	all := slices.DeleteFunc(corpus.Of(crds[kind], "spec", sparse), func(odd corpus.Odd) bool {
		return slices.Contains([]string{"spec.repositoryRef.name", "spec.reviewRef.name"}, odd.Path)
	})
	created := make([]string, len(all))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(writers)
	for i, odd := range all {
		group.Go(func() error {
			name := fmt.Sprintf("odd-%d", i)
			content, err := corpus.Object(crds[kind], o.namespace, name, odd)
			if err != nil {
				return err
			}
			status, _, err := corpus.Send(ctx, client, http.MethodPost, env.Config.Host+corpus.Path(crds[kind], o.namespace), "application/json", content)
			if status == http.StatusCreated {
				created[i] = name
			}
			return err
		})
	}
	harness.Must(t, group.Wait())
	return slices.DeleteFunc(created, func(name string) bool { return name == "" })
}
