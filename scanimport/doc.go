// Package scanimport contains the packages that import scanner output into the cluster.
//
//   - sarif reads a SARIF file into results, whatever state it is in.
//   - recognition decides which known finding each result is.
//   - provision decides which repository and projects an import creates where they do not exist.
//   - importer imports the scan of a branch: findings are created, updated, closed and reopened.
//   - routing decides which project of a repository each result is about.
//   - reviewimport imports the scan of a commit of a pull request: a review and its issues.
package scanimport
