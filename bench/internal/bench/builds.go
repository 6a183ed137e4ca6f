package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Build is the project at one commit, with its programs.
type Build struct {
	// Name is the name in tables.
	Name string
	// Source is the folder of its tree, whose config/ is installed.
	Source string
	// Operator and Plugin are the paths of its programs.
	Operator, Plugin string
	// ControllerFlags are further flags of the controllers.
	ControllerFlags []string
}

// With returns the build with further flags of the controllers, which its name shows.
func (b Build) With(flags ...string) Build {
	b.Name += " with " + strings.Join(flags, " ")
	b.ControllerFlags = flags
	return b
}

// ThisBuild returns the build that is measured. Its plugin is in the same folder as the operator.
func (b *Bench) ThisBuild() Build {
	return Build{
		Name: "this build", Source: harness.Root(), Operator: b.Binary,
		Plugin: filepath.Join(filepath.Dir(b.Binary), "kubectl-findings"),
	}
}

// EarlierBuild builds the project at a commit, in the run's folder.
func (b *Bench) EarlierBuild(ctx context.Context, commit string) (Build, error) {
	source := filepath.Join(b.folder, "at-"+commit)
	programs := filepath.Join(source, "bin")
	build := Build{
		Name: commit, Source: source,
		Operator: filepath.Join(programs, "findings-operator"), Plugin: filepath.Join(programs, "kubectl-findings"),
	}
	if err := os.MkdirAll(programs, 0o700); err != nil {
		return build, err
	}
	b.Say("building %s", commit)
	archive := source + ".tar"
	for _, step := range []struct {
		folder    string
		arguments []string
	}{
		{harness.Root(), []string{"git", "archive", "--output=" + archive, commit}},
		{source, []string{"tar", "-xf", archive}},
		{source, []string{"go", "build", "-trimpath", "-buildvcs=false", "-o", programs + string(filepath.Separator), "./cmd/..."}},
	} {
		command := exec.CommandContext(ctx, step.arguments[0], step.arguments[1:]...) //nolint:gosec // the arguments are this program's own
		command.Dir, command.Env = step.folder, append(os.Environ(), "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			return build, fmt.Errorf("%s: %w\n%s", strings.Join(step.arguments, " "), err, output)
		}
	}
	return build, nil
}
