package webhookdelivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/signatures"
)

const (
	userAgent   = "findings-operator-webhooks"
	contentType = "application/json"
	// answerLimit is how much of an answer's body is read, in bytes: enough that a connection
	// with a short answer can be used again. Nothing in it is looked at.
	answerLimit = 4 << 10
	// headerLimit is how much of an answer's header is read, in bytes.
	headerLimit = 16 << 10
	// idleTimeout is how long an unused connection is kept.
	idleTimeout = 30 * time.Second
)

// sender sends requests to receivers that nobody vouches for.
type sender struct {
	client *http.Client
	// timeout of a whole try, from the look-up of the name to the end of the answer.
	timeout time.Duration
}

// newSender returns one that connects to public addresses and to those in allowed alone. The
// address is checked when it is dialled: a name that meant a public address a moment ago may
// mean another now.
func newSender(timeout time.Duration, allowed []netip.Prefix) *sender {
	var v4, v6 []netip.Prefix
	for _, prefix := range allowed {
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix)
		} else {
			v6 = append(v6, prefix)
		}
	}
	guardian := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	dialer := &net.Dialer{Timeout: timeout, Control: guardian.Safe}
	return &sender{
		timeout: timeout,
		client: &http.Client{
			Transport: &http.Transport{
				// A proxy would be told the address, and connect for us to what we refuse.
				Proxy:                  nil,
				DialContext:            dialer.DialContext,
				ForceAttemptHTTP2:      true,
				TLSHandshakeTimeout:    timeout,
				IdleConnTimeout:        idleTimeout,
				MaxIdleConns:           overallLimit + failingLimit,
				MaxIdleConnsPerHost:    endpointLimit,
				MaxResponseHeaderBytes: headerLimit,
				DisableCompression:     true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// result is how a try ended.
type result struct {
	outcome v1alpha1.WebhookAttemptOutcome
	// code of the answer; 0 where there was none.
	code int32
	// message for people, "" where all went well. It holds nothing of the secret, the signatures,
	// the URL or the answer.
	message string
	// retryAfter is the answer's header of that name, as it came.
	retryAfter string
}

// standing is how the endpoint stands after a try that ended so.
func (r result) standing() standing {
	if r.outcome == v1alpha1.WebhookAttemptSucceeded {
		return standingProven
	}
	return standingFailing
}

// send makes one request and says how it ended.
func (s *sender) send(ctx context.Context, url string, event v1alpha1.WebhookEvent, payload string, at time.Time,
	signed []signatures.Signature) result {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(payload))
	if err != nil {
		return failed(0, "spec.url of the endpoint cannot be used")
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set(signatures.HeaderID, event.ID)
	request.Header.Set(signatures.HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(signatures.HeaderSignature, signatures.Header(signed))
	answer, err := s.client.Do(request) //nolint:gosec // where to is what an endpoint says; the dialer refuses what is not public
	if err != nil {
		return failed(0, s.explain(err))
	}
	defer answer.Body.Close()
	// The status is the answer: a body that is cut off or too long changes nothing about it.
	_, _ = io.CopyN(io.Discard, answer.Body, answerLimit)
	got := judgeAnswer(answer.StatusCode)
	got.retryAfter = answer.Header.Get("Retry-After")
	return got
}

func judgeAnswer(status int) result {
	code := int32(min(status, 999)) //nolint:gosec // three digits
	switch {
	case status >= 200 && status < 300:
		return result{outcome: v1alpha1.WebhookAttemptSucceeded, code: code}
	case status == http.StatusGone:
		return failed(code, "the receiver answered 410 Gone: it wants no more events")
	case status >= 300 && status < 400:
		return failed(code, "the receiver answered with a redirect, which is not followed; set spec.url of the endpoint to the final address")
	}
	return failed(code, "the receiver answered with a status other than 200 to 299")
}

func failed(code int32, message string) result {
	return result{outcome: v1alpha1.WebhookAttemptFailed, code: code, message: message}
}

// explain says what went wrong in words of our own: an error of net/http holds the URL, whose
// path or query may be a credential, and may hold what the receiver sent.
func (s *sender) explain(err error) string {
	var unresolved *net.DNSError
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP):
		return "the host's address is not a public one; the operator's flag --webhook-allow-cidr allows others"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return fmt.Sprintf("no answer within %s", s.timeout)
	case errors.As(err, &unresolved):
		return "the host's name could not be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "the host cannot be reached"
	case isTLS(err):
		return "no TLS connection came about; look at the receiver's certificate"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err,
		syscall.EPIPE):
		return "the receiver closed the connection without an answer"
	}
	return "the receiver's answer could not be read"
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
