package harness

import (
	"time"
	"unsafe"
)

// MoveWallClock returns the reading of the clock with its wall clock moved and its monotonic clock unchanged, as after
// the machine slept or its time was set. In a bubble of synctest, time.Now has no monotonic clock.
func MoveWallClock(at time.Time, by time.Duration) time.Time {
	moved := at.Add(by)
	// Add moves both clocks, and the second field of a time.Time with both is the monotonic one.
	(*struct {
		_         uint64
		monotonic int64
		_         *time.Location
	})(unsafe.Pointer(&moved)).monotonic -= int64(by)
	if moved.Sub(at) != 0 || moved.Round(0).Sub(at.Round(0)) != by {
		panic("the time has no monotonic clock, or the layout of time.Time has changed")
	}
	return moved
}
