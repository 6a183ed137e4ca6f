package readmodel

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// Review returns an organization's review. It takes no lock.
func (m *Model) Review(organization, id string) (*Review, bool) {
	return m.shown(organization).reviews.Get(id)
}

func (m *Model) setReview(p *partition, object *v1alpha1.Review, name string) {
	var before stamp
	held := p.reviews[name]
	if held != nil {
		before = held.updatedAt
		p.reviewsOf.remove(held.object.Spec.RepositoryRef.Name, name)
	}
	if object == nil {
		delete(p.reviews, name)
		p.indexes.reviews.Remove(name)
		m.signal()
	} else {
		p.reviews[name] = &heldReview{
			object:    &v1alpha1.Review{ObjectMeta: trimmed(&object.ObjectMeta), Spec: object.Spec, Status: object.Status},
			updatedAt: m.stamp(object).after(before),
		}
		p.reviewsOf.add(object.Spec.RepositoryRef.Name, name)
		m.enqueueRow(p, reviews, name)
	}
	// Issues show nothing from the review's status, which the controllers write often.
	if held == nil || object == nil || held.object.UID != object.UID || held.object.Generation != object.Generation {
		m.enqueue(rejoin{namespace: p.namespace, rows: reviewIssues, by: byReview, name: name})
	}
}

// reviewWork renders a review with the counts of the issues shown by this replica. The counters in the status
// may be a moment old: with them a list could contradict the issues that the same replica shows.
func (p *partition) reviewWork(name string) (work, bool) {
	held := p.reviews[name]
	if held == nil {
		return work{}, false
	}
	x, counts := p.indexes.reviews, p.counts[name]
	repository := p.repository(string(held.object.Spec.RepositoryRef.Name))
	spec := &held.object.Spec
	item := &Review{
		updatedAt:      render.Timestamp(held.updatedAt.at),
		repoName:       repository.Name(),
		prTitle:        spec.PRTitle,
		prAuthor:       spec.PRAuthor,
		prStatus:       string(spec.PRStatus),
		prNumber:       spec.PRNumber,
		openIssueCount: counts.Open,
		reviewed:       len(spec.ReviewedCommits) > 0,
	}
	return work{
		render: func() (err error) {
			item.Record, err = render.NewReview(held.object, held.updatedAt.at, counts, repository)
			return err
		},
		show: func() {
			if p.reviews[name] == held && p.counts[name] == counts { // otherwise a newer one is shown, or will be
				x.Put(name, item)
			}
		},
		hide: func() { x.Remove(name) },
	}, true
}
