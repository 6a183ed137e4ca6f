package readmodel

import (
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// Issue is a review issue as it is shown. It is immutable, also for its users.
type Issue struct {
	record
	object *v1alpha1.ReviewIssue
	// counts contributed by this issue.
	counts reviewstate.Counts

	review, createdAt, updatedAt, status, severity, userStatus string
}

// Object returns the resource, without the parts that a decision does not need. It must not be changed.
func (i *Issue) Object() *v1alpha1.ReviewIssue { return i.object }

// Standing returns the decisions made about the issue so far.
func (i *Issue) Standing() findingstate.Standing { return reviewstate.StandingOf(i.object) }

// History renders the issue's history.
func (i *Issue) History() ([]byte, error) { return render.IssueHistoryJSON(i.object) }

// ReviewIssue returns an organization's review issue. It takes no lock.
func (m *Model) ReviewIssue(organization, id string) (*Issue, bool) {
	return m.shown(organization).issues.Get(id)
}

// ApplyIssue adds a review issue that the Kubernetes API has returned, as Apply does for a finding.
// It updates the counts of its review at once.
func (m *Model) ApplyIssue(object *v1alpha1.ReviewIssue) (*Issue, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(change{kind: reviewIssues, object: object}); err != nil {
		return nil, err
	}
	p := m.partitions[object.Namespace]
	if p == nil || p.view == nil {
		return nil, fmt.Errorf("%w: none owns the namespace %s", ErrNoOrganization, object.Namespace)
	}
	item, err := m.appliedIssue(p, object)
	if p.dirty() {
		p.publish()
	}
	return item, err
}

// appliedIssue shows and returns the item of a written state. If a newer state is held already, its shown time
// is raised to at least that of the returned item.
func (m *Model) appliedIssue(p *partition, object *v1alpha1.ReviewIssue) (*Issue, error) {
	name, applied := object.Name, m.heldIssue(object)
	if held := p.issues[name]; held != nil {
		if held.object.ResourceVersion == object.ResourceVersion {
			applied = held
		} else {
			p.issues[name] = &heldIssue{held.object, held.updatedAt.after(applied.updatedAt)}
		}
		if err := m.showNow(p, reviewIssues, name); err != nil {
			return nil, err
		}
		if err := m.showNow(p, reviews, string(held.object.Spec.ReviewRef.Name)); err != nil {
			return nil, err
		}
	}
	item, draw := p.issueOf(applied)
	return item, draw()
}

func (m *Model) setIssue(p *partition, object *v1alpha1.ReviewIssue, name string) {
	var before stamp
	if held := p.issues[name]; held != nil {
		before = held.updatedAt
		p.issuesOf.remove(held.object.Spec.ReviewRef.Name, name)
	}
	if object == nil {
		delete(p.issues, name)
		m.hideIssue(p, name)
		return
	}
	held := m.heldIssue(object)
	held.updatedAt = held.updatedAt.after(before)
	p.issues[name] = held
	p.issuesOf.add(object.Spec.ReviewRef.Name, name)
	m.enqueueRow(p, reviewIssues, name)
}

func (m *Model) heldIssue(object *v1alpha1.ReviewIssue) *heldIssue {
	return &heldIssue{
		object:    &v1alpha1.ReviewIssue{ObjectMeta: trimmed(&object.ObjectMeta), Spec: object.Spec, Status: object.Status},
		updatedAt: m.stamp(object),
	}
}

func (m *Model) issueWork(p *partition, name string) (work, bool) {
	held := p.issues[name]
	if held == nil {
		return work{}, false
	}
	item, draw := p.issueOf(held)
	return work{
		render: draw,
		show: func() {
			if p.issues[name] == held { // otherwise a newer one is shown, or will be
				m.showIssue(p, name, item)
			}
		},
		hide: func() { m.hideIssue(p, name) },
	}, true
}

// issueOf returns an issue and a function that renders it, in the state that follows from its spec and its
// review's, as the controller will record it. If the review does not exist, the status is used.
func (p *partition) issueOf(held *heldIssue) (item *Issue, draw func() error) {
	var (
		review     *v1alpha1.Review
		reviewSpec *v1alpha1.ReviewSpec
		repository *render.Repository
	)
	if of := p.reviews[string(held.object.Spec.ReviewRef.Name)]; of != nil {
		review, reviewSpec = of.object, &of.object.Spec
		repository = p.repository(string(reviewSpec.RepositoryRef.Name))
	}
	item = &Issue{
		object:     held.object,
		review:     string(held.object.Spec.ReviewRef.Name),
		createdAt:  render.Timestamp(held.object.CreationTimestamp.Time),
		updatedAt:  render.Timestamp(held.updatedAt.at),
		severity:   string(held.object.Spec.Severity),
		userStatus: string(reviewstate.UserStatus(held.object)),
	}
	return item, func() (err error) {
		status := reviewstate.IssueStatus(held.object, reviewSpec, held.updatedAt.at)
		item.status = string(status.State)
		if review != nil {
			item.counts.AddIssue(held.object, reviewSpec.ReviewedCommits)
		}
		item.Record, err = render.NewReviewIssue(held.object, &status, held.updatedAt.at, review, repository)
		return err
	}
}

// showIssue adds an issue to the index and to the counts.
func (m *Model) showIssue(p *partition, name string, item *Issue) {
	before, ok := p.indexes.issues.Get(name)
	p.indexes.issues.Put(name, item)
	if ok && before.review == item.review && before.counts == item.counts {
		return
	}
	if ok {
		m.recount(p, before.review, before.counts, -1)
	}
	m.recount(p, item.review, item.counts, 1)
}

// hideIssue removes an issue.
func (m *Model) hideIssue(p *partition, name string) {
	if before, ok := p.indexes.issues.Remove(name); ok {
		m.recount(p, before.review, before.counts, -1)
		m.signal()
	}
}

// recount adds an issue's counts to those of its review, or subtracts them with a sign of -1.
func (m *Model) recount(p *partition, review string, of reviewstate.Counts, sign int32) {
	if of == (reviewstate.Counts{}) {
		return
	}
	counts := p.counts[review].Plus(sign, of)
	if counts == (reviewstate.Counts{}) {
		delete(p.counts, review)
	} else {
		p.counts[review] = counts
	}
	m.enqueueRow(p, reviews, review)
}
