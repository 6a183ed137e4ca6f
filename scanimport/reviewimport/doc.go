// Package reviewimport records what scanners found in a commit of a pull request: a Review
// for the pull request, and a ReviewIssue for each problem.
//
// An issue is known again, commit after commit, by the rules of package fingerprints. A scan
// adds its commit to the issues that it shows and, as the last thing it writes, to the
// review. That is what resolves the issues that it does not show: until then the commit
// counts for nothing, so that an import that is cut off, and one that is at work, resolve
// nothing.
//
// What is decided is in pure functions (plan, review); what talks to the API server is in
// importer.go and write.go.
package reviewimport
