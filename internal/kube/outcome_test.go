package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestWhichFailedWritesMayBeStored(t *testing.T) {
	findings := schema.GroupResource{Resource: "findings"}
	lost := func(err error) error {
		return fmt.Errorf("write it: %w", &url.Error{Op: "Post", URL: "https://here", Err: err})
	}
	denied := func(code int32) error { return webhookerrors.ToStatusErr("x", &metav1.Status{Code: code}) }
	for reason, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                {nil, false},
		"no connection in time":   {lost(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}), false},
		"no server":               {lost(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), false},
		"no proxy":                {lost(&net.OpError{Op: "proxyconnect", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}), false},
		"no trust":                {lost(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), false},
		"no credentials":          {lost(errors.New("getting credentials: exec: executable aws failed with exit code 255")), false},
		"no answer in time":       {lost(context.DeadlineExceeded), true},
		"it is interrupted":       {context.Canceled, true},
		"the connection breaks":   {lost(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), true},
		"the connection closes":   {lost(io.EOF), true},
		"the answer breaks off":   {fmt.Errorf("read the answer: %w", io.ErrUnexpectedEOF), true},
		"the stream is reset":     {lost(errors.New("stream error: stream ID 5; INTERNAL_ERROR; received from peer")), true},
		"a proxy gave up waiting": {harness.ProxyRefusal(http.StatusRequestTimeout, http.MethodPost), true},
		"a proxy lost its server": {harness.ProxyRefusal(http.StatusBadGateway, http.MethodPost), true},
		"a proxy refuses it":      {harness.ProxyRefusal(http.StatusForbidden, http.MethodPost), false},
		"etcd took too long":      {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), true},
		"the server's timeout":    {apierrors.NewTimeoutError("the answer was lost", 0), true},
		"it stops":                {apierrors.NewServiceUnavailable("the server is shutting down"), true},
		"overload":                {apierrors.NewTooManyRequests("full", 1), false},
		"it is forbidden":         {apierrors.NewForbidden(findings, "f-1", errors.New("no role")), false},
		"it is invalid":           {apierrors.NewBadRequest("unknown field"), false},
		"it exists":               {apierrors.NewAlreadyExists(findings, "f-1"), false},
		"a conflict":              {apierrors.NewConflict(findings, "f-1", errors.New("moved on")), false},
		"denied":                  {fmt.Errorf("write it: %w", denied(http.StatusConflict)), false},
		"denied with a timeout":   {denied(http.StatusRequestTimeout), false},
		"denied with an outage":   {denied(http.StatusServiceUnavailable), false},
		"a webhook is down":       {apierrors.NewInternalError(errors.New(`failed calling webhook "x": no route`)), false},
	} {
		harness.Same(t, reason, tc.want, IsOutcomeUnknown(tc.err))
	}
}

func TestWhichErrorsMayPass(t *testing.T) {
	status := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "patch", schema.GroupResource{}, "", "", 0, true)
	}
	winsock := func(call string, code syscall.Errno) error {
		return &url.Error{Op: "Get", URL: "https://here", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError(call, code)}}
	}
	uncounted := apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("status unknown for quota: findings-quota, "+
		"resources: count/findings.appsec.dev"))
	for reason, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no connection in time":       {&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, true},
		"no server on Windows":        {winsock("connectex", 10061), true},
		"no connection on Windows":    {winsock("connectex", 10060), true},
		"a reset on Windows":          {winsock("wsarecv", 10054), true},
		"an abort on Windows":         {winsock("wsarecv", 10053), true},
		"an unknown host on Windows":  {winsock("getaddrinfow", 11001), false},
		"no answer in time":           {fmt.Errorf("get: %w", context.DeadlineExceeded), true},
		"a proxy gave up waiting":     {status(http.StatusRequestTimeout), true},
		"overload":                    {status(http.StatusTooManyRequests), true},
		"a quota whose kinds are new": {uncounted, true},
		"an unknown kind":             {status(http.StatusNotFound), false},
		"a field that the CRD does not have": {
			apierrors.NewInternalError(errors.New(".spec.tomorrow: field not declared in schema")), false,
		},
		"a webhook denies it with the code of an outage": {
			webhookerrors.ToStatusErr("hold.example.org", &metav1.Status{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable}), false,
		},
		"it is interrupted": {context.Canceled, false},
	} {
		harness.Same(t, reason, tc.want, IsTemporary(tc.err))
	}
}
