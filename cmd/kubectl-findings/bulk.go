package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
)

// defaultConcurrency is how many objects are written at the same time: enough to hide the latency, few enough to leave
// the API server to others.
const defaultConcurrency = 16

// outcome of a command for one of many objects.
type outcome struct {
	// tried is false if the command was stopped before it.
	tried bool
	// changed is false if there was nothing to change.
	changed bool
	err     error
}

// forEach calls work for each of n objects, several at a time. When ctx ends it starts no more, and completes those
// started.
func forEach(ctx context.Context, n, concurrency int, progress func(done, total int),
	work func(i int) (changed bool, err error)) []outcome {
	outcomes := make([]outcome, n)
	var group errgroup.Group
	group.SetLimit(concurrency)
	var done atomic.Int64
	progress(0, n)
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			// ctx may have ended while it waited for its turn.
			if ctx.Err() != nil {
				return nil
			}
			changed, err := work(i)
			if ctx.Err() != nil && errors.Is(err, context.Canceled) {
				return nil // an interrupted read; writes are completed
			}
			outcomes[i] = outcome{tried: true, changed: changed, err: err}
			progress(int(done.Add(1)), n)
			return nil
		})
	}
	_ = group.Wait() // each outcome holds its own error
	return outcomes
}

// failure is an object that was not processed, and why.
type failure struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// bulkSummary is the outcome of a command on many objects.
type bulkSummary struct {
	// Action in the past tense, such as "muted".
	Action    string `json:"action"`
	Namespace string `json:"namespace"`
	DryRun    string `json:"dryRun,omitempty"`
	// Operation is the TriageOperation that was used.
	Operation string   `json:"operation,omitempty"`
	Done      []string `json:"done"`
	Unchanged []string `json:"unchanged"`
	// Conflicted holds the objects that an operation left alone because they were changed in the meantime.
	Conflicted []failure `json:"conflicted"`
	Failed     []failure `json:"failed"`
	// NotTried holds the objects that were left when the command was interrupted.
	NotTried []string `json:"notTried"`

	// undo is the command that undoes the operation.
	undo string
	// what names the objects, in the plural; resource is their name in `kubectl -o name`.
	what, resource string
	// first is why the first object failed.
	first error
}

// count groups the objects by their outcome.
func (s *bulkSummary) count(names []string, outcomes []outcome) {
	for i, e := range outcomes {
		switch {
		case !e.tried:
			s.NotTried = append(s.NotTried, names[i])
		case e.err != nil:
			s.first = cmp.Or(s.first, e.err)
			s.Failed = append(s.Failed, failure{names[i], e.err.Error()})
		case e.changed:
			s.Done = append(s.Done, names[i])
		default:
			s.Unchanged = append(s.Unchanged, names[i])
		}
	}
}

// Reasons for findings without room in the operation's status.
const (
	whyConflicted = "it was changed in the meantime"
	whyLeft       = "it could not be changed"
)

// add counts a finding by its outcome.
func (s *bulkSummary) add(name string, outcome rules.Outcome, why string) {
	switch outcome {
	case rules.Changed:
		s.Done = append(s.Done, name)
	case rules.Unchanged:
		s.Unchanged = append(s.Unchanged, name)
	case rules.Conflicted:
		s.Conflicted = append(s.Conflicted, failure{name, cmp.Or(why, whyConflicted)})
	default:
		s.Failed = append(s.Failed, failure{name, cmp.Or(why, whyLeft)})
	}
}

// total returns how many objects the command covers.
func (s *bulkSummary) total() int {
	return len(s.Done) + len(s.Unchanged) + len(s.Conflicted) + len(s.Failed) + len(s.NotTried)
}

// err returns the error of the command as a whole, or nil.
func (s *bulkSummary) err() error {
	total := s.total()
	switch {
	case len(s.NotTried) > 0:
		return fmt.Errorf("interrupted after %d of %d %s; run the same command again to continue", total-len(s.NotTried),
			total, s.what)
	case len(s.Failed) > 0 && len(s.Conflicted) > 0:
		return fmt.Errorf("%d of %d %s failed, %d conflicted", len(s.Failed), total, s.what, len(s.Conflicted))
	case len(s.Conflicted) > 0:
		return fmt.Errorf("%d of %d %s conflicted", len(s.Conflicted), total, s.what)
	case len(s.Failed) > 0:
		return fmt.Errorf("%d of %d %s failed", len(s.Failed), total, s.what)
	}
	return nil
}

// conclude prints the summary. It returns the error of the whole command, with advice about the first object that
// failed.
func (s *bulkSummary) conclude(ctx context.Context, in *session, to io.Writer, format string, n need) error {
	err := s.print(to, format)
	if s.first == nil {
		return errors.Join(err, s.err())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), suggestTimeout)
	defer cancel()
	n.name = s.Failed[0].Name
	return errors.Join(err, fmt.Errorf("%w: %w", s.err(), in.notFound(ctx, s.first, n)))
}

// print writes the summary in the requested format.
func (s *bulkSummary) print(to io.Writer, format string) error {
	for _, list := range []*[]string{&s.Done, &s.Unchanged, &s.NotTried} {
		if *list == nil {
			*list = []string{} // an empty list, not null
		}
	}
	for _, list := range []*[]failure{&s.Conflicted, &s.Failed} {
		if *list == nil {
			*list = []failure{}
		}
	}
	if format != outputName {
		return write(to, format, s, s.text)
	}
	for _, name := range s.Done {
		if _, err := fmt.Fprintf(to, "%s/%s\n", s.resource, name); err != nil {
			return err
		}
	}
	return nil
}

// maxNamed bounds how many objects per outcome a text summary names.
const maxNamed = 20

func (s *bulkSummary) text() []byte {
	var b bytes.Buffer
	nameFailures(&b, "conflicted", s.Conflicted)
	nameFailures(&b, "failed", s.Failed)
	if n := len(s.NotTried); n > 0 {
		fmt.Fprintf(&b, "not tried: %s", strings.Join(s.NotTried[:min(n, maxNamed)], ", "))
		if n > maxNamed {
			fmt.Fprintf(&b, " and %d more", n-maxNamed)
		}
		b.WriteByte('\n')
	}
	head := s.what
	if s.DryRun != "" {
		head += fmt.Sprintf(", dry run (%s)", s.DryRun)
	}
	fmt.Fprintf(&b, "%s: %d %s, %d unchanged", head, len(s.Done), s.Action, len(s.Unchanged))
	if n := len(s.Conflicted); n > 0 {
		fmt.Fprintf(&b, ", %d conflicted", n)
	}
	fmt.Fprintf(&b, ", %d failed", len(s.Failed))
	if n := len(s.NotTried); n > 0 {
		fmt.Fprintf(&b, ", %d not tried", n)
	}
	b.WriteByte('\n')
	if s.Operation != "" && len(s.Done) > 0 {
		fmt.Fprintf(&b, "operation %s; undo with: %s\n", s.Operation, s.undo)
	}
	return b.Bytes()
}

// nameFailures writes a line for each of the first objects with the outcome.
func nameFailures(b *bytes.Buffer, outcome string, list []failure) {
	for i, f := range list {
		if i == maxNamed {
			fmt.Fprintf(b, "... and %d more %s; -o json names them all\n", len(list)-i, outcome)
			break
		}
		fmt.Fprintf(b, "%s %s: %s\n", outcome, f.Name, printable(f.Reason))
	}
}
