package uploads

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// An import's Scans show its failure before its Leases are released and the job ends.
func TestAnImportThatFailsAfterItWasRecordedIsAnsweredWithItsError(t *testing.T) {
	failed := v1alpha1.Scan{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Scan"}}
	failed.Spec.Outcome, failed.Spec.Upload = v1alpha1.ScanFailed, &v1alpha1.ScanUpload{ID: "u-1", Scans: 1}
	list := v1alpha1.ScanList{
		TypeMeta: metav1.TypeMeta{APIVersion: failed.APIVersion, Kind: "ScanList"}, Items: []v1alpha1.Scan{failed},
	}
	reader, err := kube.NewReader(&rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
		func(*http.Request) (*http.Response, error) {
			answer := httptest.NewRecorder()
			answer.Header().Set("Content-Type", "application/json")
			err := json.NewEncoder(answer).Encode(list)
			return answer.Result(), err
		})})
	harness.Must(t, err)
	s := &Service{reader: reader}
	await := func(t *testing.T, end error) (*openapi.Upload, error) {
		j := &job{
			Request: Request{Identity: auth.Identity{Namespace: "org-acme"}}, id: "u-1",
			recorded: make(chan struct{}), done: make(chan struct{}),
		}
		time.AfterFunc(answerAfter+time.Second, func() { close(j.recorded) })
		time.AfterFunc(answerAfter+2*time.Second, func() {
			j.err = end
			close(j.done)
		})
		return s.await(t.Context(), j)
	}
	synctest.Test(t, func(t *testing.T) {
		const reason = "a newer scan was imported"
		upload, err := await(t, &importer.RefusedError{Reason: reason})
		if err == nil {
			t.Fatalf("got %+v", upload)
		}
		harness.Same(t, "the status", http.StatusConflict, problem.Of(err).Status)
		harness.Same(t, "the detail", reason, problem.Of(err).Detail)
	})
	// The results of a scanner that crashed are imported.
	synctest.Test(t, func(t *testing.T) {
		upload, err := await(t, nil)
		harness.Must(t, err)
		harness.Same(t, "the status", new(openapi.ScanStatusFailed), upload.Status)
	})
}

// A client that waits for the outcome of each upload needs one slot.
func TestAnUploadsSlotIsFreeOnceItIsAnswered(t *testing.T) {
	options := Options{Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Config: &rest.Config{}}
	s, err := New(options)
	harness.Must(t, err)
	s.stop(nil) // so that the import ends at once
	j := &job{recorded: make(chan struct{}), done: make(chan struct{})}
	free := false
	harness.Same(t, "it began", true, s.start(j, func() {
		select {
		case <-j.done:
		default:
			free = true
		}
	}))
	s.jobs.Wait()
	harness.Same(t, "the slot was free before the answer", true, free)
}

// Each import holds all findings of its tool in the project while it is compared with them.
func TestImportsOfAnOrganizationListFindingsOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		listing, answer := []string{}, make(chan struct{})
		s, err := New(Options{
			Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
			Config: &rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
				func(r *http.Request) (*http.Response, error) {
					object := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ScanList"}
					switch path.Base(r.URL.Path) {
					case "shop":
						object["kind"] = "Repository"
					case "web":
						object["kind"] = "Project"
						object["spec"] = map[string]any{"repositoryRef": map[string]any{"name": "shop"}}
					case "findings":
						object["kind"] = "FindingList"
						mu.Lock()
						listing = append(listing, path.Base(path.Dir(r.URL.Path)))
						mu.Unlock()
						<-answer
					}
					recorder := httptest.NewRecorder()
					recorder.Header().Set("Content-Type", "application/json")
					err := json.NewEncoder(recorder).Encode(object)
					return recorder.Result(), err
				})},
		})
		harness.Must(t, err)
		start := func(organization string, dryRun bool) *job {
			j := &job{
				Request: Request{
					Identity:   auth.Identity{Organization: organization, Namespace: "org-" + organization},
					Repository: "shop", Project: "web", DryRun: dryRun,
				},
				batches: []*importer.Batch{{Tool: "lint"}}, recorded: make(chan struct{}), done: make(chan struct{}),
			}
			s.start(j, func() {})
			synctest.Wait()
			return j
		}
		first, second, other := start("acme", true), start("acme", true), start("globex", true)
		harness.Same(t, "list findings", []string{"org-acme", "org-globex"}, listing)
		harness.Same(t, "uploads that wait", 1.0, testutil.ToFloat64(s.metrics.waiting))
		// The Scans of an import show that it waits, and those of a dry run do not exist.
		recorded := s.waitForTurn(&job{Request: Request{Identity: first.Identity}})
		waits := make(chan error, 1)
		go func() {
			turn, err := recorded(t.Context())
			if err == nil {
				turn.End()
			}
			waits <- err
		}()
		synctest.Wait()
		harness.Same(t, "uploads that wait, with an import", 2.0, testutil.ToFloat64(s.metrics.waiting))
		<-second.done
		harness.Same(t, "the status of a dry run that has waited", http.StatusTooManyRequests, problem.Of(second.problem()).Status)
		harness.Same(t, "its outcome", outcomeBusy, outcomeOf(second))
		close(answer)
		harness.Must(t, <-waits)
		s.jobs.Wait()
		harness.Must(t, first.err)
		harness.Must(t, other.err)
		harness.Same(t, "uploads that wait in the end", 0.0, testutil.ToFloat64(s.metrics.waiting))
	})
}

