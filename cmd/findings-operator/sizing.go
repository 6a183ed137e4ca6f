package main

import "math"

// What `make bench BENCH="--only sizes"` measured: see docs/performance/sizes.md, which a test holds them to.
var (
	sizedAPIServer = footprint{"kube-apiserver", 510e6, 48e3}
	sizedEtcd      = footprint{"etcd", 100e6, 12e3}
	sizedControl   = footprint{"controllers", 150e6, 15e3}
	sizedREST      = footprint{"REST API", 120e6, 14.5e3}
)

const (
	// underLoad is how much more memory the processes take while all findings change than while none does.
	underLoad = 2
	// storedBytes are what etcd stores of a finding, with its part of everything else.
	storedBytes = 3.6e3
	// versions of a finding that etcd keeps until the next compaction, when all findings are imported, reconciled,
	// decided and reconciled within its five minutes.
	versions = 4
	// leastQuota is etcd's own default.
	leastQuota = 2 << 30
	// onePlane is how many objects of a kind Kubernetes recommends at most. It was tried with 100,000.
	onePlane = 150_000
	// organizationObjects count as a finding each: namespace, accounts, bindings, quota, repositories, projects, keys.
	organizationObjects = 20
)

// footprint is what a process takes of a machine's memory, in bytes, while nothing changes.
type footprint struct {
	process       string
	base, finding float64
}

// of is what it takes with so many objects, while all of them change.
func (f footprint) of(objects int) float64 { return underLoad * (f.base + float64(objects)*f.finding) }

// objectsOf is how many objects there are of so many findings and organizations.
func objectsOf(findings, organizations int) int { return findings + organizations*organizationObjects }

// planesFor is how many control planes so many findings take, and how many findings and organizations each has then.
func planesFor(findings, organizations int) (planes, findingsEach, organizationsEach int) {
	planes = max(1, divideUp(findings, onePlane))
	return planes, divideUp(findings, planes), divideUp(organizations, planes)
}

func divideUp(count, by int) int { return (count + by - 1) / by }

// quotaFor is what etcd must be allowed to store.
func quotaFor(objects int) float64 {
	return max(leastQuota, float64(objects)*storedBytes*versions)
}

// machineFor is the memory of the smallest common machine that has so much, in GiB.
func machineFor(bytes float64) int {
	return int(math.Exp2(math.Ceil(math.Log2(max(bytes/(1<<30), 2)))))
}
