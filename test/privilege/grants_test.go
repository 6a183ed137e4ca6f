package privilege

import (
	"bufio"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/chart"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The accounts, with the names that failure messages use.
const (
	controller = "controller"
	facade     = "facade"
	scanner    = "scanner"
	uploads    = "uploads"
	operations = "operations"
)

// auditPolicy records requests without their bodies, which contain Secrets.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts:` + namespace + `", "system:serviceaccounts:org-` + organizationName + `"]
  - level: None
`

func auditLog() string { return filepath.Join(scratch, "audit.log") }

// grant is the smallest unit of a role: one verb on one resource.
type grant struct {
	account string
	// role is the role that contains the grant; namespace is where its Role or RoleBinding is in
	// force, empty for everywhere.
	role, namespace       string
	group, resource, verb string
	// name is the name of the only object that it applies to, empty for all.
	name string
}

// key identifies the grant in tables.
func (g grant) key() string {
	return strings.TrimSuffix(fmt.Sprintf("%s: %s %s %s", g.account, g.verb, qualified(g.resource, g.group), g.name), " ")
}

func (g grant) String() string { return fmt.Sprintf("%s (role %s)", g.key(), g.role) }

func (g grant) rule() rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{APIGroups: []string{g.group}, Resources: []string{g.resource}, Verbs: []string{g.verb}}
	if g.name != "" {
		rule.ResourceNames = []string{g.name}
	}
	return rule
}

// allows reports whether the grant allows the request.
func (g grant) allows(r request) bool {
	return g.account == r.account && g.group == r.group && g.resource == r.resource && g.verb == r.verb &&
		(g.namespace == "" || g.namespace == r.namespace) && (g.name == "" || g.name == r.name)
}

func qualified(resource, group string) string {
	if group == "" {
		return resource
	}
	name, subresource, found := strings.Cut(resource, "/")
	if found {
		return name + "." + group + "/" + subresource
	}
	return name + "." + group
}

// granted returns everything that the chart's roles grant to the accounts.
func granted(t *testing.T) []grant {
	t.Helper()
	objects := chart.Render(t, releaseName, namespace)
	var out []grant
	for _, object := range objects {
		if object.GetKind() != "ClusterRoleBinding" && object.GetKind() != "RoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding // a ClusterRoleBinding has the same members
		convert(t, object, &binding)
		role := findRole(t, objects, binding.RoleRef.Kind, binding.RoleRef.Name)
		for _, subject := range binding.Subjects {
			account := map[string]string{releaseName + "-controller": controller, releaseName + "-api": facade}[subject.Name]
			if account == "" || subject.Namespace != namespace {
				t.Errorf("%s %s is for %v, of whom nothing is known here", object.GetKind(), object.GetName(), subject)
			}
			out = append(out, grants(account, binding.Namespace, role)...)
		}
	}
	// The controllers bind these in each organization's namespace.
	role := findRole(t, objects, "ClusterRole", "findings-scanner")
	return slices.Concat(out, grants(scanner, "org-"+organizationName, role), grants(uploads, "org-"+organizationName, role),
		grants(operations, "org-"+organizationName, findRole(t, objects, "ClusterRole", "findings-operations")))
}

func findRole(t *testing.T, objects []*unstructured.Unstructured, kind, name string) rbacv1.ClusterRole {
	t.Helper()
	var role rbacv1.ClusterRole // a Role has the same members
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if at < 0 {
		t.Fatalf("the chart has no %s %s", kind, name)
	}
	convert(t, objects[at], &role)
	return role
}

func grants(account, in string, role rbacv1.ClusterRole) []grant {
	var out []grant
	for _, rule := range role.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						out = append(out, grant{account, role.Name, in, group, resource, verb, name})
					}
				}
			}
		}
	}
	return out
}

func convert(t *testing.T, from *unstructured.Unstructured, into any) {
	t.Helper()
	harness.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into))
}

// deployedArguments returns the arguments of the container in the component's Deployment.
func deployedArguments(t *testing.T, component string) []string {
	t.Helper()
	for _, object := range chart.Render(t, releaseName, namespace) {
		if object.GetKind() == "Deployment" && object.GetName() == releaseName+"-"+component {
			var deployment appsv1.Deployment
			convert(t, object, &deployment)
			return deployment.Spec.Template.Spec.Containers[0].Args
		}
	}
	t.Fatalf("the chart has no Deployment of %s", component)
	return nil
}

// request is a request in the API server's audit log.
type request struct {
	account               string
	verb, group, resource string
	namespace, name       string
	// forbidden by the roles. A request that a policy refuses was allowed by the roles.
	forbidden bool
}

func (r request) String() string {
	return fmt.Sprintf("%s: %s %s in namespace %q, name %q", r.account, r.verb, qualified(r.resource, r.group), r.namespace, r.name)
}

// requests returns the accounts' requests in the audit log.
func requests(t *testing.T) []request {
	t.Helper()
	content := harness.File(t, auditLog())
	var out []request
	lines := bufio.NewScanner(strings.NewReader(content))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb string
			User struct{ Username string }
			// ImpersonatedUser is the user whom the requester impersonates.
			ImpersonatedUser struct{ Username string }
			ObjectRef        struct{ Resource, Subresource, APIGroup, Namespace, Name string }
			// Annotations contain the authorizer's decision.
			Annotations map[string]string
		}
		harness.Must(t, json.Unmarshal(lines.Bytes(), &event))
		account := accountOf(event.User.Username)
		if as := accountOf(event.ImpersonatedUser.Username); as != "" {
			out = append(out, request{
				account: account, verb: "impersonate", resource: "serviceaccounts", namespace: event.ObjectRef.Namespace,
				name: nameOf(event.ImpersonatedUser.Username),
			})
			account = as
		}
		if account == "" || event.ObjectRef.Resource == "" {
			continue
		}
		resource := event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			resource += "/" + event.ObjectRef.Subresource
		}
		out = append(out, request{
			account: account, verb: event.Verb, group: event.ObjectRef.APIGroup, resource: resource,
			namespace: event.ObjectRef.Namespace, name: event.ObjectRef.Name,
			forbidden: event.Annotations["authorization.k8s.io/decision"] == "forbid",
		})
	}
	harness.Must(t, lines.Err())
	return out
}

// accountOf returns the account with that user name, "" for others.
func accountOf(username string) string {
	return map[string]string{
		"system:serviceaccount:" + namespace + ":" + releaseName + "-controller":                  controller,
		"system:serviceaccount:" + namespace + ":" + releaseName + "-api":                         facade,
		"system:serviceaccount:org-" + organizationName + ":scanner":                              scanner,
		"system:serviceaccount:org-" + organizationName + ":" + v1alpha1.UploadsServiceAccount:    uploads,
		"system:serviceaccount:org-" + organizationName + ":" + v1alpha1.OperationsServiceAccount: operations,
	}[username]
}

// nameOf returns the name of the service account with that user name.
func nameOf(username string) string { return username[strings.LastIndex(username, ":")+1:] }

// needed returns the grants without which a request would have been forbidden. If two grants allow
// a request, the request needs neither.
func needed(all []grant, made []request) map[grant]bool {
	out := map[grant]bool{}
	for _, r := range made {
		var by []grant
		for _, g := range all {
			if g.allows(r) {
				by = append(by, g)
			}
		}
		if len(by) == 1 {
			out[by[0]] = true
		}
	}
	return out
}