// storedLease returns a transport to a Lease, which is free at first.
func storedLease() harness.RoundTripper {
	var mu sync.Mutex
	var lease []byte
	encoding := "application/json"
	return func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodGet {
			written, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			lease, encoding = written, r.Header.Get("Content-Type")
		} else if lease == nil {
			lease = fmt.Appendf(nil, `{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
				"metadata": {"namespace": "org-acme", "name": %q, "resourceVersion": "1"}}`, path.Base(r.URL.Path))
		}
		recorder := httptest.NewRecorder()
		recorder.Header().Set("Content-Type", encoding)
		_, err := recorder.Write(lease)
		return recorder.Result(), err
	}
}

// Clients cannot read anything about an import before its Scans are recorded, and a project may have very many scans.
func TestAnImportIsRecordedBeforeItReadsEarlierScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := storedLease()
		s, err := New(Options{
			Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
			Config: &rest.Config{Host: "http://nowhere.invalid", Transport: harness.RoundTripper(
				func(r *http.Request) (*http.Response, error) {
					name := path.Base(r.URL.Path)
					object := map[string]any{
						"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Scan", "metadata": map[string]any{"name": name},
					}
					switch {
					case strings.Contains(r.URL.Path, "/leases/"):
						return lease(r)
					case name == "shop":
						object["kind"] = "Repository"
					case name == "web":
						object["kind"] = "Project"
						object["spec"] = map[string]any{"repositoryRef": map[string]any{"name": "shop"}}
					case name == "findings":
						object["kind"] = "FindingList"
					case name == "scans":
						harness.Pause(r.Context(), recordTimeout*2/3)
						object["kind"] = "ScanList"
						if r.URL.Query().Get("continue") == "" {
							object["metadata"] = map[string]any{"continue": "more"}
						}
					}
					recorder := httptest.NewRecorder()
					recorder.Header().Set("Content-Type", "application/json")
					err := json.NewEncoder(recorder).Encode(object)
					return recorder.Result(), err
				})},
		})
		harness.Must(t, err)
		j := &job{
			Request: Request{
				Identity:   auth.Identity{Organization: "acme", Namespace: "org-acme"},
				Repository: "shop", Project: "web",
			},
			batches: []*importer.Batch{{Tool: "lint"}}, recorded: make(chan struct{}), done: make(chan struct{}),
		}
		begun := time.Now()
		s.start(j, func() {})
		<-j.done
		harness.Must(t, j.err)
		if took := time.Since(begun); took <= recordTimeout {
			t.Errorf("the import took %s, which proves nothing", took)
		}
	})
}

// A client must get its answer before its connection ends.
func TestADryRunWaits30SecondsForAllItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{turns: slots.NewTurns(1), metrics: newMetrics(nil)}
		other := s.waitForTurn(&job{Request: Request{Identity: auth.Identity{Organization: "globex"}}})
		dryRun := s.waitForTurn(&job{Request: Request{Identity: auth.Identity{Organization: "acme"}, DryRun: true}})
		// waits returns how long the dry run waits for a turn while the other organization has one of twenty seconds.
		waits := func() (turn importer.Turn, waited time.Duration, err error) {
			others, err := other(t.Context())
			harness.Must(t, err)
			time.AfterFunc(20*time.Second, others.End)
			since := time.Now()
			turn, err = dryRun(t.Context())
			return turn, time.Since(since), err
		}
		turn, waited, err := waits()
		harness.Must(t, err)
		harness.Same(t, "waited for the first", 20*time.Second, waited)
		turn.End()
		_, waited, err = waits()
		harness.Same(t, "waited for the second", 10*time.Second, waited)
		harness.ErrorContains(t, "the second", err, "the dry run waited 30s in all while other uploads were compared")
		harness.Same(t, "the status", http.StatusTooManyRequests, problem.Of(err).Status)
	})
}

// A turn of many scans ends for those who wait, and otherwise goes on.
func TestATurnThatLastsLongIsOverIfAnotherOrganizationWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{turns: slots.NewTurns(1), metrics: newMetrics(nil)}
		take := func(organization string) importer.Turn {
			turn, err := s.waitForTurn(&job{Request: Request{Identity: auth.Identity{Organization: organization}}})(t.Context())
			harness.Must(t, err)
			return turn
		}
		var others sync.WaitGroup
		waits := func(organization string) {
			others.Go(func() { take(organization).End() })
			synctest.Wait()
		}
		turn := take("acme")
		waits("globex")
		harness.Same(t, "over when it has just begun", false, turn.Over())
		<-time.After(maxTurn + time.Second)
		harness.Same(t, "over when it has lasted long", true, turn.Over())
		turn.End()
		others.Wait()
		turn = take("acme")
		waits("acme")
		<-time.After(maxTurn + time.Second)
		harness.Same(t, "over when only its organization waits", false, turn.Over())
		turn.End()
		others.Wait()
	})
}
