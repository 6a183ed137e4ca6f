// Package importer imports scanner results into the cluster: Collect groups results by scan; Importer compares them
// with the existing findings and writes only the differences.
//
// Decisions are pure functions, in files of their own (collect, spec, facts, history, recognise, plan, guard), which do
// not call the API server.
package importer
