//go:build faults

package faults

import (
	"flag"
	"regexp"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
)

var (
	uploadsCount   = flag.Int("uploads", 20, "uploads at the same time, four of each organization")
	uploadsResults = flag.Int("results", 5000, "results of each upload")
)

// uploadsOfEach is the number of concurrent uploads per organization.
const uploadsOfEach = 4

// uploadsSilence is longer than the duration of a Lease.
const uploadsSilence = 25 * time.Second

func TestUploadsAreWholeOverAKilledFacadeAndANetworkThatIsCut(t *testing.T) {
	if chosen := regexp.MustCompile(*only); !chosen.MatchString("uploads") {
		t.Skip("-only names others")
	}
	s := start(t, rig.Options{KeyStaleness: staleness, Controllers: 1})
	s.uploads(uploadsPlan{
		organizations: max(1, *uploadsCount/uploadsOfEach), projects: min(*uploadsCount, uploadsOfEach), results: *uploadsResults,
		silence: uploadsSilence,
	})
	t.Log(s.verdict.summary(s.journal.sum()))
}
