package main

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// On a terminal, where both streams are read as one, the warnings come last, as below the text.
func TestWarningsFollowTheComment(t *testing.T) {
	var terminal bytes.Buffer
	o := &reviewOptions{format: formatMarkdown}
	o.streams = genericiooptions.IOStreams{Out: &terminal, ErrOut: &terminal}
	harness.Must(t, o.print(&reviewimport.Summary{Commit: "c", Warnings: []string{"no place"}}))
	if said := terminal.String(); !strings.HasPrefix(said, "### Security review") || !strings.HasSuffix(said, "warning: no place\n") {
		t.Errorf("the terminal shows:\n%s", said)
	}
}
