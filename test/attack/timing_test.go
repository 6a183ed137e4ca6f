package attack

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"
)

// Answers for foreign and absent ids count as distinguishable by time if both hold: one sample is
// larger than the other much more often than by chance, and the medians differ by enough to be used
// over a network. On a noisy machine one round may look so, but not every one of several.
const (
	timingRounds = 4
	// maxZ is how far from chance the rank sum may lie, in standard deviations.
	maxZ = 5
	// maxRatio is the allowed ratio of the medians.
	maxRatio = 1.3
)

// timingSamples is the number of samples of each kind in a round.
func timingSamples() int { return inForm(60, 600) }

func TestIsolation_ResponseTimesRevealNothing(t *testing.T) {
	samples := timingSamples()
	all := tenants(t)
	attacker, victim := all[0], all[1]
	for _, op := range operations(t) {
		if op.isOfMany() {
			continue
		}
		foreign, absent := op.shotAt(t, victim.ids, victim.sent), op.shotAt(t, victim.absent(), victim.sent)
		said := false
		for round := 0; round < timingRounds && !said; round++ {
			a, b := interleaved(t, attacker, foreign, absent, samples)
			z, ratio := rankSum(a, b), medianRatio(a, b)
			if said = math.Abs(z) < maxZ || ratio < maxRatio; !said {
				t.Logf("%s: round %d: z %.1f, medians %.2f apart", op.id, round, z, ratio)
			}
		}
		attempt(t, isolation, said, "%s: the time of the answer reveals whether an id is another's", op.id)
	}
}

// interleaved sends both in turn, in alternating order, so that fluctuations of the machine affect
// both.
func interleaved(t *testing.T, o *tenant, x, y shot, n int) (a, b []time.Duration) {
	t.Helper()
	for i := range n {
		if i%2 == 0 {
			a = append(a, target.facade.send(t, o.token, x).took)
			b = append(b, target.facade.send(t, o.token, y).took)
			continue
		}
		b = append(b, target.facade.send(t, o.token, y).took)
		a = append(a, target.facade.send(t, o.token, x).took)
	}
	return a, b
}

// rankSum returns the Mann-Whitney statistic as a number of standard deviations from chance.
func rankSum(a, b []time.Duration) float64 {
	type sample struct {
		took time.Duration
		of   int
	}
	var all []sample
	for _, took := range a {
		all = append(all, sample{took, 0})
	}
	for _, took := range b {
		all = append(all, sample{took, 1})
	}
	slices.SortFunc(all, func(x, y sample) int { return cmp.Compare(x.took, y.took) })
	sum := 0.0
	for rank, s := range all {
		if s.of == 0 {
			sum += float64(rank + 1)
		}
	}
	n, m := float64(len(a)), float64(len(b))
	u := sum - n*(n+1)/2
	return (u - n*m/2) / math.Sqrt(n*m*(n+m+1)/12)
}

// medianRatio returns the ratio of the larger median to the smaller one.
func medianRatio(a, b []time.Duration) float64 {
	x, y := median(a), median(b)
	return float64(max(x, y)) / float64(max(min(x, y), 1))
}

func median(of []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(of))[len(of)/2]
}

// The rank test must detect a real difference with as many samples as are taken.
func TestIsolation_TheRankTestDetectsADifference(t *testing.T) {
	var a, b []time.Duration
	for i := range timingSamples() {
		a = append(a, time.Duration(1000+i%97))
		b = append(b, time.Duration(1400+i%89))
	}
	if z := rankSum(a, b); math.Abs(z) < maxZ || medianRatio(a, b) < maxRatio {
		t.Errorf("two samples apart: z %.1f, ratio %.2f", z, medianRatio(a, b))
	}
	if z := rankSum(a, a); math.Abs(z) > maxZ {
		t.Errorf("a sample and itself: z %.1f", z)
	}
}
