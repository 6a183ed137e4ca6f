// Package dataset makes an organization's findings and reviews, always the same ones, as scanners
// and people leave them and with the status that the controllers give them, so that nothing is
// left to be written. Into puts them into etcd without the API server, in seconds instead of an hour.
package dataset

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Options say what is made.
type Options struct {
	// Namespace of the organization.
	Namespace string
	// Findings, Reviews: how many. Each review has issues, IssuesPerReview on average.
	Findings, Reviews int
	// Undecided: no finding is closed, and nobody has decided about any.
	Undecided bool
	// Now is the newest time in the data; the oldest is Span before.
	Now time.Time
}

const (
	// Span is how far back the data goes: not as far as anything is retired after.
	Span = 20 * 24 * time.Hour
	// findingsPerRepository on average; never fewer than leastRepositories of them.
	findingsPerRepository = 500
	leastRepositories     = 8
	// projectsPerRepository at most.
	projectsPerRepository = 4
)

// Data is what was made, in the order of its making.
type Data struct {
	Repositories []*v1alpha1.Repository
	Projects     []*v1alpha1.Project
	Reviews      []*v1alpha1.Review
	Issues       []*v1alpha1.ReviewIssue

	options  Options
	projects int
}

// Finding returns the i-th, from 0. They are made when they are asked for, since all of them together
// would fill the memory that is measured.
func (d *Data) Finding(i int) *v1alpha1.Finding { return finding(d, i) }

// Findings is how many there are.
func (d *Data) Findings() int { return d.options.Findings }

// Namespace is where everything lives.
func (d *Data) Namespace() string { return d.options.Namespace }

// New makes all but the findings.
func New(options Options) *Data {
	d := &Data{options: options}
	d.makeRepositories()
	d.makeReviews()
	return d
}
