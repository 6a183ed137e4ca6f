package attack

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// bomb is a file that expands to far more than its own size.
type bomb struct {
	what    string
	content func(size int) string
	// says is a part of the expected refusal; empty if the file is accepted and its contents
	// counted.
	says string
}

func repeated(entry string, size int) string {
	return strings.TrimSuffix(strings.Repeat(entry+",", max(1, size/(len(entry)+1))), ",")
}

func sarifFile(run string) string {
	if !strings.Contains(run, `"tool"`) {
		run = `"tool":{"driver":{"name":"bomb"}},` + run
	}
	return `{"version":"2.1.0","runs":[{` + run + `}]}`
}

// longRule returns a file of many results of one rule, whose texts become part of each finding.
func longRule(result func(i int) string, size int) string {
	results := make([]string, min(size/500, 40_000)) // several times what may be in memory if each had its own copy
	for i := range results {
		results[i] = `{"ruleId":"R",` + result(i+1) + `}`
	}
	text := strings.Repeat("é", 30_000)
	return sarifFile(`"tool":{"driver":{"name":"bomb","rules":[{"id":"R","fullDescription":{"text":"d` + text + `"},"help":{"text":"h` + text + `"}}]}},"results":[` +
		strings.Join(results, ",") + `]`)
}

// quotingSecrets returns a file of results about a credential, with this message and code.
func quotingSecrets(message, code string, size int) string {
	results := make([]string, size/(len(message)+len(code)))
	for i := range results {
		results[i] = fmt.Sprintf(`{"ruleId":"R","message":{"text":"%d %s"},"locations":[{"physicalLocation":{"region":{"snippet":{"text":"%s"}}}}]}`, i, message, code)
	}
	return sarifFile(`"tool":{"driver":{"name":"bomb","rules":[{"id":"R","properties":{"tags":["cwe-798"]}}]}},"results":[` + strings.Join(results, ",") + `]`)
}

