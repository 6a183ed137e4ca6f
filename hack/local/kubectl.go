package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubectl runs kubectl as the administrator and returns what it printed.
func kubectl(ctx context.Context, o options, arguments ...string) (string, error) {
	return output(ctx, o.root, filepath.Join(o.assets(), "kubectl"),
		append([]string{"--kubeconfig=" + o.state("kubeconfig")}, arguments...)...)
}

// apply applies manifests for good: what the runner's earlier versions applied and people
// changed since goes back to what the files say.
func apply(ctx context.Context, o options, arguments ...string) error {
	_, err := kubectl(ctx, o, append([]string{
		"apply", "--server-side", "--force-conflicts", "--field-manager=findings-local"}, arguments...)...)
	return err
}

// output runs a program to its end. An error holds what the program said on standard error.
func output(ctx context.Context, folder, path string, arguments ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	program := exec.CommandContext(ctx, path, arguments...)
	program.Dir = folder
	// PWD would otherwise be the runner's, and the go command believes it.
	program.Env = append(os.Environ(), "PWD="+folder)
	program.Stdout, program.Stderr = &stdout, &stderr
	program.SysProcAttr = childAttributes()
	program.WaitDelay = stopGrace
	if err := program.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(path), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
