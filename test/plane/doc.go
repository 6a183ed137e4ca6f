// Package plane follows docs/operations.md, "A findings plane of its own", command by command: a
// kube-apiserver that keeps the kinds in PostgreSQL through kine, and the operator beside it with
// its Lease in another cluster. Then it holds that against the conformance suite.
//
// The tests need the build tag plane, PostgreSQL 15 and what hack/kine/build.sh builds:
// `make plane`.
package plane