func sarifBombs() []bomb {
	located := func(location string) string {
		return `{"ruleId":"R","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":` + location + `}}]}`
	}
	return []bomb{
		{"lists in lists", func(n int) string { return sarifFile(`"results":[],"x":` + strings.Repeat("[", n)) }, "nested deeper"},
		{"objects in objects", func(n int) string { return sarifFile(`"results":[],"x":` + strings.Repeat(`{"a":`, n/5)) }, "nested deeper"},
		{"results", func(int) string { return sarifFile(`"results":[` + repeated("{}", 300_100) + `]`) }, "results"},
		{"runs", func(n int) string { return `{"version":"2.1.0","runs":[` + repeated("{}", n) + `]}` }, "entries"},
		{"rules", func(n int) string {
			return sarifFile(`"tool":{"driver":{"name":"bomb","rules":[` + repeated("{}", n) + `]}},"results":[]`)
		}, "rules"},
		{"invocations", func(n int) string { return sarifFile(`"invocations":[` + repeated("{}", n) + `],"results":[]`) }, "invocations"},
		{"artifacts", func(n int) string { return sarifFile(`"artifacts":[` + repeated("{}", n) + `],"results":[]`) }, "lists expand"},
		{"places of one result", func(n int) string {
			return sarifFile(`"results":[{"ruleId":"R","locations":[` + repeated("{}", n) + `]}]`)
		}, ""},
		{"steps of one result", func(n int) string {
			return sarifFile(`"results":[{"ruleId":"R","codeFlows":[{"threadFlows":[{"locations":[` + repeated("{}", n) + `]}]}]}]`)
		}, ""},
		{"one text", func(n int) string {
			return sarifFile(`"results":[{"ruleId":"R","message":{"text":"` + strings.Repeat("a", n) + `"}}]`)
		}, ""},
		{"one text that is ignored", func(n int) string { return sarifFile(`"results":[],"x":"` + strings.Repeat("a", n) + `"`) }, ""},
		{"one name", func(n int) string { return sarifFile(`"results":[],"` + strings.Repeat("a", n) + `":1`) }, ""},
		{"one number", func(n int) string { return sarifFile(`"results":[],"x":` + strings.Repeat("9", n)) }, ""},
		{"messages that unfold", func(n int) string {
			argument, place := strings.Repeat("a", 60_000), strings.Repeat("{0}", 20_000)
			return sarifFile(`"results":[` + repeated(`{"ruleId":"R","message":{"text":"`+place+`","arguments":["`+argument+`"]}}`, n) + `]`)
		}, ""},
		{"a long message by id", func(n int) string {
			return sarifFile(`"tool":{"driver":{"name":"bomb","rules":[{"id":"R","messageStrings":{"m":{"text":"` + strings.Repeat("{0}", 20_000) + `"}}}]}},"results":[` +
				repeated(`{"ruleId":"R","message":{"id":"m","arguments":[""]}}`, min(n, 4<<20)) + `]`)
		}, "unfold to more than"},
		{"a long base for each", func(n int) string {
			return sarifFile(`"originalUriBaseIds":{"B":{"uri":"` + strings.Repeat("b", 3<<20) + `/"}},"results":[` + repeated(located(`{"uri":"x","uriBaseId":"B"}`), min(n, 1<<20)) + `]`)
		}, ""},
		{"bases in a circle", func(n int) string {
			return sarifFile(`"originalUriBaseIds":{"A":{"uri":"a/","uriBaseId":"B"},"B":{"uri":"b/","uriBaseId":"A"},"C":{"uri":"c/","uriBaseId":"C"}},"results":[` +
				repeated(located(`{"uri":"x","uriBaseId":"A"}`)+","+located(`{"uri":"x","uriBaseId":"C"}`), min(n, 1<<20)) + `]`)
		}, ""},
		{"artifacts in a circle", func(n int) string {
			return sarifFile(`"artifacts":[{"location":{"index":1},"parentIndex":1},{"location":{"index":0},"parentIndex":0}],"results":[` + repeated(located(`{"index":0}`), min(n, 1<<20)) + `]`)
		}, ""},
		{"a long rule for each", func(n int) string {
			return longRule(func(i int) string {
				return `"message":{"text":"m"},"locations":[{"physicalLocation":{"region":{"startLine":` + strconv.Itoa(i) + `}}}]`
			}, n)
		}, ""},
		{"a long rule for each message", func(n int) string {
			return longRule(func(i int) string { return `"message":{"text":"` + strconv.Itoa(i) + `"}` }, n)
		}, "unfold to more than"},
		{"quotes of a secret", func(n int) string {
			return quotingSecrets(strings.Repeat("ept]", 16_000), strings.Repeat(strings.Repeat("'ept]'", 200)+`\n`, 53), n)
		}, ""},
		{"words of a secret", func(n int) string {
			return quotingSecrets(strings.Repeat("abcd", 16_000), strings.Repeat(strings.Repeat("key='abcd'", 120)+`\n`, 53), n)
		}, ""},
		{"a hierarchy without end", func(n int) string {
			return sarifFile(`"results":[` + repeated(`{"ruleId":"`+strings.Repeat("/", 60_000)+`","message":{"text":"m"}}`, n) + `]`)
		}, ""},
		{"gzip", func(int) string { return "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + strings.Repeat("\x00", 1000) }, "not JSON"},
		{"zip", func(int) string { return "PK\x03\x04" + strings.Repeat("\x00", 1000) }, "not JSON"},
		{"XML entities", func(int) string {
			return `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><a>&b;</a>`
		}, "not JSON"},
		{"UTF-16 without an end", func(n int) string { return "\xff\xfe" + strings.Repeat("{\x00", n/2) }, "nested deeper"},
		{"nothing but blanks", func(n int) string { return strings.Repeat(" ", n) }, "empty"},
	}
}

// The doors through which files come. Both read them with scanimport/sarif.
const (
	throughPlugin = iota
	throughUpload
)

// bombsAt returns the bombs that come through that door. In the short form each comes through one.
func bombsAt(door int) (out []bomb) {
	for i, b := range sarifBombs() {
		if full || i%2 == door {
			out = append(out, b)
		}
	}
	return out
}

// Bounds for the plugin's memory. Go's collector lets the heap grow to twice the memory in use.
const (
	// maxOfAnyFile is in MiB, for the program and for 100,000 results, which take some memory even if they are
	// empty. The peak differs by 60 from run to run: the collector comes later on a busy machine.
	maxOfAnyFile = 380
	// maxOfEachByte is a factor, for texts that are read, copied and kept.
	maxOfEachByte = 8
)

// A file may cost at most a multiple of its size in memory. The plugin explains why it refuses a
// file, or counts what it skips.
func TestBombs_AreRefusedOrCountedWithinBounds(t *testing.T) {
	t.Parallel() // beside tests that mostly wait
	o := tenants(t)[0]
	config, err := target.env.ServiceAccount(t.Context(), o.namespace, "scanner")
	harness.Must(t, err)
	kubeconfig := testenv.WriteKubeconfig(t, config, o.namespace)
	size := inForm(4<<20, 48<<20)
	for _, b := range bombsAt(throughPlugin) {
		path := filepath.Join(t.TempDir(), "bomb.sarif")
		content := b.content(size)
		harness.Must(t, os.WriteFile(path, []byte(content), 0o600))
		command := exec.CommandContext(t.Context(), filepath.Join(target.programs, "kubectl-findings"), "import", path, "--dry-run", "--kubeconfig="+kubeconfig,
			"--namespace="+o.namespace, "--repository="+o.ids["repository"], "--project="+o.ids["project"])
		output, used, err := measured(command)
		if b.says == "" {
			// A scan of which a result was left out is recorded as Failed, and the plugin exits with 1.
			counted := err == nil || strings.Contains(output, "would be recorded as Failed")
			attempt(t, bombs, counted && strings.Contains(output, " created + "), "%s: %v %.300s", b.what, err, output)
		} else {
			attempt(t, bombs, err != nil && strings.Contains(output, b.says), "%s: %v %.300s, want a refusal that says %q", b.what, err, output, b.says)
		}
		attempt(t, bombs, !strings.Contains(output, "goroutine "), "%s: it crashed: %.300s", b.what, output)
		most := maxOfAnyFile + maxOfEachByte*float64(len(content))/(1<<20)
		t.Logf("%s: a file of %.1f MiB took %.0f MiB", b.what, float64(len(content))/(1<<20), used)
		attempt(t, bombs, used <= most, "%s: a file of %.1f MiB took %.0f MiB, want at most %.0f", b.what, float64(len(content))/(1<<20), used, most)
		harness.NoError(t, "remove the file", os.Remove(path))
	}
}

// measured runs a command and returns its output and its peak memory in MiB, or 0 if the system does
// not report it. The kernel's figure for a child that has ended includes the memory of its parent.
func measured(command *exec.Cmd) (output string, peak float64, err error) {
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		return "", 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		peak = max(peak, residentPeak(command.Process.Pid))
		select {
		case err := <-ended:
			return out.String(), peak, err
		case <-time.After(interval / 2):
		}
	}
}

func residentPeak(pid int) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib := 0.0
	_, _ = fmt.Sscan(after, &kib) // without the line there is nothing to read
	return kib / 1024
}
