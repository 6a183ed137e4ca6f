package main

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestHealthcheckWaitsForTheCode(t *testing.T) {
	var asked atomic.Int32
	server := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/slow" && asked.Add(1) == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/keyed", r.URL.Path == "/sized" && r.URL.RawQuery != "a=b&size=100":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/", http.StatusFound)
		}
	}))
	for _, test := range []struct {
		reason    string
		arguments []string
		want      string // in the error; empty: no error
	}{
		{"what answers is well", []string{server}, ""},
		{"a first refusal is waited out", []string{server + "/slow"}, ""},
		{"another code may be wanted", []string{server + "/keyed=401"}, ""},
		{"a query is no code", []string{server + "/?a=b"}, ""},
		{"nor is a number in it", []string{"--timeout=2s", server + "/sized?a=b&size=100"}, ""},
		{"a code may follow it", []string{"--timeout=2s", server + "/keyed?size=100=401"}, ""},
		{"the wrong code is reported", []string{"--timeout=1ms", server + "/keyed"}, "/keyed"},
		{"one of many is enough to fail", []string{"--timeout=2s", server, server + "/keyed"}, "returned 401, want 200"},
		{"a redirect is not followed", []string{"--timeout=2s", server + "/moved"}, "returned 302"},
		{"a mistake ends it at once", []string{"findings-api"}, "is not a URL"},
		{"a code that is none ends it at once", []string{server + "/keyed=4011"}, `"4011" is not a status code`},
		{"letters may be a part of the path", []string{server + "/a=b"}, ""},
		{"an address is needed", nil, "give at least one URL"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel() // it mostly waits
			command := newRootCommand()
			command.SetArgs(append([]string{"healthcheck"}, test.arguments...))
			harness.ErrorContains(t, test.reason, command.ExecuteContext(t.Context()), test.want)
		})
	}
}
