package faults

import (
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// write is an attempt to set a finding's comment to a value that no other attempt sets.
type write struct {
	id, value string
	// door is "REST" or "kubectl".
	door         string
	acknowledged bool
}

// journal is what the load tried and was told. It is safe for concurrent use.
type journal struct {
	verdict *verdict
	begun   time.Time

	mutex sync.Mutex
	// writes of the phase, and operations on the findings that REST alone writes.
	writes     []write
	operations []operation
	// floors is the greatest number that was read of a finding that kubectl writes.
	floors map[string]int
	// acknowledged counts over all phases, by what it was.
	acknowledged map[string]int
	// scans are the imports that were acknowledged.
	imports int
}

// operation is a REST read or write, as porcupine takes it.
type operation struct {
	porcupine.Operation
	id      string
	unknown bool // the outcome of a write
}

func newJournal(v *verdict) *journal {
	return &journal{verdict: v, begun: time.Now(), floors: map[string]int{}, acknowledged: map[string]int{}}
}

// now is a monotonic clock in nanoseconds.
func (j *journal) now() int64 { return time.Since(j.begun).Nanoseconds() }

func (j *journal) wrote(w write) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.writes = append(j.writes, w)
	if w.acknowledged {
		j.acknowledged[w.door+" writes"]++
	}
}

func (j *journal) did(o operation) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.operations = append(j.operations, o)
	if !o.unknown && o.Input.(step).write == "" {
		j.acknowledged["REST reads"]++
	}
}

func (j *journal) count(what string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.acknowledged[what]++
}

// counted is how often that was acknowledged over all phases.
func (j *journal) counted(what string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.acknowledged[what]
}

// sum is how many operations were acknowledged over all phases.
func (j *journal) sum() int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	sum := 0
	for _, count := range j.acknowledged {
		sum += count
	}
	return sum
}

// floor is what a read that begins now must show at least.
func (j *journal) floor(id string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.floors[id]
}

// saw notes what a read has shown, which began when the floor was that.
func (j *journal) saw(id string, floor, value int) {
	j.mutex.Lock()
	j.floors[id] = max(j.floors[id], value)
	j.mutex.Unlock()
	if value < floor {
		j.verdict.wrong("reads of %s went back: %d was shown, and then %d", id, floor, value)
	}
}

// take returns what was noted since the last time, for a judgement.
func (j *journal) take() ([]write, []operation) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	writes, operations := j.writes, j.operations
	j.writes, j.operations = nil, nil
	return writes, operations
}
