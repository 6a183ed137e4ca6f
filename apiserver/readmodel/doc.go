// Package readmodel holds the data that the REST API serves: watches on the Kubernetes API feed ordered,
// ready-to-send views, one partition per organization.
//
// Readers take no lock. Each organization has an immutable snapshot with one index per kind (package index). A
// reader loads a pointer and walks the index.
//
// Writers are the reflectors, the results of the facade's own patches, and the joiner. They share one mutex,
// change their own trees, and publish a copy: at once for a patch, and every few milliseconds for everything
// else.
//
// A row shows more than its own object: a finding its project and repository, a repository its projects, a
// review its issues' counts. A finding is rendered by the write that brings it. The joiner renders everything
// else, and all rows affected by another object's change, in the background: first the changed objects
// themselves, then the affected rows.
package readmodel
