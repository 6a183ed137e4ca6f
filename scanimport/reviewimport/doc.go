// Package reviewimport records what scanners found in a commit of a pull request: a Review for the pull request, and a
// ReviewIssue for each problem.
//
// An issue is recognised in later commits by its evidence, as a finding is (importer.Certain), else by its name. An
// import adds its commit to the issues that the scan shows and, with its last write, to the review. Only that write
// makes the commit count, and resolves the issues that the commit does not show, so an import that is running or was
// cut off resolves nothing.
//
// Only importer.go, turns.go, write.go and record.go call the API server.
package reviewimport
