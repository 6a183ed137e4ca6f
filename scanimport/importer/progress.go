package importer

import (
	"sync"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Progress counts the written changes of a plan. It is safe for concurrent use.
type Progress struct {
	mu          sync.Mutex
	begun       bool
	done, total int
}

// Begin sets the total. Call it once the plan has passed its guards.
func (p *Progress) Begin(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.total = true, total
}

// Add counts a written change.
func (p *Progress) Add() (done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	return p.done, p.total
}

// Read returns the progress, or nil before Begin.
func (p *Progress) Read() *v1alpha1.ScanProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun {
		return nil
	}
	return &v1alpha1.ScanProgress{Done: int32(p.done), Total: int32(p.total)} //nolint:gosec // bounded by sarif.Limits and what a project can hold
}
