package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// runModel starts a model as the facade does: with its service account, and with faults in its connection.
func runModel(t *testing.T, f *faults) *readmodel.Model {
	t.Helper()
	g := NewWithT(t)
	config, err := env.Facade(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	f.install(config)
	model, err := readmodel.New(readmodel.Options{Config: config})
	g.Expect(err).NotTo(HaveOccurred())
	harness.Background(t, model.Run)
	g.Eventually(model.Ready, patience).Should(BeTrue())
	return model
}

// While findings are created, changed, deleted and recreated, connections break, watches expire and lists fail.
// Afterwards the model holds the same objects as the API server, in the same versions.
func TestTheReadModelConvergesThroughFaults(t *testing.T) {
	t.Parallel() // it mostly waits
	g := NewWithT(t)
	namespace := env.Organization(t, "converges")
	f := &faults{}
	model := runModel(t, f)
	for i := range 120 {
		name := fmt.Sprintf("f-%d", i%30)
		switch {
		case i < 30 || i%7 == 0:
			err := env.Client.Create(t.Context(), builder.Finding(name).In(namespace).Build())
			g.Expect(client.IgnoreAlreadyExists(err)).NotTo(HaveOccurred())
		case i%3 == 0:
			patched := builder.Finding(name).In(namespace).Build()
			err := env.Client.Patch(t.Context(), patched, testenv.MergePatch(`{"spec":{"triage":{"userStatus":"muted"}}}`))
			if !apierrors.IsNotFound(err) {
				g.Expect(err).NotTo(HaveOccurred())
				_, err = model.Apply(patched)
				g.Expect(err).NotTo(HaveOccurred())
			}
		default:
			err := env.Client.Delete(t.Context(), builder.Finding(name).In(namespace).Build())
			g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
		}
		switch i % 20 {
		case 5:
			f.drop()
		case 10:
			f.expire.Store(3)
			f.drop()
		case 15:
			f.fail.Store(3)
			f.drop()
		}
	}
	g.Eventually(func(g Gomega) {
		if f.expire.Load() > 0 || f.fail.Load() > 0 {
			f.drop() // until each fault has occurred
		}
		g.Expect(f.expire.Load()).To(BeNumerically("<=", 0))
		g.Expect(f.fail.Load()).To(BeNumerically("<=", 0))
	}, "3m", "2s").Should(Succeed())
	g.Eventually(func(g Gomega) {
		list := testenv.List(t, g, env, &v1alpha1.FindingList{}, client.InNamespace(namespace))
		want := make([]string, len(list.Items))
		for i := range list.Items {
			want[i] = list.Items[i].Name + " " + list.Items[i].ResourceVersion
		}
		slices.Sort(want)
		page, err := model.ListFindings("converges", readmodel.FindingQuery{Request: index.Request{Limit: index.Limit{Size: 1000}}})
		g.Expect(err).NotTo(HaveOccurred())
		got := make([]string, len(page.Items))
		for i, item := range page.Items {
			got[i] = item.ID + " " + item.Object().ResourceVersion
		}
		slices.Sort(got)
		g.Expect(got).To(Equal(want))
		g.Expect(page.Total).To(Equal(len(want)))
	}, patience).Should(Succeed())
}

// faults injects faults between a client and the API server.
type faults struct {
	line
	// expire is how many watches get 410 Gone, as after a compaction of etcd.
	expire atomic.Int32
	// fail is how many requests get 503.
	fail atomic.Int32
}

func (f *faults) install(config *rest.Config) {
	config.Dial = f.dial
	harness.Between(config, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
		watches := request.URL.Query().Get("watch") == "true"
		switch {
		case strings.HasSuffix(request.URL.Path, "/findings") && watches && f.expire.Add(-1) >= 0:
			return failed(request, apierrors.NewResourceExpired("too old resource version"))
		case f.fail.Load() > 0 && f.fail.Add(-1) >= 0:
			return failed(request, apierrors.NewServiceUnavailable("down"))
		}
		return next.RoundTrip(request)
	})
}

func failed(request *http.Request, failure *apierrors.StatusError) (*http.Response, error) {
	code, content := harness.Refusal(failure)
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(code)
	err := json.NewEncoder(answer).Encode(content)
	response := answer.Result()
	response.Request = request
	return response, err
}
