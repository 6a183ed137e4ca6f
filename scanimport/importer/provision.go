package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// provisionManager is the field manager of objects that imports create.
const provisionManager = v1alpha1.ScannerFieldManagerPrefix + "provision"

// Provisioned is a Repository or a Project that an import created, or would create.
type Provisioned struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Of is the repository's full name or the project's folder, if any.
	Of string `json:"of,omitempty"`
	// ScanBranch is the repository's scan branch: only its results are imported from now on. Empty if unknown.
	ScanBranch string `json:"scanBranch,omitempty"`
	// Beside reports whether the repository of a Project had others, which may have had its results until now.
	Beside bool `json:"-"`
}

func (p Provisioned) String() string {
	text := strings.ToLower(p.Kind) + " " + p.Name
	if p.Of != "" {
		text += " (" + p.Of + ")"
	}
	return text
}

// warning describes what was created, or with DryRun would be, and the consequences.
func (p Provisioned) warning(dryRun bool) string {
	text := p.String() + " did not exist, and was created"
	if dryRun {
		text = p.String() + " does not exist, and would be created"
	}
	if p.ScanBranch != "" {
		text += ". Only results of its branch " + p.ScanBranch + " are imported: set spec.scanBranch if that is not its main branch"
	}
	if p.HasNoBranch() {
		text += ". It has no branch: until you set spec.scanBranch, uploads that name a branch are refused"
	}
	if hint := p.IfRenamed(); hint != "" {
		text += "; " + hint
	}
	return text
}

// Warnings returns a warning for each of the objects.
func Warnings(objects []Provisioned, dryRun bool) []string {
	var all []string
	for _, object := range objects {
		all = append(all, object.warning(dryRun))
	}
	return all
}

// HasNoBranch reports whether the created object is a Repository without a branch: it refuses uploads that name one.
func (p Provisioned) HasNoBranch() bool { return p.Kind == "Repository" && p.ScanBranch == "" }

// IfRenamed returns what to do if the repository existed under another full name or address, or if another project had
// the results of the created one. It is empty for a repository's first project.
func (p Provisioned) IfRenamed() string {
	switch {
	case p.Kind == "Repository":
		return "if the repository was renamed or moved, its decisions are still with the earlier Repository: " +
			"see docs/kinds/repository.md"
	case p.Beside:
		return "if its results were in another project before, for example because a folder was renamed, their decisions " +
			"are still there: see docs/kinds/project.md"
	}
	return ""
}

// Place is the target of an import as the user names it. Missing objects are created if the organization allows imports
// to do so.
type Place struct {
	Namespace string
	// Repository is the name of the Repository, or its full name, which contains a slash.
	Repository string
	// Project is the name of the Project. Empty: see Patterns. The project of a pull request must exist.
	Project string
	// Folder is the path of a Project to create; empty for the whole repository.
	Folder string
	// Patterns select the folders that are projects, if no Project is named.
	Patterns provision.Patterns
	// Claims holds what the caller knows about the repository in addition to the batches.
	Claims provision.Claims
	// OfPullRequest means that the batches belong to a pull request: their branch and commit are not recorded in the
	// repository, and no project is looked up or created.
	OfPullRequest bool
	// Check is called with the repository before its projects are looked up, and with nil before a repository is created.
	// Its error ends the search. nil: no check.
	Check func(repository *v1alpha1.Repository) error
	// DryRun creates nothing: creations are sent to the API server as dry runs.
	DryRun bool
}

// Found holds the objects that an import goes to.
type Found struct {
	Repository *v1alpha1.Repository
	// Projects holds the named project, or all projects of the repository. With DryRun it includes those that would be
	// created.
	Projects []v1alpha1.Project
	// Provisioned holds the objects that were created, or with DryRun would be.
	Provisioned []Provisioned
}

// Provision finds the repository and the projects of an import, and creates missing ones. If the organization does not
// allow that, it returns a RefusedError that names the missing object. Existing objects are not changed. After an
// error, Found.Provisioned holds the objects that were created before it, which stay.
func Provision(ctx context.Context, c *Client, place Place, batches []*Batch) (*Found, error) {
	if place.Check == nil {
		place.Check = func(*v1alpha1.Repository) error { return nil }
	}
	p := &provisioner{client: c, place: place, found: &Found{}}
	if err := p.repository(ctx, batches); err != nil {
		return p.found, err
	}
	created := len(p.found.Provisioned) > 0
	switch {
	case place.OfPullRequest && created: // its project was checked before
		return p.found, nil
	case place.OfPullRequest:
		return p.found, p.projectOfReview(ctx, p.found.Repository.Name)
	case !created:
		if err := place.Check(p.found.Repository); err != nil {
			return p.found, err
		}
	}
	return p.found, p.projects(ctx, batches)
}

