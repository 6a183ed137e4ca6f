package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path"
	"syscall"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// A finalizer may already have removed the findings of a project that is being deleted.
func TestWhatIsBeingDeletedIsRefused(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build()
	for kind, object := range map[string]client.Object{
		"repository": builder.Repository("repo").In("org-acme").Build(),
		"project":    builder.Project("proj").In("org-acme").Build(),
	} {
		wants := func(state string, exists bool, refusal string) {
			t.Helper()
			found, err := find(t.Context(), c, kind, client.ObjectKeyFromObject(object), object)
			harness.Same(t, kind+" "+state+": found", exists, found)
			harness.ErrorContains(t, kind+" "+state, err, refusal)
		}
		wants("absent", false, "")
		object.SetFinalizers([]string{"example.com/hold"})
		harness.Must(t, c.Create(t.Context(), object))
		wants("present", true, "")
		harness.Must(t, c.Delete(t.Context(), object))
		wants("deleting", true, "is being deleted")
	}
}

// Another client may create the repository and delete it again at the same time.
func TestARepositoryThatIsGoneAgainIsNamedAsItWasGiven(t *testing.T) {
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return apierrors.NewAlreadyExists(schema.GroupResource{}, o.GetName())
		},
	})
	place := Place{Namespace: "org-acme", Repository: "acme/shop", OfPullRequest: true}
	p := &provisioner{client: &Client{Client: c}, place: place, found: &Found{}}
	err := p.createRepository(t.Context(), provision.Facts{FullName: place.Repository}, nil)
	harness.ErrorContains(t, "the refusal", err, `there is no repository with spec.fullName "acme/shop" in namespace "org-acme": `+
		"list them with `kubectl get repository -n org-acme`; if one of them is this repository under an earlier name or address, "+
		"have its spec.fullName and spec.url corrected (verb report on repositories); else create one before the import, which requires")
}

// The quota says nothing about rights. It soon counts the kind.
func TestAQuotaThatIsNotCountedYetIsNoLackOfRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build(), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
				tries++
				return apierrors.NewForbidden(schema.GroupResource{}, o.GetName(), errors.New("status unknown for quota: findings-quota"))
			},
		})
		p := &provisioner{client: &Client{Client: c}, place: Place{Namespace: "org-acme"}, found: &Found{}}
		_, err := p.create(t.Context(), "project", builder.Project("web").In("org-acme").Build())
		harness.ErrorContains(t, "the error", err, "create project org-acme/web: ", "status unknown for quota")
		harness.Same(t, "it is tried again", true, tries > 1)
	})
}

