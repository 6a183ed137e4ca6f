package attack

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	sarifType = "application/sarif+json"
	// uploadsAtATime is more than an organization's limit of concurrent uploads per replica, and half of the
	// limit for all organizations.
	uploadsAtATime = 6
	// maxOfUploads is how much consecutive uploads may add to the heap, in bytes: the largest accepted file,
	// 64 MiB decompressed, in its raw and parsed form, and garbage.
	maxOfUploads = 700 << 20
)

// uploadPath returns the path for uploads to the organization's project.
func (o *tenant) uploadPath() string { return o.projectPath() + "/scans" }

// mayUpload waits until uploads are accepted.
func (o *tenant) mayUpload(t *testing.T) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		g.Expect(o.upload(t, "?dry_run=true", sarifFile(`"results":[]`)).status).To(Equal(http.StatusOK))
	})
}

func (o *tenant) upload(t *testing.T, query, body string) *answer {
	t.Helper()
	return target.facade.send(t, o.token, shot{method: http.MethodPost, path: o.uploadPath() + query, body: body}.with("Content-Type", sarifType))
}

// An upload refuses or counts the same files as the plugin, and the facade continues to serve
// others.
func TestBombs_UploadedAreRefusedOrCountedWithinBounds(t *testing.T) {
	o := tenants(t)[0]
	o.mayUpload(t)
	watcher := bystand(t)
	memory := follow(t, target.facade)
	size := inForm(4<<20, 48<<20)
	all := append(bombsAt(throughUpload),
		bomb{"gzip in gzip", func(n int) string { return apiclient.Gzip(strings.Repeat(" ", n)) }, "not JSON"},
		bomb{"a thousand times as much", func(int) string { return strings.Repeat(" ", 200<<20) }, "larger than 64 MiB"},
		bomb{"gzip of gzip of gzip", func(int) string { return apiclient.Gzip(apiclient.Gzip(strings.Repeat(" ", 20<<20))) }, "not JSON"},
	)
	for _, b := range all {
		packed := shot{method: http.MethodPost, path: o.uploadPath() + "?dry_run=true", body: apiclient.Gzip(b.content(size))}.
			with("Content-Type", sarifType).with("Content-Encoding", "gzip")
		a, err := target.facade.try(t, o.token, packed)
		if err != nil {
			attempt(t, bombs, false, "%s: %v", b.what, err)
			continue
		}
		if b.says == "" {
			attempt(t, bombs, a.status == http.StatusOK, "%s: %s", b.what, a)
		} else {
			attempt(t, bombs, a.status == http.StatusBadRequest && a.holds(b.says), "%s: %s, want 400 that says %q", b.what, a, b.says)
		}
	}
	memory.bounded(t, bombs, maxOfUploads, "bombs that are uploaded")
	watcher.leave(t, bombs, "bombs that are uploaded")
}

// Uploads whose body does not arrive occupy only their own organization's slots, until they end. Meanwhile a
// third organization uploads, and everybody reads.
func TestInput_UploadsThatDoNotArriveDelayNobodyElse(t *testing.T) {
	t.Parallel() // it mostly waits
	greedy := tenants(t)[:2]
	third := newOrganization(t, "third-"+letters(6), plenty)
	third.nameAll()
	target.env.Create(t, third.repository(), third.project())
	for _, o := range append([]*tenant{third}, greedy...) {
		o.mayUpload(t)
	}
	watcher := bystand(t)
	memory := follow(t, target.facade)
	// Which of the two limits applies depends on the order of arrival.
	refused := func() float64 {
		return target.facade.refusedUploads(t, "organization_limit") + target.facade.refusedUploads(t, "replica_limit")
	}
	before := refused()
	var slow []net.Conn
	begin := func(o *tenant, n int) {
		slow = append(slow, crowd(t, n, "POST "+o.uploadPath()+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "+sarifType+
			"\r\nAuthorization: Bearer "+o.token+"\r\nContent-Length: 60000\r\n\r\n{")...)
	}
	for _, o := range greedy {
		begin(o, uploadsAtATime)
	}
	harness.Eventually(t, func(g Gomega) {
		a := greedy[0].upload(t, "", sarifFile(`"results":[]`))
		if a.status == http.StatusOK {
			begin(greedy[0], 1) // it came before one of them, which was refused
		}
		g.Expect(a.status).To(Equal(http.StatusTooManyRequests), a.String())
	})
	attempt(t, inputOf, refused() > before, "no upload is counted as refused")
	for range 3 {
		start := time.Now()
		a := third.upload(t, "", sarifFile(`"results":[]`))
		attempt(t, inputOf, a.status == http.StatusOK, "an upload beside others that take all that they can: %s after %s", a, time.Since(start))
	}
	closedByThem(t, slow, "uploads that do not come")
	memory.bounded(t, inputOf, atRest+float64(len(slow)*perConnection), "uploads that do not come")
	watcher.leave(t, inputOf, "uploads that do not come")
	for _, o := range greedy {
		harness.Eventually(t, func(g Gomega) {
			g.Expect(o.upload(t, "?dry_run=true", sarifFile(`"results":[]`)).status).To(Equal(http.StatusOK))
		})
	}
}

func (f *facade) refusedUploads(t *testing.T, reason string) float64 {
	t.Helper()
	metrics, err := f.Metrics(t.Context())
	harness.Must(t, err)
	sum, err := harness.Sum(metrics, "findings_uploads_refused_total", map[string]string{"reason": reason})
	harness.Must(t, err)
	return sum
}
