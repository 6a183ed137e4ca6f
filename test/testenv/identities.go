package testenv

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The operator's own service accounts, in SystemNamespace.
const (
	ControllerServiceAccount = "findings-controller"
	APIServiceAccount        = "findings-api"
)

// Role is a ClusterRole that is bound in an organization's namespace.
type Role string

// The roles.
const (
	Viewer  Role = "findings-viewer"
	Triager Role = "findings-triager"
	Scanner Role = "findings-scanner"
	Admin   Role = "findings-admin"
	// Operations is bound to the identity that writes the decisions of triage operations.
	Operations Role = "findings-operations"
)

// User returns the subject of a binding.
func User(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// Group returns the subject of a binding.
func Group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

// Account returns the subject of a binding to a service account.
func Account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// Bind returns a binding to the role in the namespace.
func Bind(namespace, name string, role Role, to ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: string(role)},
		Subjects:   to,
	}
}

// Grant returns a ClusterRole with the rules, and its binding in every namespace.
func Grant(name string, to rbacv1.Subject, rules ...rbacv1.PolicyRule) []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{to},
		},
	}
}

// ServiceAccountUsername returns the API server's username for a service account.
func ServiceAccountUsername(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// Controller returns a config with a token of the controllers' service account. The admission
// policies let no other user write a status, so tests that run controllers, or set a status in
// their place, use this config.
func (e *Environment) Controller(ctx context.Context) (*rest.Config, error) {
	return e.operator(ctx, ControllerServiceAccount)
}

// operator returns a config with a token of one of the operator's own service accounts. All calls share one token,
// which is valid for longer than any run.
func (e *Environment) operator(ctx context.Context, account string) (*rest.Config, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	config, known := e.operators[account]
	if !known {
		var err error
		if config, err = e.ServiceAccount(ctx, SystemNamespace, account); err != nil {
			return nil, err
		}
		if e.operators == nil {
			e.operators = map[string]*rest.Config{}
		}
		e.operators[account] = config
	}
	return rest.CopyConfig(config), nil
}

// grantStatusUpdates lets tests that set a status in place of the controllers read and update it, which is easiest in
// Go. The controllers themselves patch; test/privilege tries them without this.
func (e *Environment) grantStatusUpdates(ctx context.Context) error {
	const name = "testenv-stand-in"
	for _, object := range Grant(name, Account(SystemNamespace, ControllerServiceAccount), []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"*"}, Verbs: []string{"get"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"*/status"}, Verbs: []string{"update"}},
	}...) {
		if err := e.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	return nil
}

// Facade returns a config with a token of the REST facade's service account.
func (e *Environment) Facade(ctx context.Context) (*rest.Config, error) {
	return e.operator(ctx, APIServiceAccount)
}

// Operator describes both of the operator's processes, each with a token of its own service
// account. The flags are added to the facade's. The controllers may send webhooks to this machine. Without a binary
// this repository's is built; the default namespace is that of their accounts.
func (e *Environment) Operator(ctx context.Context, o harness.Operator,
	flags ...string) (controller, facade *harness.Component, err error) {
	o.Namespace = cmp.Or(o.Namespace, SystemNamespace)
	if o.Binary == "" {
		programs, err := harness.Build(ctx)
		if err != nil {
			return nil, nil, err
		}
		o.Binary = filepath.Join(programs, "findings-operator")
	}
	config, err := e.Controller(ctx)
	if err != nil {
		return nil, nil, err
	}
	if controller, err = o.Controller("controller", config, "--webhook-allow-cidr=127.0.0.0/8"); err != nil {
		return nil, nil, err
	}
	if config, err = e.Facade(ctx); err != nil {
		return nil, nil, err
	}
	facade, err = o.Facade("facade", config, flags...)
	return controller, facade, err
}

// NewClient returns a client for config that reads from the API server, not from a cache. It knows the kinds that
// e.Client has looked up.
func (e *Environment) NewClient(config *rest.Config) (client.WithWatch, error) {
	options := client.Options{Scheme: e.Scheme}
	if e.Client != nil { // it is made by this function too
		options.Mapper = e.Client.RESTMapper()
	}
	return client.NewWithWatch(config, options)
}

// As returns a client with the rights of config.
func (e *Environment) As(t testing.TB, config *rest.Config) client.WithWatch {
	t.Helper()
	c, err := e.NewClient(config)
	harness.Must(t, err)
	return c
}

// Impersonate returns a config of another user, who has the rights of the groups too.
func (e *Environment) Impersonate(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(e.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// Member returns a config with a token of a service account of the namespace. It creates the
// service account and binds it to the role in that namespace only; the role must allow reading
// findings. It returns once the API server has observed the binding.
func (e *Environment) Member(ctx context.Context, namespace, name string, role Role) (*rest.Config, error) {
	config, err := e.ServiceAccount(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return config, e.bind(ctx, namespace, name, role)
}

// LetUploads binds the identity of uploads in an organization's namespace, as the Organization controller does.
func (e *Environment) LetUploads(ctx context.Context, namespace string) error {
	return e.bind(ctx, namespace, v1alpha1.UploadsServiceAccount, Scanner)
}

// LetOperate binds the identity of triage operations in an organization's namespace, as the Organization controller
// does.
func (e *Environment) LetOperate(ctx context.Context, namespace string) error {
	return e.bind(ctx, namespace, v1alpha1.OperationsServiceAccount, Operations)
}

// bind binds a service account to the role in its namespace, and returns once the API server has observed
// the binding.
func (e *Environment) bind(ctx context.Context, namespace, name string, role Role) error {
	binding := Bind(namespace, name+"-"+string(role), role, Account(namespace, name))
	if err := e.Client.Create(ctx, binding); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bind %s in %s: %w", role, namespace, err)
	}
	check := func(ctx context.Context) error {
		return e.reviewAccess(ctx, ServiceAccountUsername(namespace, name), authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "get", Group: v1alpha1.GroupName, Resource: "findings",
		})
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return harness.Until(ctx, fmt.Sprintf("%s is bound to %s in %s", name, role, namespace), check)
}

// NewOrganization creates an Organization with its namespace, as the Organization controller does,
// for tests that run no controllers. It returns the namespace's name.
func (e *Environment) NewOrganization(ctx context.Context, name string) (string, error) {
	organization := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.Client.Create(ctx, organization); err != nil {
		return "", fmt.Errorf("create organization %s: %w", name, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        v1alpha1.NamespacePrefix + name,
		Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: string(organization.UID)},
	}}
	if err := e.Client.Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	config, err := e.Controller(ctx)
	if err != nil {
		return "", err
	}
	controller, err := e.NewClient(config)
	if err != nil {
		return "", err
	}
	organization.Status.Namespace = namespace.Name
	if err := controller.Status().Update(ctx, organization); err != nil {
		return "", fmt.Errorf("set the status of organization %s: %w", name, err)
	}
	return namespace.Name, nil
}

func (e *Environment) checkAccess(ctx context.Context, access probeAccess) error {
	return e.reviewAccess(ctx, ServiceAccountUsername(SystemNamespace, access.account), authorizationv1.ResourceAttributes{
		Verb: access.verb, Group: access.group, Resource: access.resource,
	})
}

// reviewAccess returns an error unless the user has the described access.
func (e *Environment) reviewAccess(ctx context.Context, user string,
	attributes authorizationv1.ResourceAttributes) error {
	review := &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &attributes},
	}
	if err := e.Client.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%s may not %s %s.%s", user, attributes.Verb, attributes.Resource, attributes.Group)
	}
	return nil
}
