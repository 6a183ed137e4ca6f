package readmodel

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// partition is what is known of a namespace. The model's mutex guards it.
//
// What is held is kept whether or not an organization owns the namespace; it is rendered and
// indexed only while one does.
type partition struct {
	namespace    string
	findings     map[string]*Item
	repositories map[string]*heldRepository
	projects     map[string]*heldProject
	reviews      map[string]*heldReview
	issues       map[string]*heldIssue
	deliveries   map[string]*deliveryItem
	scans        map[string]*scanItem
	operations   map[string]*operationItem
	trends       map[string]*trendItem

	// projectsOf and reviewsOf a repository, and issuesOf a review.
	projectsOf, reviewsOf, issuesOf children

	// view is what readers see, nil while no organization owns the namespace.
	view    *view
	indexes *indexes
	// counts of the issues shown, by review.
	counts map[string]reviewstate.Counts
}

// heldRepository is a repository as it was last seen. It never changes.
type heldRepository struct {
	object    *v1alpha1.Repository
	updatedAt stamp
	// joined is what others show of it: the same pointer for as long as that is the same.
	joined *render.Repository
}

// heldProject is a project as it was last seen. It never changes.
type heldProject struct {
	object    *v1alpha1.Project
	updatedAt stamp
	// joined is what findings show of it: the same pointer for as long as that is the same.
	joined *render.Project
}

// heldReview is a review as it was last seen. It never changes.
type heldReview struct {
	object    *v1alpha1.Review
	updatedAt stamp
}

// heldIssue is a review issue as it was last seen. It never changes.
type heldIssue struct {
	object    *v1alpha1.ReviewIssue
	updatedAt stamp
}

// stamp is the time to show for an object's last change.
type stamp struct {
	uid types.UID
	at  time.Time
	// recorded says that the time is that in status, which all replicas show.
	recorded bool
}

// after returns the stamp for a new state of an object: as long as the object is the same, what
// is shown does not go back, unless to the time that is recorded.
func (s stamp) after(before stamp) stamp {
	if s.uid == before.uid && !s.recorded && s.at.Before(before.at) {
		s.at = before.at
	}
	return s
}

// children are the names of objects by the name of what they refer to.
type children map[string]map[string]struct{}

func (c children) add(parent v1alpha1.ResourceName, child string) {
	names := c[string(parent)]
	if names == nil {
		names = map[string]struct{}{}
		c[string(parent)] = names
	}
	names[child] = struct{}{}
}

func (c children) remove(parent v1alpha1.ResourceName, child string) {
	delete(c[string(parent)], child)
	if len(c[string(parent)]) == 0 {
		delete(c, string(parent))
	}
}

// view belongs to one organization for good: when its namespace changes hands the next owner
// gets another, so that a reader who came by an organization's name can never see what is
// rendered for the next.
type view struct {
	organization string
	namespace    string
	// shown is what findings show of the organization.
	shown    *render.Organization
	snapshot atomic.Pointer[indexes]
	// counting lets one caller at a time count the findings, and guards what they are counted by.
	counting *semaphore.Weighted
	table    findingTable
	// publishing guards a snapshot's change, together with what in it the table does not have yet.
	publishing sync.Mutex
	uncounted  []tableChange
}

// publish shows readers a snapshot, whose findings differ from those of the one before in the rows of these changes.
// The table is brought up to it now, so that no count has to, unless one is under way.
func (v *view) publish(next *indexes, changes []tableChange) {
	v.publishing.Lock()
	v.uncounted = append(v.uncounted, changes...)
	v.snapshot.Store(next)
	v.publishing.Unlock()
	if v.counting.TryAcquire(1) {
		v.catchUp()
		v.counting.Release(1)
	}
}

// catchUp brings the table up to the snapshot that readers see, and returns that. The caller holds the semaphore.
func (v *view) catchUp() *indexes {
	v.publishing.Lock()
	snapshot, changes := v.snapshot.Load(), v.uncounted
	v.uncounted = nil
	v.publishing.Unlock()
	v.table.take(changes)
	return snapshot
}

