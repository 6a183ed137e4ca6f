package main

import "math"

// Measured by `make bench BENCH="--only sizes"`: see docs/performance/sizes.md, which a test compares them with.
var (
	sizedAPIServer = footprint{"kube-apiserver", 510e6, 48e3}
	sizedEtcd      = footprint{"etcd", 100e6, 12e3}
	sizedControl   = footprint{"controllers", 150e6, 15e3}
	sizedREST      = footprint{"REST API", 120e6, 14.5e3}
)

const (
	// underLoad is the factor by which memory grows while all findings change.
	underLoad = 2
	// storedBytes is what etcd stores per finding, including its share of everything else.
	storedBytes = 3.6e3
	// versions is how many versions of a finding etcd keeps until the next compaction, if all findings are imported,
	// reconciled, decided and reconciled within five minutes.
	versions = 4
	// leastQuota is etcd's default quota, in bytes.
	leastQuota = 2 << 30
	// onePlane is how many objects of a kind Kubernetes recommends at most. 200,000 were tested.
	onePlane = 150_000
	// organizationObjects is the number of objects per organization, each counted like a finding: namespace, accounts,
	// bindings, quota, repositories, projects, keys.
	organizationObjects = 20
)

// footprint is a process's memory use, in bytes, while nothing changes.
type footprint struct {
	process       string
	base, finding float64
}

// of returns the memory for that many objects while all of them change.
func (f footprint) of(objects int) float64 { return underLoad * (f.base + float64(objects)*f.finding) }

// objectsOf returns the number of objects for that many findings and organizations.
func objectsOf(findings, organizations int) int { return findings + organizations*organizationObjects }

// planesFor returns how many control planes that many findings need, and the most findings and organizations per
// control plane, if all organizations have as many findings. An organization cannot be divided, so there may be more
// than onePlane of findings in each.
func planesFor(findings, organizations int) (planes, findingsEach, organizationsEach int) {
	organizationsEach = organizations
	if findings > onePlane {
		organizationsEach = max(1, onePlane*organizations/findings)
	}
	return divideUp(organizations, organizationsEach), divideUp(findings*organizationsEach, organizations),
		organizationsEach
}

func divideUp(count, by int) int { return (count + by - 1) / by }

// quotaFor returns the quota that etcd needs, in bytes.
func quotaFor(objects int) float64 {
	return max(leastQuota, float64(objects)*storedBytes*versions)
}

// machineFor returns the memory of the smallest common machine size that suffices, in GiB.
func machineFor(bytes float64) int {
	return int(math.Exp2(math.Ceil(math.Log2(max(bytes/(1<<30), 2)))))
}
