//go:build node

// Package node installs the chart into a real cluster of one node and tests what only such a
// cluster shows: pods, Services, rolling updates, and what remains after a node's death. `make e2e`
// runs it; it requires root.
package node

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	// hostAddress is the machine's end of the link to the node, which pods can reach.
	hostAddress = "10.243.0.1"
	release     = "findings"
	namespace   = "findings-system"
	// image is the repository name under which the image of `make image` is loaded.
	image    = "findings.test/findings-operator"
	imageTag = "e2e"
	// commandTimeout bounds a command without another limit. The longest are the conformance suite, which
	// is compiled first, and the start of a node whose programs are built.
	commandTimeout = time.Hour
)

var (
	// root is the project's folder, dir the node's.
	root, dir string
	// before is the state of the machine before the tests.
	before machine
)

func TestMain(m *testing.M) { harness.Main(m, start) }

// start starts a fresh node and the tests' Redis.
func start(_ context.Context, stops *harness.Stops) (err error) {
	if root, err = filepath.Abs("../.."); err != nil {
		return err
	}
	dir = cmp.Or(os.Getenv("FINDINGS_NODE_DIR"), ".node")
	if !filepath.IsAbs(dir) { // the scripts run in the project's folder
		dir = filepath.Join(root, dir)
	}
	if before, err = lookAtMachine(); err != nil {
		return err
	}
	tarball := os.Getenv("FINDINGS_IMAGE")
	if tarball == "" {
		return errors.New("FINDINGS_IMAGE names no image: run `make e2e`")
	}
	if err := command("hack/node/clear.sh", dir); err != nil {
		return err
	}
	if err := copyFile(tarball, filepath.Join(dir, "images", "findings-operator.tar")); err != nil {
		return err
	}
	stops.Add(stop) // if all went well, the last test has ended the node
	if err := up(); err != nil {
		return err
	}
	return startRedis(stops)
}

func up() error {
	fmt.Fprintln(os.Stderr, "e2e: starting the node ...")
	return command("hack/node/up.sh", dir)
}

func stop() error { return command("hack/node/down.sh", dir) }

// command runs a program in the project's folder and shows what it prints.
func command(name string, arguments ...string) error {
	_, err := execute(os.Stdout, name, arguments...)
	return err
}

// output runs a program and returns what it prints.
func output(name string, arguments ...string) (string, error) {
	return execute(io.Discard, name, arguments...)
}

func execute(show io.Writer, name string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+adminKubeconfig())
	var out, failure bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, show)
	cmd.Stderr = io.MultiWriter(&failure, show)
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %v: %w: %s", filepath.Base(name), arguments, err, bytes.TrimSpace(failure.Bytes()))
	}
	return out.String(), nil
}

func adminKubeconfig() string { return filepath.Join(dir, "pki", "admin.kubeconfig") }

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
