package attack

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
)

// The classes of attacks.
const (
	isolation = "isolation"
	cluster   = "cluster"
	tokensOf  = "tokens"
	inputOf   = "input"
	bombs     = "SARIF bombs"
	egress    = "webhook egress"
	poison    = "poison"
	costly    = "costly policies"
)

// attacks counts the attempts of all tests.
var attacks = ledger{tried: map[string]int{}, through: map[string]int{}}

type ledger struct {
	mu             sync.Mutex
	tried, through map[string]int
}

// attempt counts one attack. If held is false, the attack succeeded and the test fails with the
// message.
func attempt(t *testing.T, class string, held bool, format string, arguments ...any) bool {
	t.Helper()
	attacks.count(class, held)
	if !held {
		t.Errorf(format, arguments...)
	}
	return held
}

func (l *ledger) count(class string, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried[class]++
	if !held {
		l.through[class]++
	}
}

func (l *ledger) print(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tried, through := 0, 0
	for _, class := range slices.Sorted(maps.Keys(l.tried)) {
		fmt.Fprintf(w, "%-15s tried %6d, succeeded %d\n", class, l.tried[class], l.through[class])
		tried, through = tried+l.tried[class], through+l.through[class]
	}
	fmt.Fprintf(w, "attacks tried %d, succeeded %d\n", tried, through)
}
