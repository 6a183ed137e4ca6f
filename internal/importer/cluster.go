package importer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// NewClient returns a client for imports of scans and reviews: without a limit of its own, for the API
// server's priority and fairness is the one that counts, and without discovery.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsecv1alpha1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Finding", "Project", "Repository", "Review", "ReviewIssue", "Scan"} {
		mapper.Add(appsecv1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	config = rest.CopyConfig(config)
	config.QPS = -1
	return client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
}

// pageSize of a list.
const pageSize = 500

// mostExpired is how often a list that took too long is begun again.
const mostExpired = 3

// Target is where findings go.
type Target struct {
	Namespace, Repository, Project string
}

// repository returns the repository once it, the project and their bond are checked.
func (im *Importer) repository(ctx context.Context) (*appsecv1alpha1.Repository, error) {
	repository, project := &appsecv1alpha1.Repository{}, &appsecv1alpha1.Project{}
	if err := im.get(ctx, "repository", im.target.Repository, repository); err != nil {
		return nil, err
	}
	if err := im.get(ctx, "project", im.target.Project, project); err != nil {
		return nil, err
	}
	if of := string(project.Spec.RepositoryRef.Name); of != im.target.Repository {
		return nil, &RefusedError{fmt.Sprintf("project %s is of repository %s and not of %s: give --repository %s, or another --project", project.Name, of, im.target.Repository, of)}
	}
	return repository, nil
}

func (im *Importer) get(ctx context.Context, kind, name string, into client.Object) error {
	return Require(ctx, im.client, kind, client.ObjectKey{Namespace: im.target.Namespace, Name: name}, into)
}

// whoCreates completes the error about what does not exist: the ClusterRole of scanners does not help.
var whoCreates = map[string]string{
	"repository": ownRole("repositories"),
	"project":    ownRole("projects"),
}

func ownRole(resource string) string {
	return fmt.Sprintf("; that takes the verbs create and report on %s.appsec.dev, which an administrator has and no ClusterRole of findings-operator holds", resource)
}

// Require reads an object that must be there before anything is imported; kind is for
// messages. Where the object is not there, or going, the error is a RefusedError.
func Require(ctx context.Context, c client.Client, kind string, key client.ObjectKey, into client.Object) error {
	err := Retry(ctx, func(ctx context.Context) error { return c.Get(ctx, key, into) })
	switch {
	case apierrors.IsNotFound(err):
		return &RefusedError{fmt.Sprintf("there is no %s %q in namespace %q: look with `kubectl get %s -n %s`, and have it created before importing into it%s",
			kind, key.Name, key.Namespace, kind, key.Namespace, whoCreates[kind])}
	case err != nil:
		return fmt.Errorf("read %s %s: %w", kind, key, err)
	case into.GetDeletionTimestamp() != nil:
		return &RefusedError{fmt.Sprintf("%s %q is being deleted: wait until it is gone, and create it anew", kind, key.Name)}
	}
	return nil
}

// findings lists what is there of one tool in the project.
func (im *Importer) findings(ctx context.Context, b *Batch) ([]appsecv1alpha1.Finding, error) {
	var out []appsecv1alpha1.Finding
	page := ""
	for expired := 0; ; {
		list := &appsecv1alpha1.FindingList{}
		err := Retry(ctx, func(ctx context.Context) error {
			return im.client.List(ctx, list, client.InNamespace(im.target.Namespace), im.selector(b),
				client.Limit(pageSize), client.Continue(page))
		})
		switch {
		case apierrors.IsResourceExpired(err) && expired < mostExpired:
			// The list took longer than the API server keeps old versions: begin again.
			out, page = nil, ""
			expired++
			continue
		case err != nil:
			return nil, fmt.Errorf("list the findings of project %s: %w", im.target.Project, err)
		}
		for i := range list.Items {
			list.Items[i].ManagedFields = nil
		}
		out = append(out, list.Items...)
		if page = list.Continue; page == "" {
			return out, nil
		}
	}
}

