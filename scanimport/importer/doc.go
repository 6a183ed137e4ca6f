// Package importer brings what scanners reported into the cluster: Collect sorts results
// by scan, Importer works out the difference to the findings that are there and writes
// only that.
//
// What is decided is in pure functions (collect, spec, facts, plan, guard); what talks to
// the API server is in importer.go, cluster.go, write.go and lease.go.
package importer
