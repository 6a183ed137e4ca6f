package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
)

const someProject = "/v2/repos/repo/projects/proj"

// names are the ids of a list's items, in their order.
func names(a answer) []string {
	a.t.Helper()
	return idsOf(decoded[listOf[shown]](a).Items)
}

func (o *organization) lists(c *caller, path string, total int) {
	o.t.Helper()
	o.eventually(func(g Gomega) { g.Expect(decoded[listOf[shown]](c.get(path)).Total).To(Equal(total)) })
}

func TestRepositoriesAreListedWithTheirProjects(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	o.create(builder.Project("api").In(o.namespace).Build())
	o.eventually(func(g Gomega) {
		page := decoded[openapi.RepositoryList](c.get("/v2/repos").wants(200, "the list"))
		g.Expect(page.Items).To(HaveLen(1))
		repository := page.Items[0]
		g.Expect(repository.Id).To(Equal("repo"))
		g.Expect(repository.OrganizationId).To(Equal(o.name))
		g.Expect(repository.FullName).To(Equal("acme/repo"))
		g.Expect(repository.LastCommittedAt).To(BeNil())
		g.Expect(repository.Projects).To(HaveLen(2))
		g.Expect([]string{repository.Projects[0].Id, repository.Projects[1].Id}).To(Equal([]string{"api", "proj"}))
	})
	spec, err := apiclient.Contract()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range undocumented(spec.Components.Schemas["RepositoryList"].Value, decoded[any](c.get("/v2/repos")), "/v2/repos") {
		t.Errorf("%s is not documented", path)
	}
}

func TestRepositoriesAreSortedAndPaged(t *testing.T) {
	o := newOrganization(t)
	c := o.key("ci")
	for i, name := range []string{"b", "a", "c"} {
		o.create(builder.Repository(name).In(o.namespace).Mutate(func(r *v1alpha1.Repository) {
			r.Spec.LastCommit = &v1alpha1.Commit{CommittedAt: &v1alpha1.Time{Time: time.Date(2026, 1, i+1, 0, 0, 0, 0, time.UTC)}}
		}).Build())
	}
	o.lists(c, "/v2/repos", 4)
	for order, want := range map[string]string{"asc": "repo b a c", "desc": "c a b repo"} {
		if got := strings.Join(names(c.get("/v2/repos?sort=last_committed_at&order="+order)), " "); got != want {
			t.Errorf("%s: got %s, want %s; a repository without a commit comes before all others", order, got, want)
		}
	}
	for _, sort := range []string{"created_at", "updated_at", "last_committed_at"} {
		var all []string
		cursor := ""
		for {
			page := decoded[listOf[shown]](c.get(fmt.Sprintf("/v2/repos?sort=%s&size=1&cursor=%s", sort, cursor)).wants(200, sort))
			all = append(all, idsOf(page.Items)...)
			if cursor = page.NextCursor; !page.HasMore {
				break
			}
		}
		if want := names(c.get("/v2/repos?sort=" + sort)); strings.Join(all, " ") != strings.Join(want, " ") || len(all) != 4 {
			t.Errorf("%s: page by page %v, at once %v", sort, all, want)
		}
	}
	next := decoded[listOf[shown]](c.get("/v2/repos?size=1")).NextCursor
	c.get("/v1/findings?cursor="+next).wantsError(400, "Invalid query parameter", "another list's cursor")
	for _, query := range []string{"sort=name", "order=up", "size=0", "size=1001", "cursor=x"} {
		c.get("/v2/repos?"+query).wantsError(400, "Invalid query parameter", query)
	}
}

func TestAProjectIsFoundInItsRepositoryAlone(t *testing.T) {
	o, other := newOrganization(t), newOrganization(t)
	c := o.key("ci")
	other.create(builder.Project("theirs").In(other.namespace).Build())
	o.eventually(func(g Gomega) { g.Expect(c.get(someProject).status).To(Equal(200)) })
	project := decoded[openapi.Project](c.get(someProject))
	if project.Id != "proj" || project.OrganizationId != o.name || project.Repo.Id != "repo" || project.Repo.Name != "repo" {
		t.Errorf("got %+v", project)
	}
	spec, err := apiclient.Contract()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range undocumented(spec.Components.Schemas["Project"].Value, decoded[any](c.get(someProject)), someProject) {
		t.Errorf("%s is not documented", path)
	}
	for reason, path := range map[string]string{
		"another repository":     "/v2/repos/other/projects/proj",
		"no such project":        "/v2/repos/repo/projects/none",
		"another organization's": "/v2/repos/repo/projects/theirs",
	} {
		c.get(path).wantsError(404, "Resource not found", reason)
	}
	c.get("/v2/repos/repo/projects/a%00").wantsError(400, "Invalid query parameter", "an id that cannot be")
}
