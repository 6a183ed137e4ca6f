package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// stamp is the linker flag that sets the binary's version.
const stamp = "-X " + modulePath + "/internal/version.stamped="

// compile builds the operator so that the bytes only depend on the sources and the Go version: not on the folder, on
// git, or on compiler settings in the environment.
func compile(o options, architecture, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", //nolint:gosec // our own build
		"-ldflags=-s -w -buildid= "+stamp+strings.TrimPrefix(o.version, "v"), "-o", out, "./cmd/findings-operator")
	command.Dir = o.root
	command.Env = append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return name == "GOFLAGS" || name == "GOEXPERIMENT"
	}), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("build the operator: %w", err)
	}
	return nil
}
