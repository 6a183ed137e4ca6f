package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
)

// quantiles of times.
type quantiles struct{ p50, p99, most time.Duration }

func quantilesOf(taken []time.Duration) quantiles {
	slices.Sort(taken)
	return quantiles{measure.Quantile(taken, 0.5), measure.Quantile(taken, 0.99), measure.Quantile(taken, 1)}
}

// histogram holds the buckets of a Prometheus histogram in ascending order. It has some, and the same in all scrapes.
type histogram []bucket

// bucket counts the values up to a bound in seconds.
type bucket struct{ bound, count float64 }

func (h histogram) less(before histogram) histogram {
	out := slices.Clone(h)
	for i := range out {
		out[i].count -= before[i].count
	}
	return out
}

// at returns the smallest bound that covers the quantile.
func (h histogram) at(quantile float64) string {
	last := len(h) - 1 // its bound is infinite
	if h[last].count == 0 {
		return "-"
	}
	for _, b := range h[:last] {
		if b.count >= quantile*h[last].count {
			return "below " + milliseconds(time.Duration(b.bound*float64(time.Second)))
		}
	}
	return fmt.Sprintf("more than %g s", h[last-1].bound)
}
