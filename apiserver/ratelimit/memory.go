package ratelimit

import (
	"maps"
	"sync"
	"time"
)

// counted is how many requests a caller has made in its window, and how much of the window is left.
type counted struct {
	requests int64
	left     time.Duration
}

// memory counts requests in this replica.
type memory struct {
	length time.Duration

	mu      sync.Mutex
	windows map[string]window
	swept   time.Time
}

type window struct {
	requests int64
	end      time.Time
}

func newMemory(length time.Duration) *memory {
	return &memory{length: length, windows: map[string]window{}}
}

func (m *memory) take(id string, now time.Time) counted {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(now)
	w := m.windows[id]
	if !now.Before(w.end) {
		w = window{end: now.Add(m.length)}
	}
	w.requests++
	m.windows[id] = w
	return counted{w.requests, w.end.Sub(now)}
}

// set takes over a count from elsewhere.
func (m *memory) set(id string, known counted, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep(now)
	m.windows[id] = window{requests: known.requests, end: now.Add(min(known.left, m.length))}
}

// sweep removes the expired windows, once per window.
func (m *memory) sweep(now time.Time) {
	if now.Sub(m.swept) < m.length {
		return
	}
	m.swept = now
	maps.DeleteFunc(m.windows, func(_ string, w window) bool { return !now.Before(w.end) })
}
