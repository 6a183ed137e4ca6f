// Package readmodel holds what the REST API answers with: a watch on the Kubernetes API feeds
// ordered, ready-to-send views, a partition an organization.
//
// Readers take no lock. Each organization has a snapshot that never changes, with its findings
// in a copy-on-write B-tree for each sort order; a reader loads a pointer and walks.
//
// Writers are the reflectors, the results of the facade's own patches, and the renderer that
// runs when a project or repository changes. They take one mutex, change trees of their own,
// and publish a copy, at once for a patch and every few milliseconds for the rest.
package readmodel