// Assumed returns the repository that an import with DryRun uses; nil if everything exists, or f is nil.
func (f *Found) Assumed() *v1alpha1.Repository {
	if f == nil || len(f.Provisioned) == 0 {
		return nil
	}
	return f.Repository
}

type provisioner struct {
	client *Client
	place  Place
	found  *Found
	// hadProjects reports whether the repository had projects before the import.
	hadProjects bool
}

func (p *provisioner) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: p.place.Namespace, Name: name}
}

// byFullName reports whether the user gave the repository's full name.
func (p *Place) byFullName() bool { return strings.Contains(p.Repository, "/") }

// repository finds or creates the repository.
func (p *provisioner) repository(ctx context.Context, batches []*Batch) error {
	facts := p.place.Facts(batches)
	exists := func(ctx context.Context) (found bool, err error) { return p.findRepository(ctx, facts) }
	if found, err := exists(ctx); err != nil || found {
		return err
	}
	if err := provision.CheckFullName(facts.FullName); err != nil && p.place.byFullName() {
		return &RefusedError{noneOf("repository", described(facts.FullName, ""), p.place.Namespace) + notCreated + err.Error()}
	}
	if err := p.place.Check(nil); err != nil {
		return err
	}
	// If two imports describe one new repository differently, only one creates it.
	lease := fingerprints.Hash("repository", cmp.Or(strings.ToLower(facts.FullName), p.place.Repository))
	return p.createOnce(ctx, lease, exists, func(ctx context.Context) error {
		return p.createRepository(ctx, facts, batches)
	})
}

// createOnce creates an object that was not found. Imports that do so under the same Lease go one after another, and
// look for the object again first. A dry run creates nothing and takes no Lease.
func (p *provisioner) createOnce(ctx context.Context, lease string,
	exists func(ctx context.Context) (found bool, err error), create func(ctx context.Context) error) error {
	if p.place.DryRun {
		return create(ctx)
	}
	return WithLease(ctx, p.client, p.key("import-"+lease), func(string) {}, func(ctx context.Context, _ Held) error {
		if found, err := exists(ctx); err != nil || found {
			return err
		}
		return create(ctx)
	})
}

// Facts returns what the place and the files of the batches tell about the repository.
func (p *Place) Facts(batches []*Batch) provision.Facts {
	claims := p.Claims
	claims.URLs = slices.Clone(claims.URLs)
	if p.byFullName() {
		claims.FullName = p.Repository
	}
	for _, b := range batches {
		if b.Repository != "" && !slices.Contains(claims.URLs, b.Repository) {
			claims.URLs = append(claims.URLs, b.Repository)
		}
		claims.Branch, claims.Commit = cmp.Or(claims.Branch, b.Branch), cmp.Or(claims.Commit, b.Commit)
	}
	if p.OfPullRequest {
		claims.Branch, claims.Commit = "", ""
	}
	return claims.Facts()
}

// findRepository reports whether the repository exists.
func (p *provisioner) findRepository(ctx context.Context, facts provision.Facts) (found bool, err error) {
	if !p.place.byFullName() {
		return p.get(ctx, p.place.Repository)
	}
	repository, err := p.byFacts(ctx, facts)
	if err != nil || repository == nil {
		return false, err
	}
	return p.get(ctx, repository.Name)
}

// byFacts returns the organization's repository that matches the facts, or nil.
func (p *provisioner) byFacts(ctx context.Context, facts provision.Facts) (*v1alpha1.Repository, error) {
	repositories, unreadable, err := List[v1alpha1.Repository](ctx, p.client, p.place.Namespace, fields.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the repositories in namespace %s: %w", p.place.Namespace, err)
	}
	found, err := provision.Find(repositories, facts)
	switch {
	case err != nil:
		return nil, &RefusedError{err.Error() + ": name one of them"}
	case found == nil:
		return nil, RefuseUnreadable("repository", unreadable)
	}
	return found, nil
}

// RefuseUnreadable returns a RefusedError if there are unreadable repositories or projects: none of the readable ones
// was scanned, so an unreadable one may have been. It returns nil if there are none.
func RefuseUnreadable(kind string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return &RefusedError{fmt.Sprintf("%s %s cannot be read, and the file may belong to it: correct it with kubectl", kind, names[0])}
}

