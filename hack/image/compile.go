package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// compile builds the operator so that the bytes depend on sources and Go alone: neither on the
// folder, nor on git, nor on what the environment asks of the compiler.
func compile(o options, architecture, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", out, "./cmd/findings-operator") //nolint:gosec // our own build
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
