package uploads

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/truncate"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// fileName is the name of the body in messages.
const fileName = "the file"

// maxScans is how many scans a file may contain: each has a Lease that is renewed during the import.
const maxScans = 32

// textNoRoom is the message for an upload that does not fit in memory.
const textNoRoom = "too much is being uploaded at the same time"

// textTooSlow is the message for a body that takes longer than the server lets it, and textCompress is what helps.
const (
	textTooSlow  = "the body came too slowly: it may take ten minutes in all, and 20 seconds without a byte"
	textCompress = "; unless it is compressed, send it with Content-Encoding: gzip"
)

// textUploadLess is what helps if a file is too large.
const textUploadLess = "have the scanner report less, scan folders separately, each always with its own analysis, or ask " +
	"the operators to raise --uploads-mib (half of it is the limit of a file, which is never above 256 MiB); never upload " +
	"the file in parts: what an upload does not contain counts as fixed"

// read parses the body as it arrives, so that only the data to be imported is held.
func (s *Service) read(request *Request, held *hold) ([]*importer.Batch, error) {
	body := &source{reader: request.Body, inMember: request.Settings != nil}
	var unfolded io.Reader = body
	if request.Gzip {
		compressed, err := gzip.NewReader(body)
		if err != nil {
			return nil, body.explain(&gzipError{err})
		}
		unfolded = &gunzip{compressed}
	}
	limits := sarif.DefaultLimits
	limits.Bytes = min(limits.Bytes, s.limits.share())
	options := sarif.Options{Limits: limits, SourceRoot: request.SourceRoot, Reserve: held.take}
	if request.Settings != nil {
		options.LateSourceRoot = request.settle
	}
	log, err := sarif.Parse(&metered{unfolded, held, s.metrics.bytes}, options)
	if err != nil {
		return nil, body.explain(err)
	}
	batches, err := importer.Collect([]importer.File{{Name: fileName, Log: log}}, request.Choices, apitime.Now())
	var start *importer.StartError
	switch {
	case errors.As(err, &start):
		return nil, &refusal{request.invalid("started_at", "is wrong: "+err.Error()), reasonMalformed}
	case err != nil:
		return nil, refusedFile(err)
	}
	if len(batches) > maxScans {
		return nil, refusedFile(errors.New(tooManyScans(len(batches), "tool, category and analysis")))
	}
	return batches, nil
}

// tooManyScans returns the message for a file that contains n scans, one per combination of the given parts.
func tooManyScans(n int, per string) string {
	return fmt.Sprintf("%s holds %d scans, one per %s, and an upload at most %d: split it, and keep the results of each "+
		"scan in one file, because a scan closes what it does not report", fileName, n, per, maxScans)
}

// settle copies the client's settings for the file into the request, and returns the file's SourceRoot.
func (r *Request) settle() (string, error) {
	settings, err := r.Settings()
	if err != nil {
		return "", err
	}
	r.Choices, r.SourceRoot, r.Ref = settings.Choices, settings.SourceRoot, settings.Ref
	return settings.SourceRoot, r.resolve()
}

// source remembers the error that ended the client's body.
type source struct {
	reader io.Reader
	// inMember means that the file is the member `sarif` of the body.
	inMember bool
	err      error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// explain returns why the body could not be imported. Except for invalid members, an error in its transmission
// takes precedence over one in its content.
func (s *source) explain(err error) error {
	var tooLong *http.MaxBytesError
	var packed *gzipError
	var tooLarge *sarif.TooLargeError
	var invalid *openapi.InvalidError
	var known *problem.Problem
	switch {
	case errors.As(err, &known):
		return &refusal{known, reasonMalformed}
	case errors.As(s.err, &invalid), errors.As(err, &invalid):
		return &refusal{problem.InvalidBody(invalid.Text).In(invalid.Field).Coded(invalid.Code), reasonMalformed}
	case errors.As(s.err, &tooLong):
		p := problem.InvalidBody(fmt.Sprintf("the body must be at most %d bytes", tooLong.Limit)).Coded(problem.CodeTooLong)
		return &refusal{p, reasonTooLong}
	case errors.Is(s.err, os.ErrDeadlineExceeded):
		text := textTooSlow
		if !s.inMember {
			text += textCompress
		}
		return &refusal{problem.InvalidBody(text).Coded(problem.CodeMalformed), reasonTooSlow}
	case s.err != nil:
		p := problem.InvalidBody("the body could not be read to its end")
		return &refusal{p.Coded(problem.CodeMalformed), reasonInterrupted}
	case errors.Is(err, errNoShare):
		return &refusal{problem.Busy(textNoRoom, busyRetryAfter), reasonOrganizationMemory}
	case errors.Is(err, errNoMemory):
		return &refusal{problem.Busy(textNoRoom, busyRetryAfter), reasonReplicaMemory}
	case errors.As(err, &tooLarge):
		return refusedAs(fmt.Errorf("%s is refused: larger than %d MiB: %s", fileName, tooLarge.Bytes>>20, textUploadLess),
			problem.CodeTooLong)
	case errors.As(err, &packed) && s.inMember:
		p := problem.InvalidBody("it is not gzip, or is damaged").In("sarif")
		return &refusal{p.Coded(problem.CodeMalformed), reasonMalformed}
	case errors.As(err, &packed):
		p := problem.InvalidBody("the body is not gzip, although content-encoding is gzip, or it is damaged")
		return &refusal{p.In("content-encoding").Coded(problem.CodeMalformed), reasonMalformed}
	default:
		return refusedFile(fmt.Errorf("%s is refused: %w", fileName, err))
	}
}

// maxDetail is the maximum length of the reason why a file is refused, which may quote the file.
const maxDetail = 1000

func refusedFile(err error) error { return refusedAs(err, problem.CodeMalformed) }

func refusedAs(err error, code string) error {
	detail := truncate.To("nothing was imported: "+err.Error(), maxDetail)
	return &refusal{problem.InvalidBody(detail).Coded(code), reasonMalformed}
}

// gzipError is an error in a compressed body.
type gzipError struct{ error }

// gunzip marks errors of the compression.
type gunzip struct{ reader *gzip.Reader }

func (g *gunzip) Read(p []byte) (int, error) {
	n, err := g.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &gzipError{err}
	}
	return n, err
}

// metered reserves memory for the data read, and counts it.
type metered struct {
	reader io.Reader
	held   *hold
	bytes  prometheus.Counter
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.reader.Read(p)
	m.bytes.Add(float64(n))
	if refused := m.held.take(n); refused != nil {
		return 0, refused
	}
	return n, err
}
