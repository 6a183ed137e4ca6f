package main

import (
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

// groundFlags are the flags for the reason of a decision and its expiry.
type groundFlags struct {
	reason, expiresAt string
	expiresIn         time.Duration

	flags *pflag.FlagSet
}

func (f *groundFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.reason, "reason", "", "why: "+strings.Join(reasonWords(), ", ")+"; none removes it")
	flags.StringVar(&f.expiresAt, "expires-at", "",
		"when the decision ends, for example 2026-12-31T00:00:00Z; none removes the end")
	flags.DurationVar(&f.expiresIn, "expires-in", 0, "how long the decision lasts, for example 720h")
}

// lasts reports whether a duration is given, which may be zero by mistake.
func (f *groundFlags) lasts() bool { return f.flags.Changed("expires-in") }

// given reports whether any of the flags is set.
func (f *groundFlags) given() bool { return f.reason != "" || f.expiresAt != "" || f.lasts() }

// grounds are the parsed flags; nil: leave the old value.
type grounds struct {
	reason    *v1alpha1.DecisionReason
	expiresAt *v1alpha1.Time
}

func (f *groundFlags) read(now time.Time) (grounds, error) {
	reason, err := f.readReason()
	end, errOfEnd := f.readEnd(now)
	return grounds{reason, end}, errors.Join(err, errOfEnd)
}

func (f *groundFlags) readReason() (*v1alpha1.DecisionReason, error) {
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

func (f *groundFlags) readEnd(now time.Time) (*v1alpha1.Time, error) {
	var end v1alpha1.Time
	switch {
	case f.expiresAt != "" && f.lasts():
		return nil, errors.New("--expires-at and --expires-in exclude each other: use one of them")
	case f.expiresAt == noGrounds:
		return &end, nil
	case f.expiresAt != "":
		var err error
		if end, err = v1alpha1.ParseTime(f.expiresAt); err != nil {
			return nil, fmt.Errorf("--expires-at: %w", err)
		}
		end = v1alpha1.NewTime(end.Time) // as it is stored
	case f.lasts():
		end = v1alpha1.NewTime(now.Add(f.expiresIn))
	default:
		return nil, nil
	}
	if !end.After(now) {
		return nil, fmt.Errorf("the decision would end at %s, which is not in the future", end.UTC().Format(time.RFC3339))
	}
	return &end, nil
}

func reasonWords() []string { return words(v1alpha1.DecisionReasons()...) }
