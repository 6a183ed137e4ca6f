package attack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const (
	// maxLate is how long a neighbour's request may take, and how long its writes may take to
	// become visible.
	maxLate = 15 * time.Second
	// neighbourRounds is the minimum number of times that it reads and writes.
	neighbourRounds = 10
)

// neighbour is a well-behaved organization beside attackers. Its requests over REST, and its people's and its
// scanner's requests to the Kubernetes API, must succeed in time and never show outdated data.
type neighbour struct {
	*tenant
	// class is the class of the attacks that must not affect it.
	class                    string
	viewer, triager, scanner client.Client
	// comment is the number in the last shown comment.
	comment atomic.Int64
}

func newNeighbour(t *testing.T, class string) *neighbour {
	t.Helper()
	b := &neighbour{tenant: newOrganization(t, "neighbour-"+letters(6), plenty), class: class}
	b.nameAll()
	target.env.Create(t, b.repository(), b.project(), b.finding(0), b.review())
	all := b.members(t)
	b.viewer, b.triager, b.scanner = all.as(t, "viewer"), all.as(t, "triager"), all.as(t, "scanner account")
	harness.Must(t, b.awaitShown(t, b.findingPath(), b.marker))
	return b
}

// worksDuring reads and writes until attack returns.
func (b *neighbour) worksDuring(t *testing.T, attack func()) {
	t.Helper()
	done := make(chan struct{})
	var clients sync.WaitGroup
	clients.Go(func() { b.reads(t, done) })
	clients.Go(func() { b.writes(t, done) })
	defer clients.Wait()
	defer close(done)
	attack()
}

// each calls round until done is closed, and at least neighbourRounds times.
func each(done <-chan struct{}, round func(n int)) {
	for n := 1; ; n++ {
		round(n)
		select {
		case <-done:
			if n >= neighbourRounds {
				return
			}
		default:
		}
	}
}

func (b *neighbour) reads(t *testing.T, done <-chan struct{}) {
	t.Helper()
	each(done, func(int) {
		for _, path := range []string{"/v1/findings", "/v2/repos", "/v1/reviews", b.projectPath()} {
			b.ask(t, shot{method: http.MethodGet, path: path}, b.marker)
		}
		// A comment that was shown must not disappear again.
		shown := b.comment.Load()
		a := b.ask(t, shot{method: http.MethodGet, path: b.findingPath()}, b.marker)
		attempt(t, b.class, commentIn(a) >= shown, "comment %d was shown before: %s", shown, a)
		b.kubectl(t, "list findings", func(ctx context.Context) error {
			return b.viewer.List(ctx, &v1alpha1.FindingList{}, client.InNamespace(b.namespace))
		})
		b.kubectl(t, "get a project", func(ctx context.Context) error {
			return b.viewer.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: b.ids["project"]}, &v1alpha1.Project{})
		})
	})
}

func (b *neighbour) writes(t *testing.T, done <-chan struct{}) {
	t.Helper()
	finding := b.finding(0)
	each(done, func(n int) {
		over := int64(2*n - 1)
		b.ask(t, shot{method: http.MethodPatch, path: "/v2/findings/" + finding.Name, body: fmt.Sprintf(`{"comments":%q}`, b.commentText(over))}, b.commentText(over))
		b.shows(t, b.findingPath(), over)
		b.kubectl(t, "triage", func(ctx context.Context) error {
			patch := fmt.Sprintf(`{"spec":{"triage":{"comments":%q}}}`, b.commentText(over+1))
			return b.triager.Patch(ctx, b.finding(0), testenv.MergePatch(patch))
		})
		b.shows(t, b.findingPath(), over+1)
		made := b.finding(n)
		made.Spec.Triage = builder.Finding("f").Build().Spec.Triage // a scanner sets none
		b.kubectl(t, "report a finding", func(ctx context.Context) error { return b.scanner.Create(ctx, made) })
		err := b.awaitShown(t, strings.Replace(b.findingPath(), finding.Name, made.Name, 1), b.marker)
		attempt(t, b.class, err == nil, "a new finding: %v", err)
	})
}

const commentPrefix = "comment-number-"

func (b *neighbour) commentText(n int64) string {
	return fmt.Sprintf("%s%08d %s", commentPrefix, n, b.marker)
}

// commentIn returns the number of the comment that an answer shows, or 0.
func commentIn(a *answer) int64 {
	_, rest, _ := strings.Cut(string(a.body), commentPrefix)
	var n int64
	if _, err := fmt.Sscanf(rest, "%08d", &n); err != nil {
		return 0
	}
	return n
}

// ask sends a request that must succeed in time; the answer must contain the text and no outdated
// data.
func (b *neighbour) ask(t *testing.T, s shot, want string) *answer {
	t.Helper()
	a, err := target.facade.try(t, b.token, s)
	if err != nil {
		attempt(t, b.class, false, "%s: %v", s, err)
		return &answer{}
	}
	age := a.header.Get("X-Data-Age")
	attempt(t, b.class, a.status == http.StatusOK && a.took <= maxLate && age == "" && a.holds(want),
		"%s: after %s, with data of age %q: %s", s, a.took, age, a)
	return a
}

// kubectl runs a request to the Kubernetes API that must succeed in time.
func (b *neighbour) kubectl(t *testing.T, what string, do func(context.Context) error) {
	t.Helper()
	start := time.Now()
	err := do(t.Context())
	took := time.Since(start)
	attempt(t, b.class, err == nil && took <= maxLate, "%s: after %s: %v", what, took, err)
}

// shows expects that a comment becomes visible in time.
func (b *neighbour) shows(t *testing.T, path string, n int64) {
	t.Helper()
	err := b.awaitShown(t, path, b.commentText(n))
	if attempt(t, b.class, err == nil, "comment %d: %v", n, err) {
		b.comment.Store(n)
	}
}

// awaitShown waits until REST shows the text under the path.
func (b *neighbour) awaitShown(t *testing.T, path, text string) error {
	t.Helper()
	var last *answer
	err := wait.PollUntilContextTimeout(t.Context(), interval, maxLate, true, func(context.Context) (bool, error) {
		a, err := target.facade.try(t, b.token, shot{method: http.MethodGet, path: path})
		if err != nil {
			return false, err
		}
		last = a
		if a.status >= http.StatusInternalServerError || a.header.Get("X-Data-Age") != "" {
			return false, errors.New("failed, or shows old data")
		}
		return a.status == http.StatusOK && a.holds(text), nil
	})
	if err != nil {
		return fmt.Errorf("%s does not show %q: %w: %s", path, text, err, last)
	}
	return nil
}