func (p *provisioner) get(ctx context.Context, name string) (found bool, err error) {
	repository := &v1alpha1.Repository{}
	if found, err = find(ctx, p.client, "repository", p.key(name), repository); found {
		p.found.Repository = repository
	}
	return found, err
}

// createRepository creates the repository under the given name, or a name derived from its full name.
func (p *provisioner) createRepository(ctx context.Context, facts provision.Facts, batches []*Batch) error {
	name := p.place.Repository
	if p.place.byFullName() {
		name = provision.RepositoryName(facts.Site(), facts.FullName)
		if found, err := p.getDescribed(ctx, name, facts); err != nil || found {
			return err
		}
	} else if err := p.mayBeNew(ctx, facts); err != nil {
		return err
	}
	repository := provision.Repository(p.place.Namespace, name, facts)
	if repository.Spec.LastCommit != nil {
		repository.Spec.LastCommit.Link = CommitPage(&repository.Spec, facts.Commit)
	}
	switch {
	case p.place.OfPullRequest:
		if err := p.projectOfReview(ctx, name); err != nil {
			return err
		}
	case !p.place.DryRun: // otherwise the projects are tried next
		if err := p.rehearse(ctx, repository, batches); err != nil {
			return err
		}
	}
	created, err := p.create(ctx, "repository", repository)
	if err != nil {
		return err
	}
	if !created { // another client created it at the same time
		found, err := p.getDescribed(ctx, name, facts)
		if err == nil && !found {
			err = p.noSuch("repository", repository)
		}
		return err
	}
	p.found.Repository = repository
	p.found.Provisioned = append(p.found.Provisioned,
		Provisioned{Kind: "Repository", Name: name, Of: facts.FullName, ScanBranch: facts.Branch})
	return nil
}

// projectOfReview checks that the project named by a review, if any, exists and belongs to the repository.
func (p *provisioner) projectOfReview(ctx context.Context, repository string) error {
	if p.place.Project == "" {
		return nil
	}
	_, err := RequireProjectOfReview(ctx, p.client, p.key(p.place.Project), repository, p.place.Repository)
	return err
}

// getDescribed gets the repository by name. If the import derived that name from a full name, it refuses a repository
// that does not match the facts: its spec.fullName, spec.url, spec.cloneURL or spec.provider was changed, or it was
// created by somebody else.
func (p *provisioner) getDescribed(ctx context.Context, name string, facts provision.Facts) (found bool, err error) {
	found, err = p.get(ctx, name)
	if err != nil || !found || !p.place.byFullName() {
		return found, err
	}
	existing := p.found.Repository
	if same, err := provision.Find([]v1alpha1.Repository{*existing}, facts); same != nil || err != nil {
		return true, err
	}
	return true, &RefusedError{fmt.Sprintf("the Repository %s has the name that an import would give to one %s, but its "+
		"spec.fullName is %q, its spec.url %q, its spec.cloneURL %q and its spec.provider %q: if it is the same "+
		"repository, correct these fields or name it %s (over REST upload to /v2/repos/%s/projects/{project_id}/scans), "+
		"else create a Repository with another name and spec.fullName %q", name, described(facts.FullName, facts.URL),
		existing.Spec.FullName, existing.Spec.URL, existing.Spec.CloneURL, existing.Spec.Provider,
		name, name, facts.FullName)}
}

// rehearse checks by dry runs that the repository and all its projects can be created, so that none is if one cannot.
// It does not notice that they exceed a quota only together.
func (p *provisioner) rehearse(ctx context.Context, repository *v1alpha1.Repository, batches []*Batch) error {
	trial := &provisioner{client: p.client, place: p.place, found: &Found{
		Repository: repository, Provisioned: []Provisioned{{Kind: "Repository", Name: repository.Name}},
	}}
	trial.place.DryRun = true
	if _, err := trial.create(ctx, "repository", repository.DeepCopy()); err != nil {
		return err
	}
	return trial.projects(ctx, batches)
}

// mayBeNew refuses an invalid name, one of a repository that the organization already has under another name, and one
// without any description of a repository, which is probably misspelt.
func (p *provisioner) mayBeNew(ctx context.Context, facts provision.Facts) error {
	if err := checkName("repository", p.key(p.place.Repository)); err != nil {
		return err
	}
	if facts.FullName == "" {
		return refuseUndescribed("repository", p.key(p.place.Repository),
			"neither the files (versionControlProvenance) nor the request name the repository that was scanned: "+
				"name it OWNER/NAME with --repository (over REST give the repository's URL as source_root)")
	}
	found, err := p.byFacts(ctx, facts)
	if err != nil || found == nil {
		return err
	}
	return &RefusedError{fmt.Sprintf("there is no repository %q in namespace %s; the files belong to %s, which is the repository %s: name that one",
		p.place.Repository, p.place.Namespace, facts.FullName, found.Name)}
}

