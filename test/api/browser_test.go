package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// browserTimeout allows for a browser on a busy machine.
const browserTimeout = 2 * time.Minute

// opened returns the DOM that a browser builds from /docs, and all addresses that the page
// requested. The browser's own requests are not included. No host name except the facade's
// resolves.
func opened(t *testing.T, origin string) (dom string, asked []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), browserTimeout)
	defer cancel()
	netLog := filepath.Join(t.TempDir(), "net.json")
	//nolint:gosec // a test's own
	command := exec.CommandContext(ctx, needs.Browser(t), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--no-first-run", "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--log-net-log="+netLog, "--virtual-time-budget=20000", "--dump-dom", origin+"/docs")
	command.WaitDelay = 10 * time.Second // its children hold the output open
	var content, said bytes.Buffer
	command.Stdout, command.Stderr = &content, &said
	if err := command.Run(); err != nil {
		t.Fatalf("%v:\n%s", err, said.String())
	}
	return content.String(), requestsOf(t, origin, netLog)
}

// requestsOf returns the addresses that pages of that origin requested, according to a browser's
// log.
func requestsOf(t *testing.T, origin, netLog string) (asked []string) {
	t.Helper()
	var log struct {
		Events []struct {
			Params struct {
				URL       string `json:"url"`
				Initiator string `json:"initiator"`
			} `json:"params"`
		} `json:"events"`
	}
	if err := json.Unmarshal([]byte(harness.File(t, netLog)), &log); err != nil {
		t.Fatalf("the browser's log of its requests: %v", err)
	}
	for _, event := range log.Events {
		if event.Params.Initiator == origin {
			asked = append(asked, event.Params.URL)
		}
	}
	return asked
}

// An operation as Swagger UI lists it: a method, and a path with break opportunities after its
// slashes.
var (
	listedOperation = regexp.MustCompile(`(?s)class="opblock-summary-method">([A-Z]+)<.*?data-path="([^"]*)"`)
	zeroWidth       = strings.NewReplacer("\u200b", "", "&ZeroWidthSpace;", "")
)

func TestDocsListEveryOperationInABrowserAndAskNobodyElse(t *testing.T) {
	origin := strings.TrimSuffix(facade.url(""), "/")
	dom, asked := opened(t, origin)
	var got, want []string
	for _, found := range listedOperation.FindAllStringSubmatch(dom, -1) {
		got = append(got, found[1]+" "+zeroWidth.Replace(found[2]))
	}
	spec, err := openapi.Load()
	harness.Must(t, err)
	for at, item := range spec.Paths.Map() {
		for method := range item.Operations() {
			want = append(want, method+" "+at)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("%d operations (-contract +page):\n%s", len(want), diff)
	}
	for _, needed := range []string{"/docs/swagger-ui-bundle.js", "/openapi.json"} {
		if !slices.Contains(asked, origin+needed) {
			t.Errorf("the log does not say that the page asked for %s, and so may not say the rest; it says %q", needed, asked)
		}
	}
	for _, address := range asked {
		if !strings.HasPrefix(address, origin+"/") && !strings.HasPrefix(address, "data:") {
			t.Errorf("the page asks another host: %s", address)
		}
	}
}
