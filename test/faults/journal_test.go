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

// journal records the load's attempts and their results. It is safe for concurrent use.
type journal struct {
	verdict *verdict
	begun   time.Time

	mutex sync.Mutex
	// writes are the writes of the phase, and operations those on the findings that only REST
	// writes.
	writes     []write
	operations []operation
	// floors holds the greatest number that was read from each finding that kubectl writes.
	floors map[string]int
	// acknowledged counts the acknowledged operations of all phases, by sort.
	acknowledged map[string]int
	// failedImports are the errors of imports that were not acknowledged.
	failedImports []error
}

// operation is a REST read or write, in the form that porcupine expects.
type operation struct {
	porcupine.Operation
	id      string
	unknown bool // of a write whose outcome is unknown
}

func newJournal(v *verdict) *journal {
	return &journal{verdict: v, begun: time.Now(), floors: map[string]int{}, acknowledged: map[string]int{}}
}

// now returns a monotonic time in nanoseconds.
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

// imported records how an import ended.
func (j *journal) imported(err error) {
	if err == nil {
		j.count("imports")
		return
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.failedImports = append(j.failedImports, err)
}

// counted returns how many operations of that sort were acknowledged over all phases.
func (j *journal) counted(what string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.acknowledged[what]
}

// sum returns how many operations were acknowledged over all phases.
func (j *journal) sum() int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	sum := 0
	for _, count := range j.acknowledged {
		sum += count
	}
	return sum
}

// floor returns the least number that a read that begins now must show.
func (j *journal) floor(id string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.floors[id]
}

// saw records the value that a read has shown; floor is the floor at the start of the read.
func (j *journal) saw(id string, floor, value int) {
	j.mutex.Lock()
	j.floors[id] = max(j.floors[id], value)
	j.mutex.Unlock()
	if value < floor {
		j.verdict.wrong("reads of %s went back: %d was shown, and then %d", id, floor, value)
	}
}

// take returns the records since the last call, for a check.
func (j *journal) take() ([]write, []operation) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	writes, operations := j.writes, j.operations
	j.writes, j.operations = nil, nil
	return writes, operations
}
