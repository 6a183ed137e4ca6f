package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/appsec-dev/findings-operator/internal/importer"
)

// plainInterval is how often a line is printed where there is no terminal.
const plainInterval = 10 * time.Second

// progress shows on a terminal a bar, elsewhere a line now and then.
type progress struct {
	out      io.Writer
	quiet    bool
	terminal bool

	mu      sync.Mutex
	bar     *progressbar.ProgressBar
	printed time.Time
}

func newProgress(out io.Writer, quiet bool) *progress {
	file, ok := out.(*os.File)
	return &progress{
		out: out, quiet: quiet, printed: time.Now(),
		terminal: ok && term.IsTerminal(int(file.Fd())), //nolint:gosec // a descriptor is small
	}
}

func (p *progress) waiting(b *importer.Batch, holder string) {
	if !p.quiet {
		fmt.Fprintf(p.out, "waiting: another import of %s (%s) into this project is at work (%s)\n", b.Tool, b.Category, holder)
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
				progressbar.OptionSetDescription("writing findings"), progressbar.OptionClearOnFinish())
		}
		_ = p.bar.Set(done) // a bar that cannot be drawn stops nothing
	case time.Since(p.printed) >= plainInterval:
		p.printed = time.Now()
		fmt.Fprintf(p.out, "written: %d of %d findings\n", done, total)
	}
}

func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
