package faults

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// step is the input of an operation: a value to write, or an empty one to read.
type step struct{ write string }

// register is the sequential model of a finding's comment.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if value := input.(step).write; value != "" {
			return true, value
		}
		return output.(string) == state.(string), state
	},
}

// checkTimeout bounds the linearizability check of one finding's operations.
const checkTimeout = time.Minute

// checkLinearizable checks that for each finding some order of its operations explains every read.
// A write of unknown outcome that is found in the history took effect at some time after its call;
// one that is not found had no effect.
func checkLinearizable(v *verdict, operations []operation, initial map[string]string, stored func(id, value string) bool) {
	histories := map[string][]porcupine.Operation{}
	for id, value := range initial {
		histories[id] = []porcupine.Operation{{Input: step{write: value}, Call: -2, Return: -1}}
		if value == "" {
			histories[id] = nil
		}
	}
	for _, o := range operations {
		if o.unknown {
			if !stored(o.id, o.Input.(step).write) {
				continue
			}
			o.Return = math.MaxInt64
		}
		histories[o.id] = append(histories[o.id], o.Operation)
	}
	for id, history := range histories {
		switch porcupine.CheckOperationsTimeout(register, history, checkTimeout) {
		case porcupine.Ok:
		case porcupine.Illegal:
			v.wrong("no order of the %d REST operations on %s explains what was read", len(history), id)
		case porcupine.Unknown:
			v.wrong("whether an order explains the %d REST operations on %s was not found out in %s", len(history), id, checkTimeout)
		}
	}
}

// The model itself is tested: a model that accepts everything would find no errors.
func TestTheRegisterRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	write := func(value string, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: step{write: value}, Call: call, Return: end}
	}
	read := func(value string, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: step{}, Output: value, Call: call, Return: end}
	}
	for _, c := range []struct {
		reason  string
		history []porcupine.Operation
		holds   bool
	}{
		{"a read after a write shows it", []porcupine.Operation{write("a", 1, 2), read("a", 3, 4)}, true},
		{"a read beside a write shows either", []porcupine.Operation{write("a", 1, 5), read("", 2, 3), read("a", 2, 4)}, true},
		{"a write that was acknowledged is not lost", []porcupine.Operation{write("a", 1, 2), read("", 3, 4)}, false},
		{"reads do not go back", []porcupine.Operation{write("a", 1, 9), read("a", 2, 3), read("", 4, 5)}, false},
		{"one of unknown outcome may come late", []porcupine.Operation{write("a", 1, 2), write("b", 3, math.MaxInt64), read("a", 4, 5), read("b", 6, 7)}, true},
		{"and only once", []porcupine.Operation{write("b", 1, math.MaxInt64), read("b", 2, 3), write("a", 4, 5), read("a", 6, 7), read("b", 8, 9)}, false},
	} {
		if got := porcupine.CheckOperations(register, c.history); got != c.holds {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}
