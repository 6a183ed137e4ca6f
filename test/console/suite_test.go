// Package console_test uses the console as people do: in a real browser, on the real service. Tests of which a person
// does more than a few steps run in parallel: they mostly wait for the page.
package console_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var (
	env *testenv.Environment
	// base is the URL of the service, without a path.
	base string
)

func TestMain(m *testing.M) {
	harness.AtATime(4) // a test takes a tenth of its time in processor time
	harness.Main(m, start)
}

// start starts the service with the console.
func start(ctx context.Context, stops *harness.Stops) error {
	stops.Add(stopBrowser)
	folder, err := stops.Folder("console-")
	if err != nil {
		return err
	}
	if env, err = testenv.Start(stops); err != nil {
		return err
	}
	operator := harness.Operator{Folder: folder}
	keys, err := operator.CursorKeys()
	if err != nil {
		return err
	}
	controller, facade, err := env.Operator(ctx, operator, "--console", keys)
	if err != nil {
		return err
	}
	base = "http://" + facade.Address
	return stops.Start(ctx, controller, facade)
}

// organization belongs to one test.
type organization struct {
	testing.TB
	name, namespace string
}

var made atomic.Int32

func newOrganization(t testing.TB) *organization {
	t.Helper()
	name := fmt.Sprintf("console-%d", made.Add(1))
	o := &organization{TB: t, name: name, namespace: env.Reconciled(t, builder.Organization(name).Build())}
	env.Create(t, builder.Repository("shop").URL("https://github.com/acme/shop").
		Mutate(func(r *v1alpha1.Repository) { r.Spec.Provider = "github" }).In(o.namespace).Build(), builder.Project("web").Repository("shop").In(o.namespace).Build())
	return o
}

// key creates an API key and returns its token.
func (o *organization) key(name string, scopes ...v1alpha1.Scope) (token string) {
	o.Helper()
	token = env.Key(o, builder.APIKey(name).Scopes(scopes...).In(o.namespace).Build())
	harness.Eventually(o.TB, func(g Gomega) {
		g.Expect(askREST(o, token, http.MethodGet, "/v2/whoami", "").Status).To(Equal(http.StatusOK))
	})
	return token
}

// askREST sends a request to the REST API.
func askREST(t testing.TB, key, method, path, body string) *apiclient.Answer {
	t.Helper()
	answer, err := (&apiclient.Client{Base: base, Token: key}).Do(t.Context(), method, path, body)
	harness.Must(t, err)
	return answer
}

// has creates findings in the organization's project, and waits until their states are recorded.
func (o *organization) has(findings ...*builder.FindingBuilder) {
	o.Helper()
	objects := make([]client.Object, len(findings))
	for i, f := range findings {
		objects[i] = f.Project("shop", "web").In(o.namespace).Build()
	}
	env.CreateAtOnce(o, objects...)
	harness.Eventually(o.TB, func(g Gomega) {
		for _, f := range findings {
			g.Expect(findingstate.IsRecorded(testenv.Get(o.TB, g, env, f.Build()))).To(BeTrue())
		}
	})
}

func (o *organization) finding(name string) *v1alpha1.Finding {
	o.Helper()
	return env.Finding(o, o.namespace, name)
}

// visitor requests pages without a browser, as an attacker's program might.
type visitor struct {
	testing.TB
	http.Client
}

func newVisitor(t testing.TB) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	harness.Must(t, err)
	return &visitor{t, http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

// newUser returns a visitor who has logged in with the key.
func newUser(t testing.TB, key string) *visitor {
	t.Helper()
	v := newVisitor(t)
	v.logsIn(key)
	return v
}

// reply is the answer to a visitor.
type reply struct {
	*http.Response
	text string
}

// asks sends a request with those headers, given as names and values. With a form, the request is a
// POST.
func (v *visitor) asks(path string, form url.Values, headers ...string) reply {
	v.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	request, err := http.NewRequestWithContext(v.Context(), method, base+path, strings.NewReader(body))
	harness.Must(v, err)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := v.Do(request)
	harness.Must(v, err)
	content, err := io.ReadAll(answer.Body)
	harness.Must(v, errors.Join(err, answer.Body.Close()))
	return reply{answer, string(content)}
}

// logsIn logs in with the key, and returns the cookies of the session.
func (v *visitor) logsIn(key string) []*http.Cookie {
	v.Helper()
	answer := v.asks("/console/login", url.Values{"key": {key}})
	if answer.StatusCode != http.StatusSeeOther {
		v.Fatalf("the login answered with %s", answer.Status)
	}
	return answer.Cookies()
}
