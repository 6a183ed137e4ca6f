package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Client reads and writes the objects of imports.
type Client struct {
	client.Client
	// reader lists objects and skips those that cannot be read.
	reader *kube.Reader
	// WaitForTurn waits for the next turn. The error is the cause of ctx's end. nil: turns come at once and are never
	// over.
	WaitForTurn func(ctx context.Context) (Turn, error)
}

// Turn is permission to hold the findings of a tool in a project, or the issues of a pull request and the findings of a
// tool in its repository. Wait for no Lease and no other turn meanwhile.
type Turn interface {
	// Over reports whether the turn has lasted long and another organization waits: then leave what can wait to the next
	// turn.
	Over() bool
	// End gives the turn back. Call it once.
	End()
}

// Turn waits for the next turn.
func (c *Client) Turn(ctx context.Context) (Turn, error) {
	if c.WaitForTurn == nil {
		return endless{}, nil
	}
	return c.WaitForTurn(ctx)
}

// endless is the turn of a client without turns.
type endless struct{}

func (endless) Over() bool { return false }
func (endless) End()       {}

// NewClient returns a client for imports of scans and reviews. It does no discovery.
func NewClient(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	mapper := kube.NewMapper()
	mapper.Add(coordinationv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	c, err := client.New(kube.ClientConfig(config), client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	reader, err := kube.NewReader(config)
	return &Client{Client: c, reader: reader}, err
}

// Target is where findings go. Project is the default for batches that name no project.
type Target struct {
	Namespace, Repository, Project string
}

// of returns the project of a batch.
func (t *Target) of(b *Batch) string { return cmp.Or(b.Project, t.Project) }

// repository returns the repository, and the UIDs of the projects by name. It checks that they exist and belong
// together. In a dry run, objects that would be created count as existing, without a UID.
func (im *Importer) repository(ctx context.Context,
	batches []*Batch) (*v1alpha1.Repository, map[string]types.UID, error) {
	if im.options.DryRun && im.options.Found.Assumed() != nil {
		return im.options.Found.Repository, nil, nil
	}
	repository := &v1alpha1.Repository{}
	key := client.ObjectKey{Namespace: im.target.Namespace, Name: im.target.Repository}
	if err := Require(ctx, im.client, "repository", key, repository); err != nil {
		return nil, nil, err
	}
	projects := []string{}
	for _, b := range batches {
		projects = append(projects, im.target.of(b))
	}
	slices.Sort(projects)
	uids := map[string]types.UID{}
	for _, key.Name = range slices.Compact(projects) {
		project := &v1alpha1.Project{}
		err := Require(ctx, im.client, "project", key, project)
		if err == nil {
			err = checkBelongs(project, im.target.Repository, im.target.Repository)
		}
		if err != nil {
			return nil, nil, err
		}
		uids[key.Name] = project.UID
	}
	return repository, uids, nil
}

// RequireProjectOfReview returns the UID of the project that a review names. It checks that the project exists, since a
// review does not create one, and that it belongs to the repository. given is the repository as the user named it.
func RequireProjectOfReview(ctx context.Context, c client.Client, key client.ObjectKey,
	repository, given string) (types.UID, error) {
	project := &v1alpha1.Project{}
	found, err := find(ctx, c, "project", key, project)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", &RefusedError{missing("project", key) + "; a review creates no project: import a scan of the branch first, " +
			"or review without --project (over REST: POST /repos/OWNER/NAME/code-scanning/sarifs)"}
	}
	return project.UID, checkBelongs(project, repository, given)
}

// checkBelongs refuses a project of another repository. given is the repository as the user named it, because users do
// not know a name that an import derived from the full name.
func checkBelongs(project *v1alpha1.Project, repository, given string) error {
	of := string(project.Spec.RepositoryRef.Name)
	if of == repository {
		return nil
	}
	return &RefusedError{fmt.Sprintf("project %s belongs to repository %s, not to %s: give --repository %s, or another --project "+
		"(over REST upload to /v2/repos/%s/projects/%s/scans, or to another project)",
		project.Name, of, given, of, of, project.Name)}
}

