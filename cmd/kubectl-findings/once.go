package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/appsec-dev/findings-operator/cmd/internal/flagerror"
)

// once refuses a flag that is given twice, because one of the values would be lost silently.
type once struct {
	pflag.Value
	given bool
}

// Set implements pflag.Value.
func (o *once) Set(value string) error {
	if o.given {
		return fmt.Errorf("it is given twice, first as %q: use it once", o.String())
	}
	o.given = true
	return o.Value.Set(value)
}

// flagToken is kubectl's flag for a bearer token.
const flagToken = "token"

// explainFlag explains an error of a flag, but never repeats a token, because errors end up in the logs of CI jobs.
func explainFlag(cmd *cobra.Command, err error) error {
	if invalid, is := errors.AsType[*pflag.InvalidValueError](err); is && invalid.GetFlag().Name == flagToken {
		return fmt.Errorf("--%s is given twice: use it once", flagToken) // it accepts any value
	}
	return flagerror.Explain(cmd, err)
}

// several is a flag that collects values. It remembers whether one was blank, because pflag drops it.
type several struct {
	pflag.Value
	pflag.SliceValue
	blank bool
}

// Set implements pflag.Value.
func (s *several) Set(value string) error {
	s.blank = s.blank || slices.ContainsFunc(strings.Split(value, ","), flagerror.IsBlank)
	return s.Value.Set(value)
}

// refuseTwice makes every flag of a command and its subcommands refuse a second value, except flags that collect
// values, which remember blank ones.
func refuseTwice(cmd *cobra.Command) {
	wrap := func(flag *pflag.Flag) {
		if flag.DefValue == "[]" || flag.DefValue == "0s" {
			flag.DefValue = "" // pflag recognises these only in its own types
		}
		switch value := flag.Value.(type) {
		case *once, *several:
		case pflag.SliceValue:
			flag.Value = &several{Value: flag.Value, SliceValue: value}
		default:
			flag.Value = &once{Value: value}
		}
	}
	eachFlag(cmd, wrap)
}

// allowTwice lets single-value flags be given again, because cobra parses the arguments twice to complete them.
func allowTwice(cmd *cobra.Command) {
	eachFlag(cmd, func(flag *pflag.Flag) {
		if value, is := flag.Value.(*once); is {
			flag.Value = value.Value
		}
	})
}

// eachFlag visits the flags of a command and its subcommands, some of them several times.
func eachFlag(cmd *cobra.Command, visit func(*pflag.Flag)) {
	cmd.PersistentFlags().VisitAll(visit)
	cmd.Flags().VisitAll(visit)
	for _, sub := range cmd.Commands() {
		eachFlag(sub, visit)
	}
}

// blankFlags are the flags for which an empty value has a meaning: no analysis, no comment.
var blankFlags = []string{"analysis", "comment"}

// refuseBlank refuses flags with a blank value: a filter, a scope or a gate would be missing silently. Inherited flags
// are kubectl's and keep their meaning, except --organization.
func refuseBlank(cmd *cobra.Command, _ []string) error {
	inherited := cmd.InheritedFlags()
	return flagerror.RefuseBlank(cmd, func(flag *pflag.Flag) bool {
		if slices.Contains(blankFlags, flag.Name) || inherited.Lookup(flag.Name) != nil && flag.Name != flagOrganization {
			return false
		}
		if list, is := flag.Value.(*several); is {
			return list.blank
		}
		return flagerror.IsBlank(flag.Value.String())
	})
}

// refuseFlagAsValue refuses a flag whose value is another flag of the command: its own is missing, and the other would
// be ignored, even --dry-run. Windows PowerShell drops an empty argument, and every shell an empty variable without
// quotes.
func refuseFlagAsValue(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, is := flag.Value.(*several); is {
			values = list.GetSlice()
		}
		for _, value := range values {
			if !isFlag(cmd, value) {
				continue
			}
			next := "its own value is missing"
			if slices.Contains(blankFlags, flag.Name) {
				next = fmt.Sprintf("write --%s= for an empty value", flag.Name)
			}
			errs = append(errs, fmt.Errorf("--%s is %q, which is a flag: %s", flag.Name, value, next))
		}
	})
	return errors.Join(errs...)
}

// isFlag reports whether a word is a flag of the command, alone or with a value after "=".
func isFlag(cmd *cobra.Command, word string) bool {
	word, _, _ = strings.Cut(word, "=")
	if name, long := strings.CutPrefix(word, "--"); long {
		return cmd.Flags().Lookup(name) != nil
	}
	letter, short := strings.CutPrefix(word, "-")
	return short && len(letter) == 1 && cmd.Flags().ShorthandLookup(letter) != nil
}
