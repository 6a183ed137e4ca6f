// Package plane follows docs/findings-plane.md, "A plane without a cluster", command by command: a
// kube-apiserver that stores the kinds in PostgreSQL through kine, and the operator beside it with
// its Lease in another cluster. Then it runs the conformance suite against them.
//
// The tests need the build tag plane, PostgreSQL 15 and the programs that hack/kine/build.sh
// builds: `make plane`.
package plane
