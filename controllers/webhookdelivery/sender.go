package webhookdelivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/signatures"
)

const (
	userAgent   = "findings-operator-webhooks"
	contentType = "application/json"
	// answerLimit is how much of a response body is read, in bytes: enough to reuse the connection
	// after a short response. The content is ignored.
	answerLimit = 4 << 10
	// answerRest is how long the rest of a response may take after its header: a receiver that keeps the response open
	// must not hold a place until the attempt's timeout.
	answerRest = time.Second
	// headerLimit is how much of a response header is read, in bytes.
	headerLimit = 16 << 10
	// idleTimeout is how long an unused connection is kept.
	idleTimeout = 30 * time.Second
)

// sender sends requests to untrusted receivers.
type sender struct {
	client *http.Client
	// timeout of a whole attempt, from the DNS lookup to the end of the response.
	timeout time.Duration
}

// errDenied means that an address is in a network that the operator denies.
var errDenied = errors.New("the address is denied")

// newSender returns a sender that connects only to public and allowed addresses, and never to denied ones. The address
// is checked when it is dialled, because a name may resolve differently from one moment to the next.
func newSender(settings Settings) *sender {
	timeout := settings.Timeout
	dialer := &net.Dialer{Timeout: timeout, Control: guard(settings)}
	return &sender{
		timeout: timeout,
		client: &http.Client{
			Transport: &http.Transport{
				// A proxy would connect for us to addresses that we refuse.
				Proxy:                  nil,
				DialContext:            dialer.DialContext,
				ForceAttemptHTTP2:      true,
				TLSHandshakeTimeout:    timeout,
				IdleConnTimeout:        idleTimeout,
				MaxIdleConns:           overallLimit + failingLimit,
				MaxIdleConnsPerHost:    endpointLimit + 1,
				MaxResponseHeaderBytes: headerLimit,
				DisableCompression:     true,
				// Without pings, a connection that dies silently is used until TCP gives up, and each attempt on it fails. The ping
				// timeout is that of an attempt, so that a busy receiver, which does not answer pings either, does not end it
				// early.
				HTTP2: &http.HTTP2Config{SendPingTimeout: timeout / 3, PingTimeout: timeout},
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// platformAddress looks public but is not: on Azure, it serves each machine the platform's DNS, health probes and agent
// configuration.
var platformAddress = netip.MustParsePrefix("168.63.129.16/32")

// guard returns the check of an address that is about to be dialled. A denied network takes precedence over an allowed
// one, which the guardian's own denied prefixes do not. For a NAT64 address, the IPv4 address that its gateway would
// connect to must be permitted too.
func guard(settings Settings) func(network, address string, connection syscall.RawConn) error {
	var v4, v6 []netip.Prefix
	for _, prefix := range settings.Allowed {
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix)
		} else {
			v6 = append(v6, prefix)
		}
	}
	guardian := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
		ssrf.WithDeniedV4Prefixes(platformAddress))
	nat64 := append([]netip.Prefix{ssrf.IPv6NAT64Prefix}, settings.NAT64...)
	return func(network, address string, connection syscall.RawConn) error {
		if err := guardian.Safe(network, address, connection); err != nil {
			return err
		}
		target, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		addresses := []netip.Addr{target.Addr().Unmap()}
		if slices.ContainsFunc(nat64, func(p netip.Prefix) bool { return p.Contains(target.Addr()) }) {
			bytes := target.Addr().As16()
			embedded := netip.AddrFrom4([4]byte(bytes[12:]))
			if err := guardian.SafeAddr(embedded); err != nil {
				return err
			}
			addresses = append(addresses, embedded)
		}
		for _, p := range settings.Denied {
			if slices.ContainsFunc(addresses, p.Contains) {
				return errDenied
			}
		}
		return nil
	}
}

// result is the result of an attempt.
type result struct {
	outcome v1alpha1.WebhookAttemptOutcome
	// code is the HTTP status code; 0 if there was no response.
	code int32
	// message for users; "" on success. It contains no part of the secret, the signatures, the URL
	// or the response.
	message string
	// retryAfter is the raw Retry-After header of the response.
	retryAfter string
}

// health returns the endpoint's health after this result.
func (r result) health() health {
	if r.outcome == v1alpha1.WebhookAttemptSucceeded {
		return healthProven
	}
	return healthFailing
}

// send makes one request and returns its result.
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
	answer, err := s.client.Do(request) //nolint:gosec // the endpoint sets the URL; the dialer refuses what is neither public nor allowed
	if err != nil {
		host := request.URL.Hostname()
		if dial, is := errors.AsType[*net.OpError](err); is { // has neither the URL nor data of the receiver
			log.FromContext(ctx).V(1).Info("The receiver of a webhook was not reached", "host", host, "cause", dial.Error())
		}
		return failed(0, explain(host, err, s.timeout))
	}
	defer answer.Body.Close()
	// Only the status code counts, so a truncated, slow or too long body does no harm.
	defer time.AfterFunc(answerRest, cancel).Stop()
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

// explain describes an error in our own words: an error of net/http contains the URL, whose path or query may hold a
// credential, and may contain data sent by the receiver. timeout is that of the attempt.
func explain(host string, err error, timeout time.Duration) string {
	var unresolved *net.DNSError
	var badAddress *net.AddrError
	_, notAddress := netip.ParseAddr(host)
	isAddress := notAddress == nil // DNS knows nothing about it
	switch {
	case isAddress && errors.Is(err, ssrf.ErrProhibitedIP):
		return "the host's address is not a public one; the operator's flag --webhook-allow-cidr allows others"
	case isAddress && errors.Is(err, errDenied):
		return "the host's address is in a network that the operator's flag --webhook-deny-cidr denies"
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, errDenied), errors.As(err, &unresolved):
		// All names get the same text, or it would reveal which ones the cluster's DNS resolves to its own Services. This
		// comes before timeouts, because a failed lookup may be one.
		return "the host's name could not be resolved, or its address is not a public one; the operator's flag " +
			"--webhook-allow-cidr allows others, and --webhook-deny-cidr denies some"
	case errors.As(err, &badAddress):
		return "spec.url of the endpoint cannot be used: its port must be a number up to 65535"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return fmt.Sprintf("no answer within %s", timeout)
	case utilnet.IsHTTP2ConnectionLost(err):
		return "the connection was lost before the receiver answered"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "the host cannot be reached"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the receiver's port speaks http, not https; correct spec.url of the endpoint"
	case isTLS(err):
		return "the TLS handshake failed; check the receiver's certificate"
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
