// Package provision decides which Repository and which Projects an import creates if they do not exist. It evaluates
// what a request and its files say about a repository, derives the facts to record, and decides which folders are
// projects and of which branch a repository takes results. It does no I/O.
package provision
