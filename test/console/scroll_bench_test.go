package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// BenchmarkScrolling reports the duration of the main thread's tasks, in thread time, while 5,000 rows are scrolled
// through: the longest, and the number of tasks over 50 ms.
func BenchmarkScrolling(b *testing.B) {
	const n = 5000
	o := newOrganization(b)
	o.has(some(n)...)
	p := loggedIn(b, o.key("ada"))
	for b.Loop() {
		p.goes("/console/findings")
		tasks := p.traces(func() {
			p.sees(fmt.Sprintf("(window.scrollTo(0, document.body.scrollHeight), document.querySelectorAll('.row').length === %d)", n))
		})
		longest, long := time.Duration(0), 0
		for _, task := range tasks {
			longest = max(longest, task)
			if task > 50*time.Millisecond {
				long++
			}
		}
		b.ReportMetric(float64(longest.Microseconds())/1000, "ms/longest-task")
		b.ReportMetric(float64(long), "long-tasks")
		b.ReportMetric(float64(len(tasks)), "tasks")
	}
}

// traces returns the thread time of each task of the page's main thread during the work.
func (p *person) traces(work func()) (tasks []time.Duration) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.window, patience)
	defer cancel()
	var mu sync.Mutex
	ended := make(chan struct{})
	err := chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *tracing.EventDataCollected:
			mu.Lock()
			defer mu.Unlock()
			for _, value := range event.Value {
				if task, ok := taskOf(value); ok {
					tasks = append(tasks, task)
				}
			}
		case *tracing.EventTracingComplete:
			close(ended)
		}
	})
	harness.Must(p, err)
	config := &tracing.TraceConfig{IncludedCategories: []string{"disabled-by-default-devtools.timeline", "toplevel"}}
	_, err = chromedp.Call(ctx, tracing.Start, tracing.StartParams{TraceConfig: config})
	harness.Must(p, err)
	work()
	_, err = chromedp.Call(ctx, tracing.End, cdp.Empty{})
	harness.Must(p, err)
	select {
	case <-ended:
	case <-ctx.Done():
		p.Fatal(ctx.Err())
	}
	mu.Lock()
	defer mu.Unlock()
	return tasks
}

// taskOf returns the thread time of a main-thread task.
func taskOf(event []byte) (time.Duration, bool) {
	var task struct {
		Name     string  `json:"name"`
		Duration float64 `json:"tdur"` // in microseconds
	}
	if err := json.Unmarshal(event, &task); err != nil || task.Name != "RunTask" && task.Name != "ThreadControllerImpl::RunTask" {
		return 0, false
	}
	return time.Duration(task.Duration * float64(time.Microsecond)), true
}
