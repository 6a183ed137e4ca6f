// Package readmodel holds what the REST API answers with: a watch on the Kubernetes API feeds
// ordered, ready-to-send views, one partition per organization.
//
// Readers take no lock. Each organization has a snapshot that never changes, with an index (package index) for
// each kind. A reader loads a pointer and walks.
//
// Writers are the reflectors, the results of the facade's own patches, and the joiner. They
// take one mutex, change trees of their own, and publish a copy, at once for a patch and every
// few milliseconds for the rest.
//
// A row shows more than its own object: a finding its project and repository, a repository its
// projects, a review its issues' counts. Findings are rendered by the write that brings them;
// everything else, and whatever another object's change touches, is rendered by the joiner in
// the background: first what was changed itself, then what it touches.
package readmodel
