package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// kubectl runs kubectl as the administrator and returns what it printed.
func kubectl(ctx context.Context, o options, arguments ...string) (string, error) {
	return output(ctx, o.root, filepath.Join(o.assets(), "kubectl"),
		append([]string{"--kubeconfig=" + o.state("kubeconfig")}, arguments...)...)
}

// apply applies manifests with force: changes that users made to fields that earlier runs applied are reverted to the
// files.
func apply(ctx context.Context, o options, arguments ...string) error {
	_, err := kubectl(ctx, o, append([]string{
		"apply", "--server-side", "--force-conflicts", "--field-manager=findings-local"}, arguments...)...)
	return err
}

// output runs a program to its end. An error includes the program's standard error.
func output(ctx context.Context, folder, path string, arguments ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	program := exec.CommandContext(ctx, path, arguments...)
	program.Dir = folder
	// Otherwise PWD would be the runner's, and the go command trusts it.
	program.Env = append(os.Environ(), "PWD="+folder)
	program.Stdout, program.Stderr = &stdout, &stderr
	program.SysProcAttr = harness.ChildAttributes()
	program.WaitDelay = stopGrace
	if err := program.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(path), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
