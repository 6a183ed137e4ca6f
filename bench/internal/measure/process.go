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

// tick is the unit of processor time in /proc: USER_HZ, 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// Processes count as idle when together they use less than a quarter of a core, as their timers do,
// for idleFor. A garbage collection takes at least a core.
const (
	idleFor     = 200 * time.Millisecond
	idleMost    = idleFor / 4
	idleTimeout = 2 * time.Minute
)

// AwaitIdle returns when the processes are idle. It returns an error if they are still busy after
// two minutes. Without /proc it does not wait, because their load is unknown.
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

// processorTimes returns the processor time that each process has used so far, in user and kernel
// mode. It leaves out processes that have ended.
func processorTimes(pids []int) map[int]time.Duration {
	used := map[int]time.Duration{}
	for _, pid := range pids {
		if t, err := ProcessorTimeOf(pid); err == nil {
			used[pid] = t
		}
	}
	return used
}

// ProcessorTimeOf returns the processor time that a process has used so far, in user and kernel
// mode.
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
	// Resident is the memory in use now, and Peak its maximum so far.
	Resident, Peak int64
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
		into := map[string]*int64{"VmRSS": &m.Resident, "VmHWM": &m.Peak}[name]
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
