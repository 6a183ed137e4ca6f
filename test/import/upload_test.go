package import_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// only returns the project's only scan.
func (p *project) only(g Gomega) v1alpha1.Scan {
	p.Helper()
	scans := p.scans()
	g.Expect(scans).To(HaveLen(1))
	return scans[0]
}

func TestAScanThatRunsTellsItsUploadItsHeartbeatAndHowFarItIs(t *testing.T) {
	p := newProject(t)
	upload := &v1alpha1.ScanUpload{ID: "u-1", Scans: 1}
	key := "apikey/" + strings.Repeat("k", 253) // the longest name of a key
	var once sync.Once
	var recorded []string
	_, err := p.tryImport(importer.Options{
		Upload: upload, ImportedBy: key, ProgressInterval: 50 * time.Millisecond,
		OnRecorded: func(_ *importer.Batch, scan string) { recorded = append(recorded, scan) },
		OnProgress: func(done, _ int) {
			if done == 0 {
				return
			}
			once.Do(func() { // all others wait for this one
				harness.Eventually(t, func(g Gomega) {
					spec := p.only(g).Spec
					g.Expect(spec.Progress).To(Equal(&v1alpha1.ScanProgress{Done: 1, Total: 30}))
					g.Expect(spec.Upload).To(Equal(upload))
					g.Expect(spec.ImportedBy).To(Equal(key))
					lease := testenv.Get(p, g, env, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: spec.Lease.Name}})
					g.Expect(ptr.Deref(lease.Spec.HolderIdentity, "")).To(Equal(spec.Lease.Holder))
				})
			})
		},
	}, collect(t, importer.Choices{}, document(append(numbered(30), numbered(1)...)...)))
	harness.Must(p, err)
	scan := p.only(NewWithT(t))
	harness.Same(t, "progress at the end", &v1alpha1.ScanProgress{Done: 30, Total: 30}, scan.Spec.Progress)
	harness.Same(t, "skipped",
		[]v1alpha1.ScanSkip{{Reason: "identical to another result", Count: 1}}, scan.Spec.SkippedBecause)
	harness.Same(t, "recorded scans", []string{scan.Name}, recorded)
}
