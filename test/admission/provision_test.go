package admission_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func provisioned(name string) client.Object {
	return builder.Repository(name).URL("https://github.com/acme/shop").Mutate(func(r *v1alpha1.Repository) {
		r.Spec = v1alpha1.RepositorySpec{
			Provider: "github", FullName: "acme/shop", URL: "https://github.com/acme/shop", CloneURL: "https://github.com/acme/shop.git",
			ScanBranch: "main", ScanEnabled: true, LastCommit: &v1alpha1.Commit{Hash: "8f3e1c2d"},
		}
	}).Build()
}

func provisionedProject(name string) client.Object {
	return builder.Project(name).Mutate(func(p *v1alpha1.Project) {
		p.Spec = v1alpha1.ProjectSpec{RepositoryRef: p.Spec.RepositoryRef, DisplayName: "api", RelativePath: "services/api"}
	}).Build()
}

// letImports sets in the Organization what imports may create, and waits until the policy has
// observed it.
func letImports(t *testing.T, name string, imports *v1alpha1.OrganizationImports, until func(g Gomega)) {
	t.Helper()
	testenv.Change(t, env, builder.Organization(name).Build(), func(o *v1alpha1.Organization) { o.Spec.Imports = imports })
	harness.Eventually(t, until)
}

func TestImportsCreateWhereTheOrganizationLetsThem(t *testing.T) {
	c := newCast(t, "provisioning")
	other := newCast(t, "provisions-nothing")
	inhabit(t, c.namespace)
	creating := func(g Gomega, name who, object func(string) client.Object, want bool) {
		err := creates(object)(t, c.as(name), c.namespace)
		g.Expect(err == nil).To(Equal(want), "%s: %v", name, err)
		if err != nil {
			g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		}
	}
	byImports := func(want bool) func(g Gomega) {
		return func(g Gomega) {
			for _, name := range []who{scanner, uploads} {
				creating(g, name, provisioned, want)
				creating(g, name, provisionedProject, want)
			}
		}
	}
	harness.Eventually(t, byImports(false)) // off by default
	letImports(t, "provisioning", &v1alpha1.OrganizationImports{}, byImports(false))
	letImports(t, "provisioning", &v1alpha1.OrganizationImports{Create: true}, byImports(true))
	// The policy that looks at the Organization does not refuse right after a start of kube-apiserver; the label does then.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	env.Patch(t, namespace, `{"metadata":{"labels":{"`+v1alpha1.ImportsCreateLabel+`":"false"}}}`)
	harness.Eventually(t, byImports(false))
	env.Patch(t, namespace, `{"metadata":{"labels":{"`+v1alpha1.ImportsCreateLabel+`":null}}}`)
	harness.Eventually(t, byImports(true))

	g := NewWithT(t)
	for _, name := range []who{viewer, triager, editor, facade, controller} {
		creating(g, name, provisioned, false)
	}
	for reason, tried := range map[string]try{
		"a description is no import's": creates(func(name string) client.Object {
			repository := provisioned(name).(*v1alpha1.Repository) //nolint:forcetypeassert // it is one
			repository.Spec.Description = "x"
			return repository
		}),
		"what people say is people's": creates(described),
		"an owner deletes": creates(func(name string) client.Object {
			repository := provisioned(name)
			repository.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "0"}})
			return repository
		}),
		"a repository is not corrected":    patches(repositoryOf, `{"spec":{"scanBranch":"trunk"}}`),
		"a project is not corrected":       patches(projectOf, `{"spec":{"relativePath":"services"}}`),
		"a repository is not deleted":      deletes(repositoryOf),
		"a repository's status is not its": patchesStatus(repositoryOf, `{"status":{"projects":3}}`),
	} {
		for _, name := range []who{scanner, uploads} {
			wantRefusal(t, string(name)+", "+reason, tried(t, c.as(name), c.namespace))
		}
	}
	// The other organization has not allowed it.
	wantRefusal(t, "leave in another organization", creates(provisioned)(t, other.as(scanner), other.namespace))
	// A namespace that belongs to no Organization allows nothing.
	stray := testenv.Create(t, env, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-provisions-stray"}})
	config, err := env.Member(t.Context(), stray.Name, "scanner", testenv.Scanner)
	harness.Must(t, err)
	strayScanner := env.As(t, config)
	wantRefusal(t, "in a namespace of no organization", creates(provisioned)(t, strayScanner, stray.Name), "which is no Organization's")
	// The setting does not limit people.
	for _, name := range []who{reporter, admin} {
		g.Expect(creates(provisioned)(t, other.as(name), other.namespace)).To(Succeed())
	}

	letImports(t, "provisioning", &v1alpha1.OrganizationImports{Create: true, MaxRepositories: new(int32(0))}, func(g Gomega) {
		creating(g, scanner, provisioned, false)
		creating(g, scanner, provisionedProject, true)
	})
	letImports(t, "provisioning", &v1alpha1.OrganizationImports{Create: true, MaxProjects: new(int32(0))}, func(g Gomega) {
		creating(g, scanner, provisioned, true)
		creating(g, scanner, provisionedProject, false)
	})
	letImports(t, "provisioning", nil, byImports(false))
}
