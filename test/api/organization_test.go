package api_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var organizations atomic.Int64

// organization belongs to one test and has a key.
type organization struct {
	t         testing.TB
	name      string
	namespace string
	server    *server
}

func newOrganization(t testing.TB) *organization {
	t.Helper()
	name := fmt.Sprintf("test-%d", organizations.Add(1))
	namespace := env.Organization(t, name)
	o := &organization{t: t, name: name, namespace: namespace, server: facade}
	o.limit(unlimited)
	o.create(builder.Repository("repo").In(namespace).Mutate(func(r *v1alpha1.Repository) {
		r.Spec.Provider, r.Spec.URL, r.Spec.FullName = "github", "https://github.com/acme/repo", "acme/repo"
	}).Build())
	o.create(builder.Project("proj").In(namespace).Build())
	return o
}

// on returns the same organization at another facade: callers made from it ask that one.
func (o *organization) on(s *server) *organization {
	other := *o
	other.server = s
	return &other
}

// unlimited is a limit that no test reaches.
const unlimited = 1_000_000

// limit sets the number of requests per minute of each of the organization's keys.
func (o *organization) limit(requestsPerMinute int) {
	o.t.Helper()
	env.Patch(o.t, builder.Organization(o.name).Build(), fmt.Sprintf(`{"spec":{"rateLimit":{"requestsPerMinute":%d}}}`, requestsPerMinute))
}

func (o *organization) create(objects ...client.Object) {
	o.t.Helper()
	env.Create(o.t, objects...)
}

// key creates an API key as its controller would, and returns a caller with it once the facade has
// observed the key.
func (o *organization) key(name string, scopes ...v1alpha1.Scope) *caller {
	o.t.Helper()
	c := newCaller(o.t, o.server, o.issue(name, scopes...))
	harness.Eventually(o.t, func(g Gomega) {
		a, err := c.try("GET", "/v1/findings?size=0", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a.status).To(BeElementOf(400, 403), "the facade does not know the key yet")
	})
	return c
}

// tokensEnd is the expiry of the tests' tokens; the documentation shows it.
var tokensEnd = time.Date(2099, 5, 4, 12, 0, 0, 0, time.UTC)

func (o *organization) issue(name string, scopes ...v1alpha1.Scope) (token string) {
	o.t.Helper()
	key := builder.APIKey(name).In(o.namespace).Scopes(scopes...).Build()
	o.create(key)
	claims := tokens.Claims{
		KeyUID: key.UID, Organization: o.name, ID: "token-of-" + string(key.UID),
		IssuedAt: time.Now().Truncate(time.Second), ExpiresAt: tokensEnd,
	}
	token, err := signingKey.Sign(claims)
	harness.Must(o.t, err)
	key.Status.KeyID = claims.ID
	key.Status.IssuedAt = &v1alpha1.Time{Time: claims.IssuedAt}
	key.Status.ExpiresAt = &v1alpha1.Time{Time: claims.ExpiresAt}
	harness.Must(o.t, controller.Status().Update(o.t.Context(), key))
	return token
}

// finding creates a finding and waits until the facade shows it.
func (o *organization) finding(c *caller, b *builder.FindingBuilder) *v1alpha1.Finding {
	o.t.Helper()
	finding := b.In(o.namespace).Build()
	o.create(finding)
	o.shows(c, finding)
	return finding
}

func (o *organization) shows(c *caller, finding *v1alpha1.Finding) {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		listed := decoded[listOf[shown]](c.get("/v1/findings?size=1000")).Items
		g.Expect(listed).To(ContainElement(HaveField("ID", finding.Name)))
	})
}

// lists waits until the list at the path contains only that finding.
func (o *organization) lists(c *caller, path, id string) {
	o.t.Helper()
	harness.Eventually(o.t, func(g Gomega) {
		g.Expect(idsOf(decoded[listOf[shown]](c.get(path)).Items)).To(Equal([]string{id}))
	})
}

// stored returns the finding from the API server.
func (o *organization) stored(name string) *v1alpha1.Finding {
	o.t.Helper()
	return env.Finding(o.t, o.namespace, name)
}

// kubectlPatch patches a finding as an administrator does.
func (o *organization) kubectlPatch(name, patch string) {
	o.t.Helper()
	env.Patch(o.t, builder.Finding(name).In(o.namespace).Build(), patch)
}

// pathOf returns the v2 path of a finding.
func pathOf(finding *v1alpha1.Finding) string {
	return strings.Join([]string{
		"/v2/repos", string(finding.Spec.RepositoryRef.Name), "projects", string(finding.Spec.ProjectRef.Name), "findings", finding.Name,
	}, "/")
}

// listOf is a list's envelope.
type listOf[T any] struct {
	Items      []T    `json:"items"`
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"`
	Total      int    `json:"total"`
}

// shown holds the members of an item, in either shape, that tests check.
type shown struct {
	ID             string `json:"id"`
	OrganizationID string `json:"organization_id"`
	Status         string `json:"status"`
	UserStatus     string `json:"user_status"`
	Comments       string `json:"comments"`
	CreatedAt      string `json:"created_at"`
	UpdatedAt      string `json:"updated_at"`
}

func idsOf(items []shown) []string {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	return ids
}
