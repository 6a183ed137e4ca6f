package main

import (
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// choosing holds the flags that choose the API server and the user, except --token.
var choosing = []string{
	"kubeconfig", "context", "cluster", "user", "server", "tls-server-name", "insecure-skip-tls-verify",
	"certificate-authority", "client-certificate", "client-key", "proxy-url", "as", "as-uid", "as-group", "as-user-extra",
}

// chosen returns the flags of choosing that were given, as they are written in a shell. Commands are printed, and CI
// keeps what is printed, so they contain no secret: a token is left to be filled in.
func (f *connectionFlags) chosen() []string {
	var arguments []string
	f.flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && flag.Name == "token" {
			arguments = append(arguments, "--token=TOKEN")
		}
		if !flag.Changed || !slices.Contains(choosing, flag.Name) {
			return
		}
		values := []string{flag.Value.String()}
		if several, are := flag.Value.(pflag.SliceValue); are {
			values = several.GetSlice()
		}
		for _, value := range values {
			if flag.Name == "server" || flag.Name == "proxy-url" {
				value = withoutPassword(value)
			}
			arguments = append(arguments, quoted(runtime.GOOS, "--"+flag.Name+"="+value))
		}
	})
	return arguments
}

var userInfo = regexp.MustCompile(`^(\w+://)?[^/?#]*@`)

// withoutPassword returns an address without a user and a password. It need not have a scheme.
func withoutPassword(address string) string { return userInfo.ReplaceAllString(address, "$1") }

// server returns the address of the API server for messages.
func (s *session) server() string { return withoutPassword(s.config.Host) }

// command returns a command of kubectl for the session's namespace that users can copy: it connects to the same API
// server, as the same user, if they fill in secrets.
func (s *session) command(arguments ...string) string { return s.commandIn(s.namespace, arguments...) }

// commandIn is command for another namespace.
func (s *session) commandIn(namespace string, arguments ...string) string {
	words := slices.Concat([]string{"kubectl"}, arguments, []string{"-n", namespace})
	for i, word := range words {
		words[i] = quoted(runtime.GOOS, word)
	}
	return strings.Join(append(words, s.chosen...), " ")
}

var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quoted returns a word as it is written in a shell of the operating system. On Windows that suits cmd and PowerShell.
func quoted(system, word string) string {
	if plain.MatchString(word) {
		return word
	}
	if system == "windows" {
		return `"` + word + `"`
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
