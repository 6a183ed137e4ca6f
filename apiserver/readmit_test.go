package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// emptySARIF is a file of one scan without results.
const emptySARIF = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"scanner"}},"results":[]}]}`

// A body that comes slowly, and an export that is read slowly, end with their key.
func TestWhatIsUnderWayEndsWithItsKey(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, test := range []struct {
		reason string
		change func(*testing.T, *bigFacade)
		want   int
	}{
		{"the key is disabled", func(t *testing.T, f *bigFacade) {
			f.cluster.changeKey(t, func(key *v1alpha1.APIKeySpec) { key.Disabled = true })
		}, http.StatusUnauthorized},
		{"the key loses its scopes", func(t *testing.T, f *bigFacade) {
			f.cluster.changeKey(t, func(key *v1alpha1.APIKeySpec) { key.Scopes = []v1alpha1.Scope{v1alpha1.ScopeKeysRead} })
		}, http.StatusForbidden},
		{"its organization is deleted", func(_ *testing.T, f *bigFacade) {
			former := builder.Organization(acme).Build()
			former.UID, former.ResourceVersion = "uid-acme", "2"
			f.organizations.Delete(former)
		}, http.StatusInternalServerError},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel() // it mostly waits
			f := newBigFacade(t, 200)
			var begun, ended sync.WaitGroup
			changed := make(chan struct{})
			upload := f.request(http.MethodPost, "/v2/repos/repo-0/projects/project-0/scans", emptySARIF)
			upload.Header.Set("Content-Type", openapi.SARIFMediaType)
			for _, request := range []*http.Request{
				f.request(http.MethodPatch, "/v1/findings/f-00000001", `{"user_status":"active"}`), upload,
			} {
				begun.Add(1)
				begins := sync.OnceFunc(begun.Done)
				request.Body = io.NopCloser(io.MultiReader(pausing(func() { begins(); <-changed }), request.Body))
				ended.Go(func() {
					defer begins()
					answer := answerOf(f, request)
					if answer.Code != test.want {
						t.Errorf("%s is answered with %d %s, want %d", request.Method, answer.Code, answer.Body, test.want)
					}
				})
			}
			begun.Add(1)
			begins := sync.OnceFunc(begun.Done)
			ended.Go(func() {
				answer := &pausingWriter{ResponseRecorder: httptest.NewRecorder(), pause: func() { begins(); <-changed }}
				defer func() {
					begins()
					if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
						t.Errorf("the export ended with %v, want the connection to be aborted", err)
					}
					harness.Same(t, "chunks of the export", 1, answer.writes)
				}()
				f.ServeHTTP(answer, f.request(http.MethodGet, "/v2/finding-export?format=sarif", ""))
			})
			begun.Wait()
			test.change(t, f)
			harness.Eventually(t, func(g Gomega) {
				g.Expect(answerOf(f, f.request(http.MethodGet, "/v1/findings", "")).Code).To(Equal(test.want))
			})
			close(changed)
			ended.Wait()
		})
	}
}

// A dry run lists findings that its file lacks only for a key that may read them once the file has come.
func TestADryRunListsWhatItsKeyMayReadAfterTheBody(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newBigFacade(t, 1)
	project := builder.Project("project-0").Repository("repo-0").In(acmeNamespace).Build()
	finding := builder.Finding("f-1").Project("repo-0", project.Name).Tool("scanner", v1alpha1.CategoryCode).In(acmeNamespace).Build()
	f.cluster.store(t, "repo-0", builder.Repository("repo-0").In(acmeNamespace).Build())
	f.cluster.store(t, project.Name, project)
	f.cluster.store(t, "scans", v1alpha1.ScanList{TypeMeta: listOf("ScanList")})
	f.cluster.store(t, "findings", v1alpha1.FindingList{TypeMeta: listOf("FindingList"), Items: []v1alpha1.Finding{*finding}})
	upload := func(first func()) openapi.Upload {
		request := f.request(http.MethodPost, "/v2/repos/repo-0/projects/project-0/scans?dry_run=true", emptySARIF)
		request.Header.Set("Content-Type", openapi.SARIFMediaType)
		request.Body = io.NopCloser(io.MultiReader(pausing(first), request.Body))
		answer, upload := answerOf(f, request), openapi.Upload{}
		if err := json.Unmarshal(answer.Body.Bytes(), &upload); answer.Code != http.StatusOK || err != nil {
			t.Fatalf("the dry run is answered with %d %s: %v", answer.Code, answer.Body, err)
		}
		return upload
	}
	harness.Same(t, "changes for a key that may read findings", 1, len(upload(func() {}).Changes))
	lost := upload(func() {
		f.cluster.changeKey(t, func(key *v1alpha1.APIKeySpec) { key.Scopes = []v1alpha1.Scope{v1alpha1.ScopeFindingsImport} })
		harness.Eventually(t, func(g Gomega) {
			g.Expect(answerOf(f, f.request(http.MethodGet, "/v1/findings", "")).Code).To(Equal(http.StatusForbidden))
		})
	})
	harness.Same(t, "changes for a key that may not any more", 0, len(lost.Changes))
	harness.Same(t, "changes that are only counted", int32(1), lost.UnlistedChanges)
}

// A handler decides by the scopes that its key has once the body has come, whichever way it asks for them.
func TestAHandlerSeesTheScopesThatItsKeyHasAfterTheBody(t *testing.T) {
	t.Parallel() // it mostly waits
	f := newBigFacade(t, 1)
	operations := handlers.Operations(&handlers.Backend{})
	var allowed bool
	var lacking error
	for id := range operations {
		operations[id] = func(_ context.Context, request handlers.Request) (handlers.Response, error) {
			allowed, lacking = request.Allows(v1alpha1.ScopeFindingsRead), request.Require(v1alpha1.ScopeFindingsRead)
			return handlers.Response{}, nil
		}
	}
	routes, err := f.router.handler(operations)
	harness.Must(t, err)
	request := f.request(http.MethodPatch, "/v1/findings/f-1", `{"user_status":"active"}`)
	request.Body = io.NopCloser(io.MultiReader(pausing(func() {
		f.cluster.changeKey(t, func(key *v1alpha1.APIKeySpec) { key.Scopes = []v1alpha1.Scope{v1alpha1.ScopeFindingsTriage} })
		harness.Eventually(t, func(g Gomega) {
			g.Expect(answerOf(f, f.request(http.MethodGet, "/v1/findings", "")).Code).To(Equal(http.StatusForbidden))
		})
	}), request.Body))
	harness.Same(t, "the status", http.StatusOK, answerOf(routes, request).Code)
	if allowed || lacking == nil {
		t.Errorf("for a key that may not read findings any more, Allows returns %t and Require %v", allowed, lacking)
	}
}

func listOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

// pausing is an empty body that calls the function first.
type pausing func()

func (p pausing) Read([]byte) (int, error) {
	p()
	return 0, io.EOF
}

// pausingWriter calls pause after each write, and counts them.
type pausingWriter struct {
	*httptest.ResponseRecorder
	pause  func()
	writes int
}

func (w *pausingWriter) Write(p []byte) (int, error) {
	w.writes++
	w.pause()
	return w.ResponseRecorder.Write(p)
}
