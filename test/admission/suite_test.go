// Package admission_test tests the roles and admission policies of config/ on a real API server,
// with real service-account tokens.
package admission_test

import (
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// start is when the scans of this package begin.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// who is a requester.
type who string

const (
	scanner    who = "scanner"
	triager    who = "triager"
	viewer     who = "viewer"
	facade     who = "facade"
	controller who = "controller"
	// uploads is the facade's identity for importing uploads.
	uploads who = "uploads"
	admin   who = "admin"
	// editor has every standard verb on every resource of the group in the namespace, but no custom
	// verb: RBAC allows everything, so every refusal comes from the policies.
	editor who = "editor"
	// reporter is an editor who also has the verb report on all resources.
	reporter who = "reporter"
	// decider is a reporter who also has the verb triage, and restorer a decider with the verb restore. An admin has
	// all of them. Tests that need these two let them join.
	decider  who = "decider"
	restorer who = "restorer"
)

var everyone = []who{scanner, triager, viewer, facade, uploads, controller, admin, editor, reporter}

// member is a requester of the cast, in one organization's namespace.
type member struct {
	client   client.Client
	config   *rest.Config
	username string
}

// cast holds all requesters and their namespace.
type cast struct {
	namespace string
	members   map[who]member
}

func (c *cast) as(name who) client.Client { return c.members[name].client }

func newCast(t *testing.T, organization string) *cast {
	t.Helper()
	namespace := env.Organization(t, organization)
	c := &cast{namespace: namespace, members: map[who]member{}}
	c.add(t, admin, env.Config)
	config, err := env.Controller(t.Context())
	harness.Must(t, err)
	c.add(t, controller, config)
	config, err = env.Facade(t.Context())
	harness.Must(t, err)
	c.add(t, facade, config)
	harness.Must(t, env.LetUploads(t.Context(), namespace))
	config = rest.CopyConfig(config)
	config.Impersonate.UserName = testenv.ServiceAccountUsername(namespace, v1alpha1.UploadsServiceAccount)
	c.add(t, uploads, config)
	for name, role := range map[who]testenv.Role{
		scanner:  testenv.Scanner,
		triager:  testenv.Triager,
		viewer:   testenv.Viewer,
		editor:   newRole(t, "test-editor"),
		reporter: newRole(t, "test-reporter", "report"),
	} {
		c.join(t, name, role)
	}
	return c
}

func (c *cast) join(t *testing.T, name who, role testenv.Role) {
	t.Helper()
	config, err := env.Member(t.Context(), c.namespace, string(name), role)
	harness.Must(t, err)
	c.add(t, name, config)
}

func (c *cast) add(t *testing.T, name who, config *rest.Config) {
	t.Helper()
	as := env.As(t, config)
	review := &authenticationv1.SelfSubjectReview{}
	harness.Must(t, as.Create(t.Context(), review))
	c.members[name] = member{client: as, config: config, username: review.Status.UserInfo.Username}
}

// newRole creates a ClusterRole with every standard verb on the group, and the given custom verbs.
func newRole(t *testing.T, name string, custom ...string) testenv.Role {
	t.Helper()
	standard := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{v1alpha1.GroupName},
				// Not "*": it would include */finalizers, a right that a policy requires.
				Resources: []string{
					"apikeys", "findings", "projects", "repositories", "reviewissues", "reviews", "scans", "triageoperations", "triagepolicies", "webhookdeliveries", "webhookendpoints",
					"apikeys/status", "findings/status", "projects/status", "repositories/status", "reviewissues/status",
					"reviews/status", "scans/status", "webhookdeliveries/status", "webhookendpoints/status",
				},
				Verbs: append(standard, custom...),
			},
		},
	}
	harness.Must(t, client.IgnoreAlreadyExists(env.Client.Create(t.Context(), role)))
	return testenv.Role(name)
}

// nextName returns a generator of names that are unique in the package.
func nextName() func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("object-%d", n) }
}
