package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// noGrounds as a flag's value removes the old reason or expiry.
const noGrounds = "none"

// decisionFlags are the flags of a decision, for findings and issues.
type decisionFlags struct {
	mute, confirm, reopen      bool
	reason, expiresAt, comment string
	expiresIn                  time.Duration

	flags *pflag.FlagSet
}

// add adds the flags; objects is the plural name of the objects.
func (f *decisionFlags) add(flags *pflag.FlagSet, objects string) {
	f.flags = flags
	flags.BoolVar(&f.mute, "mute", false, "mark the "+objects+" as not to be acted on")
	flags.BoolVar(&f.confirm, "confirm", false, "mark the "+objects+" as real")
	flags.BoolVar(&f.reopen, "reopen", false, "mark the "+objects+" as undecided")
	flags.StringVar(&f.reason, "reason", "", "why: "+strings.Join(reasonWords(), ", ")+"; none removes it")
	flags.StringVar(&f.expiresAt, "expires-at", "",
		"when the decision ends, for example 2026-12-31T00:00:00Z; none removes the end")
	flags.DurationVar(&f.expiresIn, "expires-in", 0, "how long the decision lasts, for example 720h")
	flags.StringVar(&f.comment, "comment", "", "an explanation; replaces the previous comment, and --comment= removes it")
}

// commented distinguishes an empty comment, which removes the previous one, from none.
func (f *decisionFlags) commented() bool { return f.flags.Changed("comment") }

// lasts reports whether a duration is given, even if it is zero by mistake.
func (f *decisionFlags) lasts() bool { return f.flags.Changed("expires-in") }

// given reports whether any of the flags is set.
func (f *decisionFlags) given() bool {
	return f.mute || f.confirm || f.reopen || f.commented() || f.reason != "" || f.expiresAt != "" || f.lasts()
}

// read returns the decision that the flags describe: a status or a comment, or both, with reason and expiry. setEnd
// counts --expires-in.
func (f *decisionFlags) read() (d decision, err error) {
	reason, errOfReason := f.readReason()
	end, errOfEnd := f.readEnd()
	d.Reason, d.ExpiresAt = reason, end
	if f.commented() {
		d.Comments = &f.comment
	}
	d.UserStatus, err = f.readStatus(d)
	return d, errors.Join(errOfReason, errOfEnd, err)
}

// readStatus returns the status that the flags choose, or nil. It returns an error if the rest of the decision does not
// fit it.
func (f *decisionFlags) readStatus(d decision) (*v1alpha1.UserStatus, error) {
	var chosen []v1alpha1.UserStatus
	for _, c := range []struct {
		given bool
		means v1alpha1.UserStatus
	}{{f.mute, v1alpha1.UserStatusMuted}, {f.confirm, v1alpha1.UserStatusActive}, {f.reopen, v1alpha1.UserStatusOpen}} {
		if c.given {
			chosen = append(chosen, c.means)
		}
	}
	grounded := d.Reason != nil || d.ExpiresAt != nil || f.lasts()
	switch {
	case len(chosen) > 1:
		return nil, errors.New("--mute, --confirm and --reopen exclude each other: use one of them")
	case len(chosen) == 0 && d.Comments == nil && !grounded:
		return nil, errors.New("nothing to do: use --mute, --confirm or --reopen, or only --comment to keep the decision")
	case grounded && (len(chosen) == 0 || chosen[0] == v1alpha1.UserStatusOpen):
		return nil, errors.New("--reason, --expires-at and --expires-in belong to a decision: " +
			"use --mute or --confirm with them")
	case len(chosen) == 0:
		return nil, nil
	}
	return &chosen[0], nil
}

func (f *decisionFlags) readReason() (*v1alpha1.DecisionReason, error) {
	reason := v1alpha1.DecisionReason(f.reason)
	switch {
	case f.reason == "":
		return nil, nil
	case f.reason == noGrounds:
		reason = ""
	case !slices.Contains(v1alpha1.DecisionReasons(), reason):
		return nil, fmt.Errorf("--reason is %q and must be one of %s, or %s", f.reason, strings.Join(reasonWords(), ", "),
			noGrounds)
	}
	return &reason, nil
}

func (f *decisionFlags) readEnd() (*v1alpha1.Time, error) {
	switch {
	case f.expiresAt != "" && f.lasts():
		return nil, errors.New("--expires-at and --expires-in exclude each other: use one of them")
	case f.lasts() && f.expiresIn <= 0:
		return nil, fmt.Errorf("--expires-in is %s and must be greater than 0", f.expiresIn)
	case f.expiresAt == "":
		return nil, nil
	case f.expiresAt == noGrounds:
		return &v1alpha1.Time{}, nil
	}
	end, err := v1alpha1.ParseTime(f.expiresAt)
	if err != nil {
		return nil, fmt.Errorf("--expires-at: %w", err)
	}
	return new(v1alpha1.NewTime(end.Time)), nil // as it is stored
}

// setEnd counts --expires-in from the API server's time, and returns an error if the decision would have ended by it.
func (f *decisionFlags) setEnd(ctx context.Context, s *session, d *decision) error {
	if !f.lasts() && (d.ExpiresAt == nil || d.ExpiresAt.IsZero()) {
		return nil
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	if f.lasts() {
		d.ExpiresAt = new(v1alpha1.NewTime(now.Add(f.expiresIn)))
	}
	if !d.ExpiresAt.After(now) {
		return fmt.Errorf("the decision would end at %s, which is not in the future",
			d.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return nil
}

func reasonWords() []string { return words(v1alpha1.DecisionReasons()...) }
