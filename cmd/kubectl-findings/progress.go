package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// plainInterval is how often a line is printed without a terminal.
const plainInterval = 10 * time.Second

// progress shows a bar on a terminal, or else a line at intervals.
type progress struct {
	out   io.Writer
	quiet bool
	// what names the objects, in the plural.
	what     string
	terminal bool

	mu      sync.Mutex
	bar     *progressbar.ProgressBar
	printed time.Time
}

func newProgress(out io.Writer, quiet bool, what string) *progress {
	return &progress{out: out, quiet: quiet, what: what, printed: time.Now(), terminal: isTerminal(out)}
}

func (p *progress) waiting(imported, holder string) {
	if !p.quiet {
		fmt.Fprintf(p.out, "waiting: another import of %s is running (%s)\n", printable(imported),
			printable(holder))
	}
}

func (p *progress) at(done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.quiet || total == 0:
	case p.terminal:
		if p.bar == nil || done == 0 {
			p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(p.out), progressbar.OptionShowCount(),
				progressbar.OptionSetDescription("processing "+p.what), progressbar.OptionClearOnFinish())
		}
		_ = p.bar.Set(done) // a failure to draw the bar is ignored
	case time.Since(p.printed) >= plainInterval:
		p.printed = time.Now()
		fmt.Fprintf(p.out, "processed: %d of %d %s\n", done, total, p.what)
	}
}

func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