// scans returns the categories of the tool's scans in the project, by name, and whether one of another category
// than the batch's succeeded: then several jobs share the tool, and each replaces what it found itself.
func (im *Importer) scans(ctx context.Context, b *Batch) (categories scanCategories, shared bool, err error) {
	categories = scanCategories{}
	for page := ""; ; {
		list := &appsecv1alpha1.ScanList{}
		err := Retry(ctx, func(ctx context.Context) error {
			return im.client.List(ctx, list, client.InNamespace(im.target.Namespace), im.selector(b),
				client.Limit(pageSize), client.Continue(page))
		})
		if err != nil {
			return nil, false, fmt.Errorf("list the scans of project %s: %w", im.target.Project, err)
		}
		for i := range list.Items {
			scan := &list.Items[i]
			categories[scan.Name] = scan.Spec.Category
			shared = shared || scan.Spec.Category != b.Category && scan.Spec.Outcome == appsecv1alpha1.ScanSucceeded
		}
		if page = list.Continue; page == "" {
			return categories, shared, nil
		}
	}
}

// selector of a batch's findings or scans. The API server looks at each object, field by field until one
// differs: those that tell most apart come first.
func (im *Importer) selector(b *Batch, more ...fields.Selector) client.MatchingFieldsSelector {
	return client.MatchingFieldsSelector{Selector: fields.AndSelectors(append([]fields.Selector{
		fields.OneTermEqualSelector("spec.projectRef.name", im.target.Project),
		fields.OneTermEqualSelector("spec.tool", b.Tool),
		fields.OneTermEqualSelector("spec.repositoryRef.name", im.target.Repository),
	}, more...)...)}
}

// lastCompleted returns the start and the name of the youngest scan that succeeded.
func (im *Importer) lastCompleted(ctx context.Context, b *Batch) (time.Time, string, error) {
	succeeded := im.selector(b, fields.OneTermEqualSelector("spec.category", string(b.Category)), fields.OneTermEqualSelector("spec.outcome", string(appsecv1alpha1.ScanSucceeded)))
	var last time.Time
	var name, page string
	for {
		list := &appsecv1alpha1.ScanList{}
		err := Retry(ctx, func(ctx context.Context) error {
			return im.client.List(ctx, list, client.InNamespace(im.target.Namespace), succeeded,
				client.Limit(pageSize), client.Continue(page))
		})
		if err != nil {
			return last, name, fmt.Errorf("list the scans of project %s: %w", im.target.Project, err)
		}
		for i := range list.Items {
			if started := list.Items[i].Spec.StartedAt.Time; started.After(last) {
				last, name = started, list.Items[i].Name
			}
		}
		if page = list.Continue; page == "" {
			return last, name, nil
		}
	}
}

// applied is an object as it is applied: its spec alone, without what the API server and
// controllers add.
type applied[S any] struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        appliedMeta `json:"metadata"`
	Spec            S           `json:"spec"`
}

type appliedMeta struct {
	Name            string    `json:"name"`
	Namespace       string    `json:"namespace"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// notThere is a resource version that no object of ours has: an apply that carries it creates, and
// conflicts with an object that is there.
const notThere = "1"

// apply sends a whole spec by server-side apply and returns the resource version that it made or found;
// no more of the object is asked for. With a resource version it fails with a conflict where the object
// is another by now, with a UID where it is gone too. A field that the schema has not is refused whatever the validation of fields; all
// that this would do is parse the body once more in search of members that are there twice.
func apply[S any](ctx context.Context, im *Importer, manager, kind string, metadata appliedMeta, spec S) (resourceVersion string, err error) {
	metadata.Namespace = im.target.Namespace
	body, err := json.Marshal(applied[S]{
		TypeMeta: metav1.TypeMeta{APIVersion: appsecv1alpha1.GroupVersion.String(), Kind: kind},
		Metadata: metadata, Spec: spec,
	})
	if err != nil {
		return "", fmt.Errorf("encode %s %s: %w", kind, metadata.Name, err)
	}
	after := &metav1.PartialObjectMetadata{}
	after.SetGroupVersionKind(appsecv1alpha1.GroupVersion.WithKind(kind))
	err = Retry(ctx, func(ctx context.Context) error {
		after.Name, after.Namespace = metadata.Name, metadata.Namespace
		return im.client.Patch(ctx, after, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(manager), client.ForceOwnership,
			client.FieldValidation(metav1.FieldValidationIgnore))
	})
	return after.ResourceVersion, explainQuota(err, kind)
}

// fieldManager of a tool's imports: at most 128 bytes, of characters that the API server takes.
func fieldManager(tool string) string {
	manager := appsecv1alpha1.ScannerFieldManagerPrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, tool)
	return manager[:min(len(manager), appsecv1alpha1.MaxFieldManagerLength)]
}