// checkName refuses a name that no object can have.
func checkName(kind string, key client.ObjectKey) error {
	if !kube.IsName(key.Name) {
		return &RefusedError{fmt.Sprintf("there is no %s %q in namespace %q, and none can have that name: it must consist of "+
			"at most 253 lower-case letters, digits, - and ., and each part between dots must begin and end with a letter or "+
			"a digit", kind, key.Name, key.Namespace)}
	}
	return nil
}

// create creates an object, or with DryRun checks that it could. created is false if an object of that name existed.
func (p *provisioner) create(ctx context.Context, kind string, object client.Object) (created bool, err error) {
	options := []client.CreateOption{
		client.FieldOwner(provisionManager), client.FieldValidation(metav1.FieldValidationStrict),
	}
	if p.place.DryRun {
		options = append(options, client.DryRunAll)
	}
	unanswered := false
	err = Retry(ctx, func(ctx context.Context) error {
		err := p.client.Create(ctx, object, options...)
		unanswered = unanswered || kube.IsOutcomeUnknown(err)
		return err
	})
	var readErr error
	if err != nil && unanswered && !p.place.DryRun {
		// If an earlier try took the last room, admission refuses the next one before the API server looks at the name.
		var found bool
		wanted := identityOf(object)
		if found, readErr = find(ctx, p.client, kind, client.ObjectKeyFromObject(object), object); found {
			return isOwn(object, wanted), readErr
		}
		err = errors.Join(err, readErr)
	}
	switch {
	case err == nil:
		return true, nil
	case kube.IsAlreadyExists(err):
		return false, readErr
	case kube.IsQuotaExceeded(err):
		return false, ExplainQuota(err, kindName(kind))
	case apierrors.IsForbidden(err) && !kube.IsQuotaUncounted(err):
		return false, withReason(p.noSuch(kind, object), err)
	default:
		return false, fmt.Errorf("create %s %s: %w", kind, client.ObjectKeyFromObject(object), err)
	}
}

// isOwn reports whether an import created the stored object, with that identity. Such imports wait for each other
// (Lease), so an earlier try of this one did, whose answer was lost.
func isOwn(stored client.Object, identity string) bool {
	return identityOf(stored) == identity && slices.ContainsFunc(stored.GetManagedFields(),
		func(e metav1.ManagedFieldsEntry) bool { return e.Manager == provisionManager })
}

// identityOf returns what another object of the same name may differ in: the full name of a Repository, or the
// Repository and the folder of a Project.
func identityOf(object client.Object) string {
	switch object := object.(type) {
	case *v1alpha1.Repository:
		return object.Spec.FullName
	case *v1alpha1.Project:
		return string(object.Spec.RepositoryRef.Name) + "/" + provision.Clean(object.Spec.RelativePath)
	}
	return ""
}

// noSuch returns the error for an object that does not exist and cannot be created. It names a repository by its full
// name if the user did, because users do not know the derived name.
func (p *provisioner) noSuch(kind string, object client.Object) *RefusedError {
	key := client.ObjectKeyFromObject(object)
	repository, ok := object.(*v1alpha1.Repository)
	if !ok || !p.place.byFullName() {
		return noSuch(kind, key)
	}
	return required(kind, noneOf(kind, described(repository.Spec.FullName, repository.Spec.URL), key.Namespace))
}

// described returns a description by which users recognise a repository that does not exist; url may be empty.
func described(fullName, url string) string {
	text := fmt.Sprintf("with spec.fullName %q", fullName)
	if url != "" {
		text += fmt.Sprintf(" and spec.url %q", url)
	}
	return text
}

// notCreated joins the message about a missing object and the reason why it was not created.
const notCreated = ". An import did not create it: "

// withReason adds the reason why an import does not create the missing object.
func withReason(refused *RefusedError, err error) *RefusedError {
	reason := err.Error()
	if _, policy, found := strings.Cut(reason, "denied request: "); found {
		reason = policy
	}
	return &RefusedError{refused.Reason + notCreated + reason}
}

// refuseUndescribed refuses to create an object because of missing information.
func refuseUndescribed(kind string, key client.ObjectKey, why string) error {
	return &RefusedError{noSuch(kind, key).Reason + notCreated + why}
}
