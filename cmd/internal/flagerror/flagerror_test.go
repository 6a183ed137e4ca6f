package flagerror

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestAnUnknownCommandSaysWhatToWrite(t *testing.T) {
	for given, want := range map[string]string{
		"contrller --now": "Did you mean this?\n\tcontroller\n",
		"start --now":     `unknown command "start" for "program": see 'program --help'`,
		"help contrller":  "Did you mean this?\n\tcontroller\n",
		"completion tcsh": `unknown shell "tcsh": use one of bash, fish, powershell, zsh`,
		"completion":      "no shell is given: use one of bash, fish, powershell, zsh",
		// cobra reports unknown words only after the program's own name.
		"help completion tcsh": `unknown help topic "completion tcsh": see 'program completion --help'`,
	} {
		program := &cobra.Command{Use: "program", SilenceErrors: true, SilenceUsage: true}
		program.AddCommand(&cobra.Command{Use: "controller", Run: func(*cobra.Command, []string) {}})
		program.SetArgs(strings.Fields(given))
		if err := Execute(t.Context(), program); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", given, err, want)
		}
	}
}

func TestAnInvalidValueSaysWhatToWrite(t *testing.T) {
	for argument, want := range map[string]string{
		"--on=maybe":                    `--on is "maybe" and must be true or false`,
		"--count=many":                  "must be a whole number",
		"--count=1.5":                   `--count is "1.5" and must be a whole number`,
		"--count=99999999999999999999":  "must be a number closer to 0",
		"--count=-99999999999999999999": "must be a number closer to 0",
		"--ratio=half":                  "must be a number",
		"--ratio=1e999":                 "must be a number closer to 0",
		"--concurrency=finding=x":       `--concurrency is "finding=x" and must be NAME=NUMBER`,
		"--concurrency=16":              "must be NAME=NUMBER",
		"--wait=5":                      "must be a duration such as 90m or 720h",
		"--wait=30d":                    "days are not a unit: write 720h for 30 days",
	} {
		cmd := &cobra.Command{Use: "program"}
		cmd.Flags().Bool("on", false, "")
		cmd.Flags().Int("count", 0, "")
		cmd.Flags().Float32("ratio", 0, "")
		cmd.Flags().StringToInt("concurrency", nil, "")
		cmd.Flags().Duration("wait", 0, "")
		err := cmd.ParseFlags([]string{argument})
		if err == nil {
			t.Errorf("%s is taken", argument)
		} else if got := Explain(cmd, err).Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want %q", argument, got, want)
		}
	}
}
