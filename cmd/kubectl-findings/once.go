package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// once refuses a flag that is given twice: one of the values would be lost silently.
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

// refuseTwice makes every flag of a command and its subcommands refuse a second value, except flags that collect
// values.
func refuseTwice(cmd *cobra.Command) {
	wrap := func(flag *pflag.Flag) {
		if _, gathers := flag.Value.(pflag.SliceValue); gathers {
			return
		}
		if _, wrapped := flag.Value.(*once); !wrapped {
			flag.Value = &once{Value: flag.Value}
		}
	}
	cmd.PersistentFlags().VisitAll(wrap)
	cmd.Flags().VisitAll(wrap)
	for _, sub := range cmd.Commands() {
		refuseTwice(sub)
	}
}
