package importer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

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

// RequireSame returns a RefusedError if the object that had the UID when the import began is being deleted or was
// deleted, even if it was created again. kind is "repository" or "project".
func RequireSame(ctx context.Context, c client.Client, kind string, key client.ObjectKey, uid types.UID) error {
	object := kube.MetadataOf(v1alpha1.GroupVersion.WithKind(kindName(kind)))
	found, err := find(ctx, c, kind, key, object)
	if err == nil && (!found || object.UID != uid) {
		return &RefusedError{fmt.Sprintf("%s %q was deleted during the import: if it is still needed, create it again, "+
			"and import again", kind, key.Name)}
	}
	return err
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
