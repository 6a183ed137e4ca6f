// Package provision decides which Repository and which Projects an import creates where they do not exist: what is told
// of a repository, what follows from it, and which folders are projects. It reads and writes nothing.
package provision