// Else nobody would learn that a misspelt name has made a repository.
func TestWhatATryWithoutAnAnswerCreatedIsReported(t *testing.T) {
	both := []Provisioned{
		{Kind: "Repository", Name: provision.RepositoryName("", "acme/shop"), Of: "acme/shop"},
		{Kind: "Project", Name: "web", Of: "web"},
	}
	lost := apierrors.NewTimeoutError("the answer was lost", 0)
	full := apierrors.NewForbidden(schema.GroupResource{}, "shop", errors.New("exceeded quota: imports"))
	uncalled := errors.New(`failed calling webhook "x"`)
	for reason, tc := range map[string]struct {
		manager string // of both; empty: an import
		foreign string // the kind that was created for another repository
		first   error  // nil: that the answer was lost
		later   error  // nil: that it exists
		outage  int    // of so many reads after the creation
		want    []Provisioned
	}{
		"the next answer is that it exists":            {want: both},
		"it took the last room":                        {later: full, want: both},
		"no try is answered":                           {later: lost, want: both},
		"the answer breaks off":                        {first: errors.New("stream error"), want: both},
		"the first try found an overload":              {first: apierrors.NewTooManyRequests("full", 1)},
		"the first try found no server":                {first: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
		"the first try was refused for a webhook":      {first: apierrors.NewInternalError(uncalled)},
		"it cannot be read for a while":                {outage: attempts},
		"it took the last room, and cannot be read":    {later: full, outage: attempts},
		"another client was faster":                    {manager: "kubectl-create"},
		"another client took the last room":            {manager: "kubectl-create", later: full},
		"another repository has the Repository's name": {foreign: "Repository", want: both[1:]},
		"another repository has the Project's name":    {foreign: "Project", want: both[:1]},
		"another folder has the Project's name":        {foreign: "folder", want: both[:1]},
	} {
		unread := 0
		c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(testenv.NewScheme()).Build(), interceptor.Funcs{
			Create: func(ctx context.Context, to client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				unread = tc.outage
				if err := to.Create(ctx, o.DeepCopyObject().(client.Object), opts...); err != nil { //nolint:forcetypeassert // it is one
					return cmp.Or(tc.later, err)
				}
				return cmp.Or(tc.first, error(lost))
			},
			Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
				if unread > 0 {
					unread--
					return apierrors.NewServiceUnavailable("no leader")
				}
				err := to.Get(ctx, key, into, opts...)
				into.SetManagedFields([]metav1.ManagedFieldsEntry{
					{Manager: v1alpha1.ControllerFieldManager}, {Manager: cmp.Or(tc.manager, provisionManager)},
				})
				switch into := into.(type) {
				case *v1alpha1.Repository:
					if tc.foreign == "Repository" {
						into.Spec.FullName = "acme/other"
					}
				case *v1alpha1.Project:
					if tc.foreign == "Project" {
						into.Spec.RepositoryRef.Name = "other"
					}
					if tc.foreign == "folder" {
						into.Spec.RelativePath = "moved"
					}
				}
				return err
			},
		})
		place := Place{Namespace: "org-acme", Repository: "acme/shop", OfPullRequest: true}
		p := &provisioner{client: &Client{Client: c}, place: place, found: &Found{}}
		synctest.Test(t, func(t *testing.T) {
			err := p.createRepository(t.Context(), provision.Facts{FullName: place.Repository}, nil)
			if tc.outage > 0 {
				harness.ErrorContains(t, reason, err, "no leader")
			} else if (err != nil) != (tc.foreign == "Repository") {
				t.Errorf("%s: error %v", reason, err)
			}
			if p.found.Repository == nil {
				return
			}
			err = p.createProject(t.Context(), "web", "web")
			if (err != nil) != (tc.foreign == "Project") {
				t.Errorf("%s: error %v", reason, err)
			}
		})
		harness.Same(t, "reported if "+reason, tc.want, p.found.Provisioned)
		if p.found.Repository != nil {
			harness.Same(t, "the projects found", 1, len(p.found.Projects))
		}
	}
}

// The client library would repeat the creation by itself, and report only that the object exists.
func TestACreationWhoseAnswerAsksToTryAgainIsReported(t *testing.T) {
	var stored *v1alpha1.Repository
	config := &rest.Config{Host: harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = stored
		code := http.StatusOK
		switch {
		case r.Method != http.MethodPost:
		case stored == nil:
			stored = &v1alpha1.Repository{}
			harness.Must(t, json.NewDecoder(r.Body).Decode(stored))
			stored.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: provisionManager}}
			code, answer = harness.Refusal(apierrors.NewServiceUnavailable("the answer was lost"))
			w.Header().Set("Retry-After", "0")
		default:
			code, answer = harness.Refusal(apierrors.NewAlreadyExists(schema.GroupResource{}, stored.Name))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		harness.Must(t, json.NewEncoder(w).Encode(answer))
	}))}
	c, err := NewClient(config)
	harness.Must(t, err)
	p := &provisioner{client: c, place: Place{Namespace: "org-acme"}, found: &Found{}}
	created, err := p.create(t.Context(), "repository", builder.Repository("shop").In("org-acme").Build())
	harness.Must(t, err)
	harness.Same(t, "it is reported as created", true, created)
}

func TestAReviewNamesAKnownRepositoryAsItWasGiven(t *testing.T) {
	repository := builder.Repository("acme-shop-x7k2").Build()
	repository.Spec.FullName = "acme/shop"
	project := builder.Project("payments").Repository("acme-payments-q3zt").Build()
	c := answering(t, func(r *http.Request) (code int, object any) {
		switch path.Base(r.URL.Path) {
		case "repositories":
			return http.StatusOK, v1alpha1.RepositoryList{Items: []v1alpha1.Repository{*repository}}
		case repository.Name:
			return http.StatusOK, repository
		}
		return http.StatusOK, project
	})
	place := Place{Namespace: "org-acme", Repository: "acme/shop", Project: project.Name, OfPullRequest: true}
	_, err := Provision(t.Context(), c, place, nil)
	harness.ErrorContains(t, "the refusal", err, "belongs to repository acme-payments-q3zt, not to acme/shop: give")
}
