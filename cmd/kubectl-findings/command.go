package main

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
)

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
