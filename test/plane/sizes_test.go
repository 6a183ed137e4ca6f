//go:build plane

package plane

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	megabyte = 1 << 20
	// alone makes the controllers run without the Lease: they could lose it while the machine is
	// busy with loading, and nothing here would restart them.
	alone = "--leader-elect=false"
	// batch is the number of puts per etcd transaction, which may have at most 128.
	batch = 100
)

// TestSizes measures what a plane needs for that many findings, for the page: -sizes 10000,100000.
//
// It creates and reconciles one finding. While nothing else runs, it adds copies of the finding's
// row to the database under other names, and puts the same bytes into an etcd. Then it starts
// everything again, and measures once every process is ready and lists its findings.
func TestSizes(t *testing.T) {
	if *sizes == "" {
		t.Skip("measures, with -sizes 10000,100000")
	}
	p := newPlane(t, alone)
	model := p.settledFinding(t)
	t.Logf("one finding is %d bytes in the store", len(p.row(t, model)))
	t.Log("| findings | bytes in PostgreSQL | in etcd | PostgreSQL | kine | kube-apiserver | controllers | REST API | ready after |")
	there := 1
	for field := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(field)
		harness.Must(t, err)
		p.measure(t, model, there, n)
		there = n
	}
}

// settledFinding creates a finding of about 3 KB and returns its key in the store, once it has its
// status.
func (p *plane) settledFinding(t *testing.T) string {
	t.Helper()
	const name = "load"
	namespace := v1alpha1.NamespacePrefix + name
	harness.Must(t, p.admin.Create(t.Context(), builder.Organization(name).Build()))
	harness.Within(t, patience, func(g Gomega) {
		o := &v1alpha1.Organization{}
		g.Expect(p.admin.Get(t.Context(), client.ObjectKey{Name: name}, o)).To(Succeed())
		g.Expect(o.Status.Namespace).To(Equal(namespace))
	})
	finding := builder.Finding("f-model").In(namespace).Tool("gosec", v1alpha1.CategoryCode).
		Triage(v1alpha1.UserStatusActive, "Reachable from the login page.").Mutate(func(f *v1alpha1.Finding) {
		f.Spec.Details.Description = strings.Repeat("Untrusted input flows into a query that is put together from text. ", 30)
	}).Build()
	for _, object := range []client.Object{
		builder.Repository("repo").In(namespace).Build(), builder.Project("proj").In(namespace).Build(), finding,
	} {
		harness.Must(t, p.admin.Create(t.Context(), object))
	}
	harness.Within(t, patience, func(g Gomega) {
		g.Expect(p.admin.Get(t.Context(), client.ObjectKeyFromObject(finding), finding)).To(Succeed())
		g.Expect(v1alpha1.IsConditionTrue(finding.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	})
	return "/registry/appsec.dev/findings/" + namespace + "/f-model"
}

// row returns the last value of a key.
func (p *plane) row(t *testing.T, key string) string {
	t.Helper()
	return p.query(t, "select convert_from(value, 'UTF8') from kine where name = '"+key+"' order by id desc limit 1")
}

// measure adds findings up to n and logs what they need.
func (p *plane) measure(t *testing.T, model string, there, n int) {
	t.Helper()
	for _, stops := range []*harness.Process{p.api, p.controllers, p.manager, p.server, p.kine} {
		harness.Must(t, stops.Stop())
	}
	value := p.row(t, model)
	p.query(t, fmt.Sprintf(`
		insert into kine (name, created, deleted, create_revision, prev_revision, lease, value, old_value)
		select replace(m.name, 'f-model', f.name), 1, 0, 0, 0, 0,
			convert_to(replace(replace(convert_from(m.value, 'UTF8'), 'f-model', f.name), %s, gen_random_uuid()::text), 'UTF8'), null
		from (select * from kine where name = '%s' order by id desc limit 1) m,
			(select 'f-' || lpad(i::text, 26, '0') as name from generate_series(%d, %d) i) f`, quote(uidOf(t, value)), model, there+1, n))
	p.query(t, "vacuum analyze kine")
	inDatabase := p.query(t, "select pg_total_relation_size('kine')")
	inEtcd := putIntoEtcd(t, value, there, n)

	started := time.Now()
	p.startServers(t)
	p.waitForServer(t)
	p.manager = p.start(t, "kube-controller-manager")
	p.startOperator(t, alone)
	ready := time.Since(started)
	listed, err := p.quickly(t, "kubectl", "--kubeconfig="+p.kubeconfig("admin"), "get", "--raw", "/apis/appsec.dev/v1alpha1/findings?limit=500")
	harness.Must(t, err)
	if !strings.Contains(listed, `"remainingItemCount":`+strconv.Itoa(n-500)) {
		t.Errorf("the plane does not list %d findings", n)
	}
	database := 0
	for _, pid := range childrenOf(t, p.postgres.PID()) {
		database += memory(t, pid, "smaps_rollup", "Pss:")
	}
	resident := func(of *harness.Process) string {
		pid := of.PID()
		return fmt.Sprintf("%d MB, at most %d", memory(t, pid, "status", "VmRSS:")/megabyte, memory(t, pid, "status", "VmHWM:")/megabyte)
	}
	t.Logf("| %d | %s | %d | %d MB | %s | %s | %s | %s | %.0f s |", n, inDatabase, inEtcd, database/megabyte,
		resident(p.kine), resident(p.server), resident(p.controllers), resident(p.api), ready.Seconds())
}

func quote(text string) string { return "'" + text + "'" }

func uidOf(t *testing.T, value string) string {
	t.Helper()
	object := harness.Decoded[struct{ Metadata struct{ UID string } }](t, []byte(value))
	return object.Metadata.UID
}

// putIntoEtcd puts the value under other names, and returns how many bytes the database has grown
// since it was empty.
func putIntoEtcd(t *testing.T, value string, there, n int) int {
	t.Helper()
	type put struct {
		RequestPut struct {
			Key   string `json:"key"`
			Value string `json:"value"`
		} `json:"requestPut"`
	}
	for from := there; from < n; from += batch {
		var puts []put
		for i := from; i < min(n, from+batch); i++ {
			name := fmt.Sprintf("f-%026d", i)
			var one put
			one.RequestPut.Key = base64.StdEncoding.EncodeToString([]byte("/sizes/appsec.dev/findings/org-load/" + name))
			one.RequestPut.Value = base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(value, "f-model", name)))
			puts = append(puts, one)
		}
		harness.Must(t, workload.AskEtcd(t.Context(), "/v3/kv/txn", map[string]any{"success": puts}, nil))
	}
	var status struct{ DBSizeInUse string }
	harness.Must(t, workload.AskEtcd(t.Context(), "/v3/maintenance/status", map[string]any{}, &status))
	size, err := strconv.Atoi(status.DBSizeInUse)
	harness.Must(t, err)
	return size
}

// memory returns a figure of a process, in bytes.
func memory(t *testing.T, pid int, file, figure string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
	if os.IsNotExist(err) {
		return 0 // it has ended meanwhile
	}
	harness.Must(t, err)
	_, rest, found := strings.Cut(string(content), figure)
	if !found {
		t.Fatalf("%s of %d has no %s", file, pid, figure)
	}
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	harness.Must(t, err)
	return kilobytes * 1024
}

// childrenOf returns a process and its child processes.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	out := []int{pid}
	content := harness.File(t, fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, field := range strings.Fields(content) {
		child, err := strconv.Atoi(field)
		harness.Must(t, err)
		out = append(out, child)
	}
	return out
}
