// Package dataset makes an organization's findings and reviews, the same ones in every run, as
// scanners and people leave them. They have the status that the controllers give them, so that
// nothing needs to be written. Into puts them into etcd without the API server, in seconds instead of
// an hour.
package dataset

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Options configures the data.
type Options struct {
	// Namespace of the organization.
	Namespace string
	// Findings and Reviews are the numbers of findings and reviews. Each review has IssuesPerReview
	// issues on average.
	Findings, Reviews int
	// Undecided leaves all findings open and undecided.
	Undecided bool
	// Now is the newest time in the data; the oldest is Span before.
	Now time.Time
}

const (
	// Span is how far back the data goes: less than every retention period.
	Span = 20 * 24 * time.Hour
	// findingsPerRepository is an average; there are at least minRepositories repositories.
	findingsPerRepository = 500
	minRepositories       = 8
	// projectsPerRepository at most.
	projectsPerRepository = 4
)

// Data holds the data in the order of creation.
type Data struct {
	Repositories []*v1alpha1.Repository
	Projects     []*v1alpha1.Project
	Reviews      []*v1alpha1.Review
	Issues       []*v1alpha1.ReviewIssue

	options  Options
	projects int
}

// Findings returns the number of findings.
func (d *Data) Findings() int { return d.options.Findings }

// New makes everything except the findings.
func New(options Options) *Data {
	d := &Data{options: options}
	d.makeRepositories()
	d.makeReviews()
	return d
}
