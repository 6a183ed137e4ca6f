package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// tick is what /proc counts processor time in: USER_HZ, 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// Processes are idle when they use less than a quarter of a core together, as they do by their timers,
// for as long as idleFor. A collection of garbage takes at least a core.
const (
	idleFor     = 200 * time.Millisecond
	idleMost    = idleFor / 4
	idleTimeout = 2 * time.Minute
)

// AwaitIdle returns when the processes have nothing to do. That they still have after two minutes is
// an error. Without /proc nothing is known of them, and nothing waited for.
func AwaitIdle(ctx context.Context, pids []int) error {
	return awaitIdle(ctx, pids, processorTimes)
}

func awaitIdle(ctx context.Context, pids []int, processorTimes func([]int) map[int]time.Duration) error {
	var busy time.Duration
	before := processorTimes(pids)
	err := wait.PollUntilContextTimeout(ctx, idleFor, idleTimeout, false, func(context.Context) (bool, error) {
		after := processorTimes(pids)
		busy = 0
		for pid, used := range after {
			busy += used - before[pid]
		}
		before = after
		return busy < idleMost, nil
	})
	if err != nil {
		return fmt.Errorf("wait for processes %v to be idle: %w: they used %s of the last %s", pids, err, busy, idleFor)
	}
	return nil
}

// processorTimes are what each process has used so far, its own and the kernel's for it. One that has
// ended is left out.
func processorTimes(pids []int) map[int]time.Duration {
	used := map[int]time.Duration{}
	for _, pid := range pids {
		if t, err := ProcessorTimeOf(pid); err == nil {
			used[pid] = t
		}
	}
	return used
}

// ProcessorTimeOf is what a process has used so far, its own and the kernel's for it.
func ProcessorTimeOf(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in brackets may hold spaces; utime and stime are the 12th and 13th after it.
	_, rest, _ := bytes.Cut(content, []byte(") "))
	fields := strings.Fields(string(rest))
	if len(fields) < 13 {
		return 0, errors.New("/proc says nothing of processor time")
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return 0, err
	}
	return time.Duration(user+system) * tick, nil
}

// Memory of a process, in bytes.
type Memory struct {
	// Resident is all that is in memory now, Peak the most that ever was, Anonymous what is
	// the process's own and no file's.
	Resident, Peak, Anonymous int64
}

// MemoryOf reads a process's memory from /proc.
func MemoryOf(pid int) (Memory, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	var m Memory
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(line, ":")
		into := map[string]*int64{"VmRSS": &m.Resident, "VmHWM": &m.Peak, "RssAnon": &m.Anonymous}[name]
		if into == nil {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("%s: %w", name, err)
		}
		*into = kilobytes << 10
	}
	return m, nil
}
