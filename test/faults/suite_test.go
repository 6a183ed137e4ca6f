// Package faults kills, freezes, starves and disconnects the service's processes while it works,
// and then checks with etcd's own history whether anything was lost or duplicated.
//
// `go test ./test/faults` injects some faults; with -tags=faults all of them.
package faults

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/faults/internal/rig"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	organization = "faults"
	namespace    = v1alpha1.NamespacePrefix + organization
	repository   = "shop"
	project      = "api"
	loadKey      = "load"
	endpointName = "imports"

	// settleTimeout bounds each wait for a condition.
	settleTimeout = 4 * time.Minute
	// requestTimeout is longer than the service takes for any answer.
	requestTimeout = time.Minute
	// unlimited is the greatest allowed rate limit.
	unlimited = 1_000_000
)

// group names the writers of a finding: it is the part of its file's name before the dash.
type group string

// The groups. Each finding is written either through REST or through kubectl, except for the probe,
// which is written through both while there is no other writer.
const (
	byREST     group = "rest"
	byKubectl  group = "kubectl"
	byImporter group = "import"
	probed     group = "probe"
	// byMany findings are decided about by people, by operations and by a policy at the same time.
	byMany group = "many"
)

// members is how many findings each group has; missed of the importer's findings close and reopen.
var members = map[group]int{byREST: 8, byKubectl: 6, byImporter: 24, probed: 1, byMany: 8}

const missed = 4

// trial is the running service, the records of its work, and the errors found.
type trial struct {
	*rig.Rig
	t        *testing.T
	receiver *receiver
	rest     *restClient
	staged   map[group][]string
	journal  *journal
	audit    *audit
	monitor  *monitor
	verdict  *verdict

	staleness   time.Duration
	whole, part string
	binaries    string
}

// start starts a trial with the options, to which it adds the folders. The trial ends with the test.
func start(t *testing.T, options rig.Options) *trial {
	t.Helper()
	// FAULTS_BINARIES may name programs with a planted bug, to check that the tests find it.
	s := &trial{t: t, staleness: options.KeyStaleness, verdict: &verdict{t: t}, binaries: os.Getenv("FAULTS_BINARIES")}
	var err error
	if s.binaries == "" {
		s.binaries, err = harness.Build(t.Context())
		harness.Must(t, err)
	}
	options.Binaries, options.Folder = s.binaries, t.TempDir()
	s.Rig, err = rig.Start(t.Context(), options)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Logs())
			t.Log("what was wrong, once more, below the logs:\n" + s.verdict.texts())
		}
		s.Stop()
	})
	harness.Must(t, err)
	s.prepare()
	return s
}

// prepare creates an organization with a key, findings, and a webhook endpoint.
func (s *trial) prepare() {
	t := s.t
	s.must(s.Client.Create(t.Context(), builder.Organization(organization).RequestsPerMinute(unlimited).Build()))
	s.eventually("the organization has its namespace", func(ctx context.Context) error {
		return s.Client.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	})
	s.rest = &restClient{base: s.URL, token: s.newKey(loadKey), http: &http.Client{Timeout: requestTimeout}}
	s.receiver = newReceiver(t)
	s.must(s.Client.Create(t.Context(), builder.WebhookEndpoint(endpointName).In(namespace).URL(s.receiver.url).
		Events("finding.closed", "finding.reopened", "scan.completed").Build()))
	s.must(s.Client.Create(t.Context(), builder.Repository(repository).In(namespace).Build()))
	s.must(s.Client.Create(t.Context(), builder.Project(project).In(namespace).Repository(repository).Build()))
	s.must(s.Client.Create(t.Context(), manyPolicy()))
	s.whole, s.part = s.writeScan("whole", 0), s.writeScan("part", missed)
	harness.Must(t, s.importScan(t.Context(), s.whole))
	s.stage()
	s.journal = newJournal(s.verdict)
	s.audit = newAudit(s)
	s.monitor = newMonitor(s)
	s.eventually("the facade is ready", func(ctx context.Context) error {
		if status, _, err := s.rest.call(ctx, http.MethodGet, "/v1/findings", nil); err != nil || status != http.StatusOK {
			return fmt.Errorf("it answers %d: %w", status, err)
		}
		return nil
	})
}

