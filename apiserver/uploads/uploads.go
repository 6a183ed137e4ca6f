// Package uploads imports scan results that clients send over REST. It runs in this process but impersonates a
// separate identity, which may write facts in one organization's namespace, but no decisions. Its errors are
// problems.
package uploads

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

const (
	// answerAfter is how long a response waits for the end of an import.
	answerAfter = 10 * time.Second
	// recordTimeout is how long an import may take, or wait for other imports of the same scans, until its Scans are
	// recorded: before that, clients cannot read anything about it.
	recordTimeout = 30 * time.Second
	// dryRunPatience is how long a dry run waits for its turns, all in all: nothing shows clients that it runs.
	dryRunPatience = 30 * time.Second
	// longest is how long an import may take.
	longest = 30 * time.Minute
	// busyRetryAfter is when to try again while other imports are running.
	busyRetryAfter = 10 * time.Second
)

// Options of a Service.
type Options struct {
	// Config reaches the Kubernetes API as the facade's service account.
	Config *rest.Config
	// Limits bound concurrent uploads; zero means DefaultLimits.
	Limits Limits
	Log    *slog.Logger
	// Registerer of the metrics; may be nil.
	Registerer prometheus.Registerer
}

// Service imports uploads. It is safe for concurrent use.
type Service struct {
	config *rest.Config
	limits Limits
	log    *slog.Logger
	reader *kube.Reader

	slots   *slots.Slots
	memory  memory
	turns   *slots.Turns
	metrics *metrics

	// Imports end with this context, which outlives requests.
	running context.Context
	stop    context.CancelCauseFunc
	mu      sync.Mutex
	closed  bool
	jobs    sync.WaitGroup
}

// New returns a Service.
func New(options Options) (*Service, error) {
	if options.Limits == (Limits{}) {
		options.Limits = DefaultLimits
	}
	reader, err := kube.NewReader(options.Config)
	if err != nil {
		return nil, err
	}
	s := &Service{
		config: options.Config, limits: options.Limits, log: options.Log, reader: reader,
		slots:   slots.New(options.Limits.Total, options.Limits.PerOrganization),
		memory:  memory{limits: options.Limits, taken: map[string]int64{}},
		turns:   slots.NewTurns(maxComparing),
		metrics: newMetrics(options.Registerer),
	}
	s.running, s.stop = context.WithCancelCause(context.Background())
	return s, nil
}

// Request is an upload with a valid key.
type Request struct {
	// Identity is the sender's. A dry run lists only changes that its key may read.
	auth.Identity
	// RequestID identifies the client's request in the log.
	RequestID string
	// Repository and Project are the ids of the scanned ones. If Project is empty, the file determines for each
	// result which of the repository's projects it belongs to.
	Repository, Project string
	// Named are the ids that the replica knows for the full name in Repository; they may be stale. Empty if Repository is
	// an id, or if none is known and Imports lets the repository be created.
	Named []string
	// Imports is what the organization lets imports create; nil for nothing. If set, repository and project
	// need not exist.
	Imports *v1alpha1.OrganizationImports
	// Choices are the client's settings for the file.
	Choices importer.Choices
	// SourceRoot is the folder that paths are relative to, on the machine that scanned; Ref is the scanned ref.
	SourceRoot, Ref string
	// PullRequest that was scanned. If it has a number, or Ref is that of a pull request, the upload is
	// reviewed instead of imported.
	PullRequest   PullRequest
	DryRun, Force bool
	// Settings returns Choices, SourceRoot and Ref if they are known only after Body has been read to its end;
	// nil otherwise.
	Settings func() (Settings, error)

	Body io.Reader
	// Gzip reports whether the body is compressed.
	Gzip bool
	// Readmit returns the sender's identity as of now, or an error if the request must be refused by now. It must be set,
	// and is called only once: after Body has been read, and before Import or Submit returns.
	Readmit func() (auth.Identity, error)
}

// Settings are the client's settings for a file.
type Settings struct {
	Choices         importer.Choices
	SourceRoot, Ref string
}

// Import imports the request's body. It returns once everything is stored, or after ten seconds with the upload
// as recorded so far while the import continues. If ctx ends, only the wait ends, not the import.
func (s *Service) Import(ctx context.Context, request Request) (_ *openapi.Upload, err error) {
	defer func() { s.metrics.refuse(err) }()
	if err := request.resolve(); err != nil {
		return nil, &refusal{problem.Of(err), reasonMalformed}
	}
	j, err := s.begin(&request) //nolint:contextcheck // the import outlives the request
	if err != nil {
		return nil, err
	}
	return s.await(ctx, j)
}

// begin reads the request's body and starts its import.
func (s *Service) begin(request *Request) (*job, error) {
	slot, err := s.takeSlot(request.Organization)
	if err != nil {
		return nil, err
	}
	held := &hold{memory: &s.memory, organization: request.Organization}
	release := func() { held.release(); slot() }
	started := false
	defer func() {
		if !started {
			release()
		}
	}()
	batches, err := s.read(request, held)
	if err != nil {
		return nil, err
	}
	j := &job{
		Request: *request, batches: batches, id: "u-" + fingerprints.Hash(uuid.NewString()),
		recorded: make(chan struct{}), done: make(chan struct{}),
	}
	if request.PullRequest.Number != 0 {
		if j.commit, err = reviewedCommit(request, batches); err != nil {
			return nil, &refusal{problem.Of(err), reasonMalformed}
		}
	}
	if j.Identity, err = request.Readmit(); err != nil {
		return nil, &refusal{problem.Of(err), reasonNotAdmitted}
	}
	j.Request.Readmit = nil // it must not be called after the response
	if started = s.start(j, release); !started {
		return nil, &refusal{problem.TryAgain("the service is stopping", nil), reasonStopping}
	}
	return j, nil
}

// await waits for the end of an import or, after ten seconds, for its Scans. If they show a failure, the import is
// about to end, and only then is its error known.
func (s *Service) await(ctx context.Context, j *job) (*openapi.Upload, error) {
	patience := time.After(answerAfter)
	var recorded <-chan struct{} // nil before that
	for {
		select {
		case <-j.done:
			return s.answer(ctx, j)
		case <-ctx.Done():
			return nil, problem.TryAgain("the client is gone", context.Cause(ctx))
		case <-patience:
			recorded = j.recorded
		case <-recorded:
			upload, err := s.Get(ctx, j.Namespace, j.id)
			if err != nil || ptr.Deref(upload.Status, "") != openapi.ScanStatusFailed {
				return upload, err
			}
			recorded = nil
		}
	}
}

// answer returns the result of an import.
func (s *Service) answer(ctx context.Context, j *job) (*openapi.Upload, error) {
	switch {
	case j.err != nil:
		return nil, j.problem()
	case j.DryRun:
		return preview(j), nil
	}
	return s.Get(ctx, j.Namespace, j.id)
}
