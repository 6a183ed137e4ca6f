package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// decisionFlags say what is decided, about findings and about issues alike.
type decisionFlags struct {
	mute, confirm, reopen bool
	grounds               groundFlags
	comment               string

	flags *pflag.FlagSet
}

// add adds the flags for objects that are called so, in the plural.
func (f *decisionFlags) add(flags *pflag.FlagSet, objects string) {
	f.flags = flags
	flags.BoolVar(&f.mute, "mute", false, "mark the "+objects+" as not to be acted on")
	flags.BoolVar(&f.confirm, "confirm", false, "mark the "+objects+" as real")
	flags.BoolVar(&f.reopen, "reopen", false, "mark the "+objects+" as undecided")
	f.grounds.add(flags)
	flags.StringVar(&f.comment, "comment", "", "an explanation; replaces the previous comment")
}

// commented tells an empty comment, which takes the previous one away, from none.
func (f *decisionFlags) commented() bool { return f.flags.Changed("comment") }

// given reports whether any of the flags is.
func (f *decisionFlags) given() bool {
	return f.mute || f.confirm || f.reopen || f.commented() || f.grounds != groundFlags{}
}

// read returns what they mean.
func (f *decisionFlags) read(now time.Time) (decision, error) {
	var comment *string
	if f.commented() {
		comment = &f.comment
	}
	grounds, errOfGrounds := f.grounds.read(now)
	d, err := decide(f.mute, f.confirm, f.reopen, comment, grounds)
	return d, errors.Join(errOfGrounds, err)
}