// newKey creates an API key and returns its token.
func (s *trial) newKey(name string) string {
	s.t.Helper()
	return s.newKeyIn(namespace, name)
}

func (s *trial) newKeyIn(namespace, name string, scopes ...v1alpha1.Scope) string {
	s.t.Helper()
	key := builder.APIKey(name).In(namespace).Scopes(scopes...).Mutate(func(k *v1alpha1.APIKey) {
		limit := int32(unlimited)
		k.Spec.RateLimit = &v1alpha1.RateLimit{RequestsPerMinute: &limit}
	}).Build()
	s.must(s.Client.Create(s.t.Context(), key))
	token, err := testenv.Token(s.t.Context(), s.Client, key)
	s.must(err)
	return token
}

// stage determines the group of each finding.
func (s *trial) stage() {
	s.t.Helper()
	s.staged = map[group][]string{}
	for _, f := range s.findings(s.t.Context()) {
		file := filepath.Base(f.Spec.Details.Location.FilePath)
		name, _, _ := strings.Cut(file, "-")
		s.staged[group(name)] = append(s.staged[group(name)], f.Name)
	}
	for g, count := range members {
		slices.Sort(s.staged[g])
		if len(s.staged[g]) != count {
			s.t.Fatalf("%d findings of %s were imported; want %d", len(s.staged[g]), g, count)
		}
	}
}

// total returns the number of findings, which is constant from the first import on.
func total() int {
	sum := 0
	for _, count := range members {
		sum += count
	}
	return sum
}

// findings lists all findings at the API server.
func (s *trial) findings(ctx context.Context) []v1alpha1.Finding {
	s.t.Helper()
	list := &v1alpha1.FindingList{}
	s.must(s.Client.List(ctx, list, client.InNamespace(namespace)))
	return list.Items
}

func (s *trial) must(err error) {
	s.t.Helper()
	if err != nil {
		s.verdict.wrong("the test cannot go on: %v", err)
		s.t.FailNow()
	}
}

// eventually waits until check returns nil.
func (s *trial) eventually(what string, check func(context.Context) error) {
	s.t.Helper()
	s.must(await(s.t.Context(), what, check))
}

func await(ctx context.Context, what string, check func(context.Context) error) error {
	return harness.UntilWithin(ctx, settleTimeout, what, check)
}

// verdict collects errors. It is safe for concurrent use.
type verdict struct {
	t failer

	mutex         sync.Mutex
	lost, doubled int
	faults        int
	told          map[string]int
	said          []string
}

// failer is the part of a test that a verdict uses.
type failer interface {
	Errorf(format string, arguments ...any)
	Fail()
}

// tellAtMost bounds how often an error with the same format is reported: the first ones are enough.
const tellAtMost = 5

func (v *verdict) lose(format string, arguments ...any) {
	v.mutex.Lock()
	v.lost++
	v.mutex.Unlock()
	v.wrong("lost: "+format, arguments...)
}

func (v *verdict) double(format string, arguments ...any) {
	v.mutex.Lock()
	v.doubled++
	v.mutex.Unlock()
	v.wrong("doubled: "+format, arguments...)
}

// wrong fails the test.
func (v *verdict) wrong(format string, arguments ...any) {
	v.mutex.Lock()
	if v.told == nil {
		v.told = map[string]int{}
	}
	v.told[format]++
	count := v.told[format]
	if count <= tellAtMost {
		v.said = append(v.said, fmt.Sprintf(format, arguments...))
	}
	v.mutex.Unlock()
	if count <= tellAtMost {
		v.t.Errorf(format, arguments...)
	} else {
		v.t.Fail()
	}
}

// texts returns all reported errors.
func (v *verdict) texts() string {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return strings.Join(v.said, "\n")
}

// injected counts faults.
func (v *verdict) injected(count int) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.faults += count
}

// summary returns the last line of a run.
func (v *verdict) summary(acknowledged int) string {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return fmt.Sprintf("faults injected %d, operations acknowledged %d, lost %d, doubled %d", v.faults, acknowledged, v.lost, v.doubled)
}
