package main

import (
	"context"
	"fmt"
	"strconv"
)

// The commits of config/samples/pull-request. No repository has them: their hashes are made up.
const (
	firstCommit  = "5d41402abc4b2a76b9719d911017c592ae1f3c07"
	secondCommit = "7d793037a0760186574b0282f2f435e7a8c09b12"
)

// sampleReview is one update of a pull request: the review of a commit, if it names a folder, or a new status.
type sampleReview struct {
	pullRequest int
	// folder of config/samples/pull-request that holds the commit.
	folder, commit string
	arguments      []string
}

// sampleReviews create reviews in every state that the REST API can filter by. Pull request 7 is in
// config/samples/review.yaml.
var sampleReviews = []sampleReview{
	{pullRequest: 8, folder: "first", commit: firstCommit, arguments: []string{"--title=Cache exchange rates",
		"--author=jo"}},
	{pullRequest: 8, folder: "second", commit: secondCommit},
	{pullRequest: 6, folder: "first", commit: firstCommit,
		arguments: []string{"--title=Try a cache", "--author=sam", "--status=merged"}},
	{pullRequest: 5, folder: "first", commit: firstCommit, arguments: []string{"--title=A cache, first attempt",
		"--author=sam"}},
	{pullRequest: 5, commit: secondCommit, arguments: []string{"--clean", "--status=closed"}},
	{pullRequest: 9, arguments: []string{"--title=Round totals", "--author=jo", "--status=open"}},
}

// reviewPullRequests scans the sample commits and records their reviews. Recording them again
// changes nothing.
func (s *scanner) reviewPullRequests(ctx context.Context) error {
	for _, folder := range []string{"first", "second"} {
		if err := s.scan(ctx, s.options.config("samples", "pull-request"), s.reviewReport(folder),
			"./"+folder+"/..."); err != nil {
			return err
		}
	}
	for _, review := range sampleReviews {
		arguments := []string{"review", "--repository=" + sampleRepository, "--pr=" + strconv.Itoa(review.pullRequest)}
		if review.folder != "" {
			arguments = append(arguments, s.reviewReport(review.folder))
		}
		if review.commit != "" {
			arguments = append(arguments, "--commit="+review.commit)
		}
		if _, err := s.findings(ctx, append(arguments, review.arguments...)...); err != nil {
			return fmt.Errorf("record the review of pull request %d: %w", review.pullRequest, err)
		}
	}
	return nil
}

func (s *scanner) reviewReport(folder string) string {
	return s.options.state("gosec-pull-request-" + folder + ".sarif")
}
