package ratelimit

import "testing"

func BenchmarkTakeInMemory(b *testing.B) {
	l, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	caller := Key("a", 1_000_000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Take(b.Context(), caller)
		}
	})
}
