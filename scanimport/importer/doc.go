// Package importer imports scanner results into the cluster: Collect groups results by scan; Importer compares them
// with the existing findings and writes only the differences.
//
// Decisions are pure functions (collect, spec, facts, plan, guard). Only importer.go, cluster.go, write.go and lease.go
// call the API server.
package importer
