package harness

import "runtime"

// Heap returns how many bytes are in use on the heap, without garbage.
func Heap() int64 {
	runtime.GC()
	runtime.GC() // pooled objects, and those with a finalizer, are freed the second time
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // far below the bound
}
