// Package flagerror explains mistakes in flags, arguments and commands of our programs.
package flagerror

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Execute runs the program. After an unknown command that resembles no other, the error names the command that lists
// all commands.
func Execute(ctx context.Context, root *cobra.Command) error {
	refuseUnknown(root)
	err := root.ExecuteContext(ctx)
	if err == nil || !strings.HasPrefix(err.Error(), "unknown command ") || strings.Contains(err.Error(), "Did you mean") {
		return err
	}
	return fmt.Errorf("%w: see '%s --help'", err, root.CommandPath())
}

// refuseUnknown makes the commands that cobra adds refuse unknown arguments. Otherwise they would print their help to
// standard output and succeed, and the completion script of a misspelt or missing shell would contain prose.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, topic []string) error {
				found, rest, err := root.Find(topic)
				if err == nil && len(rest) > 0 {
					err = fmt.Errorf("unknown help topic %q: see '%s --help'", strings.Join(topic, " "), found.CommandPath())
				}
				return err
			}
		case "completion":
			var shells []string
			for _, shell := range cmd.Commands() {
				shells = append(shells, shell.Name())
			}
			want := "use one of " + strings.Join(shells, ", ")
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = func(_ *cobra.Command, given []string) error {
				if len(given) == 0 {
					return fmt.Errorf("no shell is given: %s", want)
				}
				return fmt.Errorf("unknown shell %q: %s", given[0], want)
			}
		}
	}
}

// Explain adds the correct usage to an error of a flag. It is a cobra.Command's FlagErrorFunc.
func Explain(cmd *cobra.Command, err error) error {
	if invalid, is := errors.AsType[*pflag.InvalidValueError](err); is {
		if want := wanted(invalid); want != "" {
			return fmt.Errorf("--%s is %q and must be %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
		return err
	}
	return fmt.Errorf("%w: see '%s --help'", err, cmd.CommandPath())
}

// wanted describes the values of the flag; empty if the error already explains the mistake.
func wanted(invalid *pflag.InvalidValueError) string {
	number, isNumber := errors.AsType[*strconv.NumError](invalid)
	isDuration := strings.HasPrefix(invalid.Unwrap().Error(), "time: ")
	kind := invalid.GetFlag().Value.Type()
	switch {
	case kind == "stringToInt":
		return "NAME=NUMBER"
	case isNumber && kind == "bool":
		return "true or false"
	case isNumber && errors.Is(number, strconv.ErrRange):
		return "a number closer to 0"
	case isNumber && !strings.HasPrefix(kind, "float"):
		return "a whole number"
	case isNumber:
		return "a number"
	case isDuration && strings.HasSuffix(invalid.GetValue(), "d"):
		return "a duration such as 90m or 720h; days are not a unit: write 720h for 30 days"
	case isDuration:
		return "a duration such as 90m or 720h"
	}
	return ""
}

// RefuseBlank returns an error for each given flag that is blank, as from an unset shell variable: a filter, a file or
// an address would be missing silently.
func RefuseBlank(cmd *cobra.Command, blank func(*pflag.Flag) bool) error {
	var errs []error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if blank(flag) {
			errs = append(errs, fmt.Errorf("--%s has no value: give it one, or leave it out", flag.Name))
		}
	})
	return errors.Join(errs...)
}

// IsBlank reports whether a value of a flag holds nothing.
func IsBlank(value string) bool { return strings.TrimSpace(value) == "" }

// Arguments refuses the arguments that check refuses. want describes the arguments to give.
func Arguments(check cobra.PositionalArgs, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, arguments []string) error {
		if check(cmd, arguments) != nil {
			return fmt.Errorf("%s: see '%s --help'", want, cmd.CommandPath())
		}
		return nil
	}
}

// NoArguments refuses arguments of a command that takes none. hint describes the alternative; may be empty.
func NoArguments(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, arguments []string) error {
		if len(arguments) == 0 {
			return nil
		}
		err := fmt.Errorf("%s takes no arguments, but got %q", cmd.CommandPath(), arguments[0])
		if hint != "" {
			err = fmt.Errorf("%w: %s", err, hint)
		}
		return err
	}
}
