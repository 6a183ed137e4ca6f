package readmodel

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// issueItem is a review issue as it is shown.
type issueItem struct {
	review string
	// counts of this one issue.
	counts reviewstate.Counts

	createdAt, updatedAt, status, severity string

	json content.Bytes
}

// ReviewIssue returns the JSON of an organization's review issue. It takes no lock.
func (m *Model) ReviewIssue(organization, id string) ([]byte, bool) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return nil, false
	}
	item, ok := snapshot.issues.Get(id)
	if !ok {
		return nil, false
	}
	return item.json, true
}

func (m *Model) takeIssue(p *partition, object *v1alpha1.ReviewIssue, name string) {
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
	p.issues[name] = &heldIssue{
		object: &v1alpha1.ReviewIssue{
			ObjectMeta: trimmed(&object.ObjectMeta), Spec: object.Spec, Status: object.Status,
		},
		updatedAt: m.stamp(object, object.Status.ObservedGeneration, object.Status.UpdatedAt).after(before),
	}
	p.issuesOf.add(object.Spec.ReviewRef.Name, name)
	m.enqueue(rejoin{namespace: p.namespace, rows: reviewIssues, by: byName, name: name})
}

// issueWork renders an issue in the state that follows from its spec and its review's, as the
// controller will record it. Where the review is not there, what status says stands.
func (m *Model) issueWork(p *partition, name string) (work, bool) {
	held := p.issues[name]
	if held == nil {
		return work{}, false
	}
	var (
		review     *v1alpha1.Review
		reviewSpec *v1alpha1.ReviewSpec
		repository *render.Repository
	)
	if of := p.reviews[string(held.object.Spec.ReviewRef.Name)]; of != nil {
		review, reviewSpec = of.object, &of.object.Spec
		repository = p.repository(string(reviewSpec.RepositoryRef.Name))
	}
	item := &issueItem{
		review:    string(held.object.Spec.ReviewRef.Name),
		createdAt: render.Timestamp(held.object.CreationTimestamp.Time),
		updatedAt: render.Timestamp(held.updatedAt.at),
		severity:  string(held.object.Spec.Severity),
	}
	return work{
		render: func() (err error) {
			status := reviewstate.IssueStatus(held.object, reviewSpec, held.updatedAt.at)
			item.status = string(status.State)
			if review != nil {
				item.counts.AddIssue(held.object, reviewSpec.ReviewedCommits)
			}
			item.json, err = render.ReviewIssueJSON(held.object, &status, held.updatedAt.at, review, repository)
			return err
		},
		show: func() {
			if p.issues[name] != nil {
				m.showIssue(p, name, item)
			}
		},
		hide: func() { m.hideIssue(p, name) },
	}, true
}

// showIssue puts an issue into the index and counts it.
func (m *Model) showIssue(p *partition, name string, item *issueItem) {
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

// hideIssue takes an issue out.
func (m *Model) hideIssue(p *partition, name string) {
	if p.view == nil {
		return
	}
	if before, ok := p.indexes.issues.Get(name); ok {
		p.indexes.issues.Remove(name)
		m.recount(p, before.review, before.counts, -1)
		m.signal()
	}
}

// recount adds an issue's counts to its review's, or with -1 takes them away.
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
	m.enqueue(rejoin{namespace: p.namespace, rows: reviews, by: byName, name: review})
}
