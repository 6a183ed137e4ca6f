// Package provision decides which Repository and which Projects an import creates if they do not exist. From a request
// and its files it derives the facts about a repository, which folders are projects, and of which branch the repository
// takes results. It does no I/O.
package provision
