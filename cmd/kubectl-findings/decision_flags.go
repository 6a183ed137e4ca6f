package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// decisionFlags are the flags of a decision, for findings and issues.
type decisionFlags struct {
	mute, confirm, reopen bool
	grounds               groundFlags
	comment               string

	flags *pflag.FlagSet
}

// add adds the flags; objects is the plural name of the objects.
func (f *decisionFlags) add(flags *pflag.FlagSet, objects string) {
	f.flags = flags
	flags.BoolVar(&f.mute, "mute", false, "mark the "+objects+" as not to be acted on")
	flags.BoolVar(&f.confirm, "confirm", false, "mark the "+objects+" as real")
	flags.BoolVar(&f.reopen, "reopen", false, "mark the "+objects+" as undecided")
	f.grounds.add(flags)
	flags.StringVar(&f.comment, "comment", "", "an explanation; replaces the previous comment")
}

// commented distinguishes an empty comment, which removes the previous one, from none.
func (f *decisionFlags) commented() bool { return f.flags.Changed("comment") }

// given reports whether any of the flags is set.
func (f *decisionFlags) given() bool {
	return f.mute || f.confirm || f.reopen || f.commented() || f.grounds.given()
}

// read returns the decision that the flags describe.
func (f *decisionFlags) read(now time.Time) (decision, error) {
	var comment *string
	if f.commented() {
		comment = &f.comment
	}
	grounds, errOfGrounds := f.grounds.read(now)
	d, err := decide(f.mute, f.confirm, f.reopen, comment, grounds)
	return d, errors.Join(errOfGrounds, err)
}
