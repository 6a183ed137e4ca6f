package etcdcost

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/test/harness"
)

const reportHead = `# What a finding costs etcd

Counted by ` + "`test/etcdcost`" + ` on a real control plane with the real controllers, REST API and importer, from the
API server's own metrics (who asked for which write, and what of it was stored) and etcd's own (puts and
their bytes). ` + "`make test`" + ` holds each step to it with few findings; this page is written with

` + "```sh" + `
go test ./test/etcdcost -count=1 -findings 50 -report "$PWD/docs/performance-etcd.md"
` + "```" + `

The rule: besides what the caller writes, a step of a finding's life costs one write by the operator, or two where
an endpoint subscribes: what happened is stored before its deliveries are created, and that they exist is stored
after. The deliveries come on top. A new finding costs the operator nothing: its status follows from its creation, and
its deliveries record that they exist. A rescan with the same results writes no finding.

`

const reportTail = `
All columns except the last are per finding.

- *caller*: the importer, or whoever triages by REST or kubectl. *operator*: the controllers' status.
- *deliveries*: writes of WebhookDelivery: when it is made, before it is sent, and after.
- *puts* and *bytes*: all of etcd's, including the few puts that the API server itself makes every ten seconds.
  A write stores the whole object anew, so its bytes are the finding's size; etcd drops the old ones when
  the API server has it compacted, after five minutes.
- *per scan*: writes in the whole step to objects that exist once per scan or organization: Scan, Project, Repository,
  Organization and their Events. Changes within a second are combined into one write, so their number does not grow
  with the findings.

No Event is created for a finding: each would cost one more write, and a scan could cause thousands of them.
`

// writeReport writes what was counted as Markdown.
func writeReport(path string, alone, heard *life) error {
	var b strings.Builder
	b.WriteString(reportHead)
	commit, err := exec.Command("git", "-C", harness.Root(), "rev-parse", "--short", "HEAD").Output() //nolint:noctx // a moment
	if err != nil {
		return fmt.Errorf("ask for the commit: %w", err)
	}
	fmt.Fprintf(&b, "%d findings, %s/%s with %d CPUs, commit %s.\n", alone.n, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), strings.TrimSpace(string(commit)))
	for _, of := range []struct {
		title string
		*life
	}{{"Where nobody subscribes", alone}, {"Where an endpoint subscribes to all that happens to findings", heard}} {
		fmt.Fprintf(&b, "\n## %s\n\n", of.title)
		b.WriteString("| Step | caller | operator | deliveries | etcd puts | etcd bytes | per scan |\n|---|---|---|---|---|---|---|\n")
		for i := range of.steps {
			b.WriteString(of.steps[i].row(of.n))
		}
	}
	b.WriteString(reportTail)
	return os.WriteFile(path, []byte(b.String()), 0o644) //nolint:gosec // a page of the documentation
}

// row is the step's line in the table.
func (s *step) row(n int) string {
	each := func(total float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", total/float64(n)), ".0") }
	c := s.counted
	operators := float64(written(c, byOperator))
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %.0f | %s |\n", s.name,
		each(c.stored["findings"]-operators), each(operators), each(c.stored["webhookdeliveries"]),
		each(c.puts), c.putBytes/float64(n), s.others())
}

// others lists what is not written for each finding.
func (s *step) others() string {
	var out []string
	for _, resource := range slices.Sorted(maps.Keys(s.counted.stored)) {
		switch resource {
		case "scans", "projects", "repositories", "organizations", "events":
			out = append(out, fmt.Sprintf("%s %.0f", resource, s.counted.stored[resource]))
		}
	}
	return strings.Join(out, ", ")
}