// indexes are what is shown of each kind.
type indexes struct {
	findings     *index.Index[*Item]
	repositories *index.Index[*repositoryItem]
	projects     *index.Index[*projectItem]
	reviews      *index.Index[*Review]
	issues       *index.Index[*Issue]
	deliveries   *index.Index[*deliveryItem]
	scans        *index.Index[*scanItem]
	trends       *index.Index[*trendItem]
	// rows of the findings. A snapshot has none.
	rows tableRows
}

func newIndexes() *indexes {
	return &indexes{
		findings:     index.New(findingLayout),
		repositories: index.New(repositoryLayout),
		projects:     index.New(&index.Layout[*projectItem]{}),
		reviews:      index.New(reviewLayout),
		issues:       index.New(issueLayout),
		deliveries:   index.New(deliveryLayout),
		scans:        index.New(scanLayout),
		trends:       index.New(trendLayout),
	}
}

func (x *indexes) snapshot() *indexes {
	return &indexes{
		findings:     x.findings.Snapshot(),
		repositories: x.repositories.Snapshot(),
		projects:     x.projects.Snapshot(),
		reviews:      x.reviews.Snapshot(),
		issues:       x.issues.Snapshot(),
		deliveries:   x.deliveries.Snapshot(),
		scans:        x.scans.Snapshot(),
		trends:       x.trends.Snapshot(),
	}
}

// dirty reports whether an index has changed since the last snapshot.
func (x *indexes) dirty() bool {
	return x.findings.Dirty() || x.repositories.Dirty() || x.projects.Dirty() ||
		x.reviews.Dirty() || x.issues.Dirty() || x.deliveries.Dirty() || x.scans.Dirty() || x.trends.Dirty()
}

func newPartition(namespace string) *partition {
	return &partition{
		namespace:    namespace,
		findings:     map[string]*Item{},
		repositories: map[string]*heldRepository{},
		projects:     map[string]*heldProject{},
		reviews:      map[string]*heldReview{},
		issues:       map[string]*heldIssue{},
		deliveries:   map[string]*deliveryItem{},
		scans:        map[string]*scanItem{},
		operations:   map[string]*operationItem{},
		trends:       map[string]*trendItem{},
		projectsOf:   children{},
		reviewsOf:    children{},
		issuesOf:     children{},
	}
}

// claim gives the partition to an organization, or takes it from all where that is "".
// It reports whether the owner is another than before.
func (p *partition) claim(organization string) bool {
	if organization == p.organization() {
		return false
	}
	p.view, p.indexes, p.counts = nil, nil, nil
	if organization != "" {
		p.view = &view{
			organization: organization, namespace: p.namespace, shown: render.NewOrganization(organization),
			counting: semaphore.NewWeighted(1), table: findingTable{numbers: newNumbering()},
		}
		p.indexes, p.counts = newIndexes(), map[string]reviewstate.Counts{}
		p.publish()
	}
	return true
}

// organization that owns the namespace; "" where none does.
func (p *partition) organization() string {
	if p.view == nil {
		return ""
	}
	return p.view.organization
}

// dirty reports whether readers do not yet see what is shown.
func (p *partition) dirty() bool { return p.view != nil && p.indexes.dirty() }

// publish shows readers the indexes as they are now.
func (p *partition) publish() {
	if p.view == nil {
		return
	}
	p.view.publish(p.indexes.snapshot(), p.indexes.rows.changes)
	p.indexes.rows.changes = nil
}

// empty reports whether the partition may be forgotten.
func (p *partition) empty() bool {
	return p.view == nil && len(p.findings)+len(p.projects)+len(p.repositories)+
		len(p.reviews)+len(p.issues)+len(p.deliveries)+len(p.scans)+
		len(p.trends)+len(p.operations) == 0
}

// repository is what others show of a repository; nil where it is not there.
func (p *partition) repository(name string) *render.Repository {
	if held := p.repositories[name]; held != nil {
		return held.joined
	}
	return nil
}

// project is what findings show of a project; nil where it is not there.
func (p *partition) project(name string) *render.Project {
	if held := p.projects[name]; held != nil {
		return held.joined
	}
	return nil
}