// Require reads an object that must exist before anything is imported. kind is "repository" or "project", for messages.
// If the object does not exist or is being deleted, the error is a RefusedError.
func Require(ctx context.Context, c client.Client, kind string, key client.ObjectKey, into client.Object) error {
	found, err := find(ctx, c, kind, key, into)
	if err == nil && !found {
		return noSuch(kind, key)
	}
	return err
}

// find reads an object and reports whether it exists. It refuses one that is being deleted.
func find(ctx context.Context, c client.Client, kind string, key client.ObjectKey,
	into client.Object) (found bool, err error) {
	err = Retry(ctx, func(ctx context.Context) error { return c.Get(ctx, key, into) })
	switch {
	case kube.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s %s: %w", kind, key, err)
	case into.GetDeletionTimestamp() != nil:
		return true, &RefusedError{fmt.Sprintf("%s %q is being deleted: wait until it is gone, and create it again", kind, key.Name)}
	}
	return true, nil
}

// noSuch returns the error for a required object that does not exist, which the ClusterRole of scanners cannot create.
func noSuch(kind string, key client.ObjectKey) *RefusedError {
	return &RefusedError{missing(kind, key) + "; it must exist before the import; creating it " + requires(kind)}
}

// required adds to a message about a missing repository that is known by its full name how it can be found or created.
func required(kind, reason string) *RefusedError {
	return &RefusedError{reason + "; if one of them is this repository under an earlier name or address, " +
		"have its spec.fullName and spec.url corrected (verb report on repositories); " +
		"else create one before the import, which " + requires(kind)}
}

// requires returns what creating an object requires.
func requires(kind string) string {
	return fmt.Sprintf("requires the verbs create and report on %s.appsec.dev (ClusterRole findings-admin), "+
		"or spec.imports.create of the Organization, which lets imports create it", kube.Resource(kindName(kind)))
}

// missing returns the message that an object does not exist, and how to list those that do.
func missing(kind string, key client.ObjectKey) string {
	return noneOf(kind, fmt.Sprintf("%q", key.Name), key.Namespace)
}

// noneOf returns the message that no object fits the description, and how to list those that exist.
func noneOf(kind, description, namespace string) string {
	return fmt.Sprintf("there is no %s %s in namespace %q: list them with `kubectl get %s -n %s`", kind, description,
		namespace, kind, namespace)
}

// kindName returns a kind as manifests spell it.
func kindName(kind string) string { return strings.ToUpper(kind[:1]) + kind[1:] }

// applied is the body of an apply: only the spec, without the fields that the API server and controllers add.
type applied[S any] struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        appliedMeta `json:"metadata"`
	Spec            S           `json:"spec"`
}

type appliedMeta struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	UID             types.UID         `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
}

// absentVersion is a resource version that no object of ours has. An apply with it creates the object, and conflicts if
// the object exists.
const absentVersion = "1"

// apply sends a whole spec by server-side apply and returns the resulting metadata; nothing else is requested. With a
// resource version in metadata, apply fails with a conflict if the object has changed; with a UID, also if it was
// deleted. An apply with unknown fields is refused at any level of field validation, and strict validation would parse
// the body once more only to look for duplicate fields.
func apply[S any](ctx context.Context, c *Client, manager, kind string, metadata appliedMeta,
	spec S) (after *metav1.PartialObjectMetadata, err error) {
	body, err := json.Marshal(applied[S]{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind},
		Metadata: metadata, Spec: spec,
	})
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", kind, metadata.Name, err)
	}
	after = kube.MetadataOf(v1alpha1.GroupVersion.WithKind(kind))
	err = Retry(ctx, func(ctx context.Context) error {
		after.Name, after.Namespace = metadata.Name, metadata.Namespace
		return c.Patch(ctx, after, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(manager),
			client.ForceOwnership,
			client.FieldValidation(metav1.FieldValidationIgnore))
	})
	return after, ExplainQuota(err, kind)
}

// notInManager matches characters of a tool's name that a field manager may not contain.
var notInManager = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// fieldManager returns the field manager for a tool's imports: at most 128 bytes, in characters that the API server
// accepts.
func fieldManager(tool string) string {
	manager := v1alpha1.ScannerFieldManagerPrefix + notInManager.ReplaceAllString(tool, "-")
	return manager[:min(len(manager), v1alpha1.MaxFieldManagerLength)]
}
