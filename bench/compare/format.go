package main

import (
	"fmt"
	"time"
)

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// milliseconds formats a duration with its significant digits.
func milliseconds(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 1:
		return fmt.Sprintf("%.1f ms", ms)
	default:
		return fmt.Sprintf("%.2f ms", ms)
	}
}

func kilobytes(n int) string { return fmt.Sprintf("%.1f kB", float64(n)/1000) }

// thousands separates thousands with commas: 100,000.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

func megabytes(bytes float64) string { return fmt.Sprintf("%.0f", bytes/1e6) }

func inMilliseconds(ms float64) string {
	return milliseconds(time.Duration(ms * float64(time.Millisecond)))
}

func inBytes(bytes float64) string { return fmt.Sprintf("%.0f", bytes) }
