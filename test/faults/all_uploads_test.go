//go:build faults

package faults

import (
	"flag"
	"regexp"
	"testing"
	"time"
)

var (
	uploadsCount   = flag.Int("uploads", 20, "uploads at the same time, four of each organization")
	uploadsResults = flag.Int("results", 5000, "results of each upload")
)

// uploadsOfEach is how many uploads an organization may have under way.
const uploadsOfEach = 4

// uploadsSilence is longer than a Lease lasts.
const uploadsSilence = 25 * time.Second

func TestUploadsAreWholeOverAKilledFacadeAndANetworkThatIsCut(t *testing.T) {
	if chosen := regexp.MustCompile(*only); !chosen.MatchString("uploads") {
		t.Skip("-only names others")
	}
	s := start(t, staleness, 1, "")
	s.uploads(uploadsPlan{
		organizations: max(1, *uploadsCount/uploadsOfEach), projects: min(*uploadsCount, uploadsOfEach), results: *uploadsResults,
		silence: uploadsSilence,
	})
	t.Log(s.verdict.summary(s.journal.sum()))
}
