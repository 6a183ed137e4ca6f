package main

import (
	"math"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/uploads"
)

// Measured by `make bench BENCH="--only sizes"`: see docs/performance/sizes.md, which a test compares them with.
var (
	sizedAPIServer = footprint{process: "kube-apiserver", base: 510e6, finding: 48e3}
	sizedEtcd      = footprint{process: "etcd", base: 100e6, finding: 12e3}
	sizedControl   = footprint{process: "controllers", base: 150e6, finding: 15e3}
	sizedREST      = footprint{
		process: "REST API", base: 120e6, finding: 14.5e3, uploads: uploadCopies * float64(uploads.DefaultLimits.Bytes),
	}
)

const (
	// underLoad is the factor by which memory grows while all findings change.
	underLoad = 2
	// uploadCopies is the memory that uploads take per byte of SARIF that they hold: see --uploads-mib.
	uploadCopies = 3
	// storedBytes is what etcd stores per finding, including its share of everything else.
	storedBytes = 3.6e3
	// versions is how many versions of a finding etcd keeps until the next compaction, if all findings are imported,
	// reconciled, decided and reconciled within five minutes.
	versions = 4
	// minQuota is etcd's default quota, in bytes.
	minQuota = 2 << 30
	// onePlane is how many objects of a kind Kubernetes recommends at most. 200,000 were tested.
	onePlane = 150_000
	// organizationObjects is the number of objects per organization, each counted like a finding: namespace, accounts,
	// bindings, quota, a few repositories and projects, keys.
	organizationObjects = 20
	// projectTrends is how many FindingTrends are kept per project: one per quarter.
	projectTrends = v1alpha1.TrendYears*4 + 1
	// projectObjects is how many findings a project counts as: the object and its FindingTrends, which take most if its
	// findings change every day: so much do their rows take in kube-apiserver. In etcd they take less.
	projectObjects = 100
)

// footprint is a process's memory use, in bytes.
type footprint struct {
	process string
	// base and finding are what the process takes, and per object, while nothing changes.
	base, finding float64
	// uploads is what all concurrent uploads take together, however many objects are stored.
	uploads float64
}

// atRest returns the memory for that many objects while nothing changes.
func (f footprint) atRest(objects int) float64 { return f.base + float64(objects)*f.finding }

// of returns the memory for that many objects while all of them change and uploads are at their limit.
func (f footprint) of(objects int) float64 { return underLoad*f.atRest(objects) + f.uploads }

// planesFor returns how many control planes that many objects of a kind need, and the most organizations per control
// plane, if all organizations have as many. An organization cannot be divided, so there may be more than onePlane in
// each.
func planesFor(ofKind, organizations int) (planes, organizationsEach int) {
	organizationsEach = organizations
	if ofKind > onePlane {
		organizationsEach = max(1, onePlane*organizations/ofKind)
	}
	return divideUp(organizations, organizationsEach), organizationsEach
}

func divideUp(count, by int) int { return (count + by - 1) / by }

// quotaFor returns the quota that etcd needs, in bytes.
func quotaFor(objects int) float64 {
	return max(minQuota, float64(objects)*storedBytes*versions)
}

// machineFor returns the memory of the smallest common machine size that suffices, in GiB.
func machineFor(bytes float64) int {
	return int(math.Exp2(math.Ceil(math.Log2(max(bytes/(1<<30), 2)))))
}
