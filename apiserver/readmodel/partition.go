package readmodel

import (
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// partition holds the objects of a namespace. The model's mutex guards it.
//
// The objects are held whether or not an organization owns the namespace; they are rendered and indexed only
// while one does.
type partition struct {
	namespace    string
	findings     table[Item]
	repositories table[heldRepository]
	projects     table[heldProject]
	reviews      table[heldReview]
	issues       table[heldIssue]
	deliveries   table[deliveryItem]
	scans        table[scanItem]
	operations   table[operationItem]
	trends       table[trendItem]

	// projectsOf and reviewsOf are by repository, issuesOf is by review.
	projectsOf, reviewsOf, issuesOf children

	// view is what readers see; nil while no organization owns the namespace. The indexes are empty then.
	view    *view
	indexes *indexes
	// counts of the shown issues, by review.
	counts map[string]reviewstate.Counts
}

// table holds the objects of a kind by name.
type table[T any] map[string]*T

// anyTable is the table of any kind.
type anyTable interface {
	len() int
	names() iter.Seq[string]
	// held returns an object whose changes are reported, nil if it is not held.
	held(name string) reportable
}

func (t table[T]) len() int { return len(t) }

func (t table[T]) names() iter.Seq[string] { return maps.Keys(t) }

func (t table[T]) held(name string) reportable {
	if item, ok := t[name]; ok {
		return any(item).(reportable)
	}
	return nil
}

// tables returns the table of each kind except organizations, which have no namespace.
func (p *partition) tables() [kinds]anyTable {
	return [kinds]anyTable{
		repositories: p.repositories, projects: p.projects, reviews: p.reviews, reviewIssues: p.issues,
		webhookDeliveries: p.deliveries, scans: p.scans, triageOperations: p.operations, trends: p.trends,
		findings: p.findings,
	}
}

// heldRepository is a repository as last seen. It never changes.
type heldRepository struct {
	object    *v1alpha1.Repository
	updatedAt stamp
	// joined is the part that other objects show. The pointer changes only if that part changes.
	joined *render.Repository
}

// heldProject is a project as last seen. It never changes.
type heldProject struct {
	object    *v1alpha1.Project
	updatedAt stamp
	// joined is the part that findings show. The pointer changes only if that part changes.
	joined *render.Project
}

// heldReview is a review as last seen. It never changes.
type heldReview struct {
	object    *v1alpha1.Review
	updatedAt stamp
}

// heldIssue is a review issue as last seen. It never changes.
type heldIssue struct {
	object    *v1alpha1.ReviewIssue
	updatedAt stamp
}

// stamp is the time to show for an object's last change.
type stamp struct {
	uid types.UID
	at  time.Time
	// recorded means that the time comes from the status, and so is the same in all replicas.
	recorded bool
}

// after returns the stamp for a new state of an object: while the object is the same, the shown time does not
// go back, except to the recorded time.
func (s stamp) after(before stamp) stamp {
	if s.uid == before.uid && !s.recorded && s.at.Before(before.at) {
		s.at = before.at
	}
	return s
}

// children holds the names of objects by the name of the object that they refer to.
type children map[string]sets.Set[string]

func (c children) add(parent v1alpha1.ResourceName, child string) {
	if c[string(parent)] == nil {
		c[string(parent)] = sets.Set[string]{}
	}
	c[string(parent)].Insert(child)
}

func (c children) remove(parent v1alpha1.ResourceName, child string) {
	delete(c[string(parent)], child)
	if len(c[string(parent)]) == 0 {
		delete(c, string(parent))
	}
}

// view belongs to one organization forever. When its namespace gets another owner, that owner gets a new view, so that
// a reader who looked up one organization never sees data of another.
type view struct {
	organization string
	namespace    string
	// shown is what findings show of the organization.
	shown    *render.Organization
	snapshot atomic.Pointer[indexes]
	// counting guards table.
	counting sync.Mutex
	table    findingTable
	// publishing guards the replacement of the snapshot together with uncounted, the changes in it that the
	// table does not have yet.
	publishing sync.Mutex
	uncounted  []tableChange
	// unjoined is how many kinds have rows that are not joined yet since the claim. Readers do not see the view until
	// then: an incomplete list would look like a complete one.
	unjoined int
}

// publish shows readers a snapshot whose findings differ from the previous one's in these changes. It updates
// the table at once, so that no count has to, unless a count is running.
func (v *view) publish(next *indexes, changes []tableChange) {
	v.publishing.Lock()
	v.uncounted = append(v.uncounted, changes...)
	v.snapshot.Store(next)
	v.publishing.Unlock()
	if v.counting.TryLock() {
		v.catchUp()
		v.counting.Unlock()
	}
}

// catchUp updates the table to the snapshot that readers see, and returns the snapshot. The caller
// holds counting.
func (v *view) catchUp() *indexes {
	v.publishing.Lock()
	snapshot, changes := v.snapshot.Load(), v.uncounted
	v.uncounted = nil
	v.publishing.Unlock()
	v.table.take(changes)
	return snapshot
}

// indexes holds the shown items of each kind.
type indexes struct {
	findings     *index.Index[*Item]
	repositories *index.Index[*repositoryItem]
	projects     *index.Index[*projectItem]
	reviews      *index.Index[*Review]
	issues       *index.Index[*Issue]
	deliveries   *index.Index[*deliveryItem]
	scans        *index.Index[*scanItem]
	trends       *index.Index[*trendItem]
	// rows of the findings in the table. A snapshot has none.
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
	p := &partition{
		namespace:    namespace,
		findings:     table[Item]{},
		repositories: table[heldRepository]{},
		projects:     table[heldProject]{},
		reviews:      table[heldReview]{},
		issues:       table[heldIssue]{},
		deliveries:   table[deliveryItem]{},
		scans:        table[scanItem]{},
		operations:   table[operationItem]{},
		trends:       table[trendItem]{},
		projectsOf:   children{},
		reviewsOf:    children{},
		issuesOf:     children{},
	}
	p.showNothing()
	return p
}

// showNothing takes the namespace from its organization and empties the indexes.
func (p *partition) showNothing() {
	p.view, p.indexes, p.counts = nil, newIndexes(), map[string]reviewstate.Counts{}
}

// claim assigns the partition to an organization, or to none if it is "". It reports whether the owner has
// changed.
func (p *partition) claim(organization string) bool {
	if organization == p.organization() {
		return false
	}
	p.showNothing()
	if organization != "" {
		p.view = &view{
			organization: organization, namespace: p.namespace, shown: render.NewOrganization(organization),
			table: findingTable{numbers: newNumbering()},
		}
		p.publish()
	}
	return true
}

// organization returns the organization that owns the namespace; "" if none does.
func (p *partition) organization() string {
	if p.view == nil {
		return ""
	}
	return p.view.organization
}

// dirty reports whether readers do not see the latest state yet.
func (p *partition) dirty() bool { return p.view != nil && p.indexes.dirty() }

// publish shows readers the current indexes. An organization must own the partition.
func (p *partition) publish() {
	p.view.publish(p.indexes.snapshot(), p.indexes.rows.changes)
	p.indexes.rows.changes = nil
}

// empty reports whether the partition can be removed.
func (p *partition) empty() bool { return p.view == nil && p.objects() == 0 }

// objects returns how many objects the partition holds.
func (p *partition) objects() (n int) {
	tables := p.tables()
	for _, t := range tables[organizations+1:] {
		n += t.len()
	}
	return n
}

// repository returns what other objects show of a repository; nil if it does not exist.
func (p *partition) repository(name string) *render.Repository {
	if held := p.repositories[name]; held != nil {
		return held.joined
	}
	return nil
}

// project returns what findings show of a project; nil if it does not exist.
func (p *partition) project(name string) *render.Project {
	if held := p.projects[name]; held != nil {
		return held.joined
	}
	return nil
}
