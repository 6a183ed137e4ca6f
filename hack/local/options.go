package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// options configure the runner; all paths are absolute.
type options struct {
	// root is the repository's folder.
	root string
	// runDir keeps data, logs, keys and pids. Environment: RUN_DIR, default .run.
	runDir string
	// port of the REST API on the loopback address. Environment: PORT, default 8080.
	port int
	// samples enables the sample organization. Environment: SAMPLES, default true.
	samples bool
	// controllerFlags are added to those of the controllers, separated by spaces. Environment: CONTROLLER_FLAGS.
	controllerFlags string
}

const usage = `Usage: findings-local

Runs a control plane, the controllers, the REST API and a sample organization on this machine until
Ctrl-C, as make run does. It takes no arguments: PORT, RUN_DIR, SAMPLES and CONTROLLER_FLAGS in the
environment configure it; see "Try it" in README.md.
`

// readArguments reports whether help is wanted, and refuses everything else.
func readArguments(arguments []string) (help bool, err error) {
	switch {
	case len(arguments) == 0:
		return false, nil
	case arguments[0] == "-h" || arguments[0] == "--help":
		return true, nil
	}
	return false, fmt.Errorf("%q: findings-local takes no arguments; see README.md, Try it", arguments[0])
}

func optionsFromEnvironment() (options, error) {
	root, err := os.Getwd()
	if err != nil {
		return options{}, err
	}
	if _, err := os.Stat(filepath.Join(root, "config", "crd", "bases")); err != nil {
		return options{}, errors.New("start it in the repository's folder, or with `make run`")
	}
	return parseOptions(root, os.Getenv)
}

func parseOptions(root string, getenv func(string) string) (options, error) {
	o := options{
		root: root, runDir: filepath.Join(root, ".run"), port: 8080, samples: true,
		controllerFlags: getenv("CONTROLLER_FLAGS"),
	}
	var err error
	if value := getenv("PORT"); value != "" {
		if o.port, err = strconv.Atoi(value); err != nil || o.port < 1 || o.port > 65535 {
			return options{}, fmt.Errorf("PORT is %q: give a number between 1 and 65535", value)
		}
	}
	if value := getenv("SAMPLES"); value != "" {
		if o.samples, err = strconv.ParseBool(value); err != nil {
			return options{}, fmt.Errorf("SAMPLES is %q: give true or false", value)
		}
	}
	if value := getenv("RUN_DIR"); value != "" {
		if o.runDir = value; !filepath.IsAbs(value) {
			o.runDir = filepath.Join(root, value)
		}
	}
	return o, nil
}

func (o options) binary(name string) string     { return filepath.Join(o.root, "bin", name) }
func (o options) assets() string                { return filepath.Join(o.root, "bin", "k8s") }
func (o options) config(parts ...string) string { return join(parts, o.root, "config") }
func (o options) state(parts ...string) string  { return join(parts, o.runDir) }

func join(parts []string, base ...string) string { return filepath.Join(append(base, parts...)...) }
