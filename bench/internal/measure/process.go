package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
)

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
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

// Memory of a process, in bytes.
type Memory struct {
	// Resident is the memory in use now, and Peak its maximum so far.
	Resident, Peak uint64
}

// MemoryOf reads a process's memory from /proc.
func MemoryOf(pid int) (Memory, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return Memory{}, err
	}
	status, err := process.NewStatus()
	return Memory{Resident: status.VmRSS, Peak: status.VmHWM}, err
}
