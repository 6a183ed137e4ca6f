package main

import (
	"strings"
	"testing"
)

func TestArgumentsAreRefused(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		help      bool
		err       string
	}{
		{nil, false, ""},
		{[]string{"--help"}, true, ""},
		{[]string{"-h"}, true, ""},
		{[]string{"PORT=8081"}, false, "takes no arguments"},
	} {
		help, err := readArguments(c.arguments)
		if help != c.help || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: help %t, error %v", c.arguments, help, err)
		}
	}
}

func TestOptionsComeFromTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		reason string
		env    map[string]string
		want   options
		err    string
	}{
		{
			reason: "everything has a default",
			want:   options{root: "/repo", runDir: "/repo/.run", port: 8080, samples: true},
		},
		{
			reason: "a relative folder counts from the repository, wherever children are started",
			env:    map[string]string{"RUN_DIR": ".run-2", "PORT": "8081", "SAMPLES": "false"},
			want:   options{root: "/repo", runDir: "/repo/.run-2", port: 8081},
		},
		{
			reason: "flags of the controllers are passed on",
			env:    map[string]string{"CONTROLLER_FLAGS": "--a=b --c=d"},
			want: options{
				root: "/repo", runDir: "/repo/.run", port: 8080, samples: true, controllerFlags: "--a=b --c=d",
			},
		},
		{
			reason: "an absolute folder is taken as it is",
			env:    map[string]string{"RUN_DIR": "/elsewhere"},
			want:   options{root: "/repo", runDir: "/elsewhere", port: 8080, samples: true},
		},
		{reason: "a port is a number", env: map[string]string{"PORT": "http"}, err: "PORT"},
		{reason: "no port is beyond 65535", env: map[string]string{"PORT": "65536"}, err: "PORT"},
		{reason: "a typing error must not leave the samples on", env: map[string]string{"SAMPLES": "nope"}, err: "SAMPLES"},
	} {
		got, err := parseOptions("/repo", func(name string) string { return c.env[name] })
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", c.reason, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: the error is %v, and names no %s", c.reason, err, c.err)
		case c.err == "" && got != c.want:
			t.Errorf("%s: got %+v, want %+v", c.reason, got, c.want)
		}
	}
}
