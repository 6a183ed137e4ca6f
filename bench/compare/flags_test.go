package main

import (
	"testing"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The published pages say how they were made.
func TestTheCommandOfAPageHasEachFlagThatWasGiven(t *testing.T) {
	for want, arguments := range map[string][]string{
		"make bench": nil,
		`make bench BENCH="--connections 2 --findings 1000,2000 --reviews 50 --turn 1s"`: {
			"--turn=1s", "--reviews", "50", "--findings=1000", "--findings=2000", "--connections=2",
		},
		`make bench BENCH="--against 0123abc --binary ./other --only reads,cost --out '' --short"`: {
			"--short", "--only=reads,cost", "--binary=./other", "--against=0123abc", "--out=",
		},
	} {
		command := newCommand()
		harness.Must(t, command.ParseFlags(arguments))
		harness.Same(t, "the command", want, commandLine(command.Flags()))
	}
}

func TestAShortRunReplacesNoPublishedPages(t *testing.T) {
	for _, c := range []struct {
		reason    string
		arguments []string
		out, want string
	}{
		{"a run without --short is published", nil, "docs", "docs"},
		{"its figures are of no use", []string{"--short"}, "docs", ""},
		{"a folder is named", []string{"--short", "--out=elsewhere"}, "elsewhere", "elsewhere"},
	} {
		flags := newCommand().Flags()
		harness.Must(t, flags.Parse(c.arguments))
		o := options{Options: bench.Options{
			Sizes: []int{1}, Reviews: 1, Results: 1, ResultsAgain: 1, Triaged: 2, Imported: 1, Connections: 1,
			Plan: measure.Plan{Rounds: 1, Duration: 1}, Short: len(c.arguments) > 0,
		}, out: c.out}
		harness.Must(t, o.complete(flags))
		harness.Same(t, c.reason, c.want, o.out)
	}
}
