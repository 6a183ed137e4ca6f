package import_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// flaky is a proxy in front of the real API server. Of every few writes, it forwards one but drops
// the answer, refuses one as overloaded, and answers one with an error.
func flaky(t *testing.T) (*rest.Config, *atomic.Int64) {
	t.Helper()
	target, err := url.Parse(scanner.Host)
	harness.Must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(scanner.CAData)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	var writes, faults atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/findings/") {
			switch writes.Add(1) % 7 {
			case 2:
				faults.Add(1)
				proxy.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler) // done, but unanswered
			case 4:
				faults.Add(1)
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			case 6:
				faults.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	config := rest.CopyConfig(scanner)
	config.Host = server.URL
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	return config, &faults
}

// Faults of the API server must cost only time.
func TestAnImportGetsThroughFaults(t *testing.T) {
	t.Parallel() // it mostly waits
	p := newProject(t)
	config, faults := flaky(t)
	im := importer.New(newClient(p, config), p.target(), importer.Options{Force: true})

	summaries, err := im.Import(t.Context(), collect(t, importer.Choices{}, document(numbered(12)...)))
	harness.Must(p, err)
	p.did("12 new", summaries[0], counts{Created: 12})
	p.wantState("12 new", 12, 0, 0)
	// If the answer to a closing is lost, the retry finds a newer version: its own write.
	summaries, err = im.Import(t.Context(), collect(t, importer.Choices{}, document()))
	harness.Must(p, err)
	p.did("all repaired", summaries[0], counts{Closed: 12})
	p.wantState("all repaired", 0, 12, 0)
	for _, scan := range p.scans() {
		harness.Same(t, "outcome of scan "+scan.Name, v1alpha1.ScanSucceeded, scan.Spec.Outcome)
	}
	if faults.Load() < 9 {
		t.Errorf("%d faults, want at least 9: nothing was tried", faults.Load())
	}
}

// A result of the maximum size, with every character, must be stored and recognised again.
func TestHugeAndOddTextIsStoredAsItIsCompared(t *testing.T) {
	p := newProject(t)
	odd := ""
	for r := rune(0); r < 0x3000; r++ {
		odd += string(r)
	}
	huge := strings.Repeat("<&>\x01\U0001F600"+odd, 8)
	file := string(harness.JSON(t, map[string]any{"version": "2.1.0", "runs": []any{map[string]any{
		"tool": map[string]any{"driver": map[string]any{"name": "tool " + odd, "version": huge, "rules": []any{map[string]any{
			"id": huge, "name": huge, "shortDescription": map[string]any{"text": huge}, "fullDescription": map[string]any{"text": "x" + huge},
			"help": map[string]any{"text": "y" + huge}, "helpUri": huge,
		}}}},
		"results": []any{map[string]any{
			"ruleId": huge, "message": map[string]any{"text": huge},
			"partialFingerprints": map[string]any{"contextHash/v1": huge, "contextHash/" + odd: "x"},
			"fixes":               []any{map[string]any{"artifactChanges": []any{map[string]any{"replacements": []any{map[string]any{"insertedContent": map[string]any{"text": huge}}}}}}},
			"locations": []any{map[string]any{"physicalLocation": map[string]any{
				"artifactLocation": map[string]any{"uri": huge}, "region": map[string]any{"startLine": 1, "snippet": map[string]any{"text": huge}},
			}}},
		}},
	}}}))
	p.did("the first import", p.imports(file, commitA), counts{Created: 1})
	p.did("the second import", p.imports(file, commitB), counts{Unchanged: 1})
}

// bodyOf returns the body of a request that is still to be sent.
func bodyOf(r *http.Request) ([]byte, error) {
	sent, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(sent))
	return sent, err
}

// newer returns a client whose writes of that resource have a field that the CRDs do not have.
func newer(t testing.TB, resource string) *importer.Client {
	t.Helper()
	return through(t, scanner, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/"+resource) {
			return next.RoundTrip(r)
		}
		sent, err := bodyOf(r)
		if err != nil {
			return nil, err
		}
		sent = bytes.Replace(sent, []byte(`"spec":{`), []byte(`"spec":{"fieldOfTomorrow":1,`), 1)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(sent)), int64(len(sent))
		return next.RoundTrip(r)
	})
}

// An importer that is newer than the CRDs must not lose data silently.
func TestAFactThatTheCRDsDoNotHaveIsRefused(t *testing.T) {
	p := newProject(t)
	batches := collect(t, importer.Choices{}, document(numbered(1)...))
	_, err := importer.New(newer(t, "findings"), p.target(), importer.Options{}).Import(t.Context(), batches)
	harness.ErrorContains(t, "the import", err, "fieldOfTomorrow")
	if kube.IsTemporary(err) {
		t.Errorf("%v is tried again, though it does not go away by itself", err)
	}
}

func TestAFactOfAReviewThatTheCRDsDoNotHaveIsRefused(t *testing.T) {
	for reason, tc := range map[string]struct {
		resource string
		known    bool
	}{
		"a new review": {"reviews", false}, "a new issue": {"reviewissues", false}, "a known issue": {"reviewissues", true},
	} {
		t.Run(reason, func(t *testing.T) {
			p := newPull(t)
			if tc.known {
				p.reviews(commitA, document(numbered(1)...))
			}
			batches := collect(t, importer.Choices{Commit: commitB, Analysis: new(string)}, document(numbered(1)...))
			_, err := reviewimport.New(newer(t, tc.resource), p.PullRequest, reviewimport.Options{}).
				Import(t.Context(), &reviewimport.Commit{SHA: commitB}, batches)
			harness.Same(t, "what is refused", `unknown field "spec.fieldOfTomorrow"`, kube.UnknownFields(err))
			if err != nil && strings.Contains(err.Error(), "seenInCommits") {
				t.Errorf("it quotes the object: %v", err)
			}
		})
	}
}

// Otherwise the scan would be reported as one whose import has died, and the cause would be only in the log.
func TestAnImportThatPanicsIsRecordedAsFailed(t *testing.T) {
	p := newProject(t)
	panics := importer.Options{OnRecorded: func(*importer.Batch, string) { panic("a test panics") }}
	_, err := p.tryImport(panics, collect(t, importer.Choices{}, document(numbered(1)...)))
	if safely.Stack(err) == "" {
		t.Errorf("got %v, want the panic", err)
	}
	wantOneFailed(t, p.scans(), "the import failed: panic: a test panics")
}
