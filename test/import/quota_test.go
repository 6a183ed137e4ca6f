package import_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// An import that exceeds the quota explains what to do, closes nothing, and is completed by the
// next import.
func TestAnImportThatMeetsTheQuotaClosesNothing(t *testing.T) {
	env.StartControllerManager(t, "resourcequota-controller")
	// A separate organization, because the quota would block all other tests.
	tight := env.Organization(t, "tight")
	config, err := env.Member(t.Context(), tight, "scanner", testenv.Scanner)
	harness.Must(t, err)
	env.Create(t, builder.Repository(repositoryName).In(tight).URL("https://github.com/acme/shop").Build())
	env.Create(t, builder.Project("app").In(tight).Repository(repositoryName).Build())
	c := newClient(t, config)
	imports := func(results ...builder.Result) (*importer.Summary, error) {
		im := importer.New(c, importer.Target{Namespace: tight, Repository: repositoryName, Project: "app"}, importer.Options{Force: true})
		summaries, err := im.Import(t.Context(), collect(t, importer.Choices{}, document(results...)))
		return summaries[0], err
	}
	// The first of these findings is not in the second import, which would close it.
	all := numbered(9)
	_, err = imports(all[:3]...)
	harness.Must(t, err)

	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: tight, Name: "findings-quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/findings.appsec.dev": resource.MustParse("5")}},
	}
	env.Create(t, quota)
	untilInForce := func(limit string) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			hard := testenv.Get(t, g, env, quota).Status.Hard["count/findings.appsec.dev"]
			g.Expect(hard.String()).To(Equal(limit), "the quota is not in force")
		})
	}
	untilInForce("5")

	_, err = imports(all[1:]...)
	harness.ErrorContains(t, "the import", err, "used up its quota", "spec.quotas of the Organization, and try again")
	findings := testenv.List(t, NewWithT(t), env, &v1alpha1.FindingList{}, client.InNamespace(tight))
	for _, f := range findings.Items {
		if f.Spec.Closed != nil {
			t.Errorf("finding %s was closed by half an import", f.Name)
		}
	}
	// A create that the quota refuses during concurrent creates may still be counted for a while.
	there := len(findings.Items)
	if there < 3 || there > 5 {
		t.Errorf("%d findings, want those from before and as many as there may be", there)
	}
	scans := testenv.List(t, NewWithT(t), env, &v1alpha1.ScanList{}, client.InNamespace(tight))
	wantOneFailed(t, scans.Items, "quota")

	env.Patch(t, quota, `{"spec":{"hard":{"count/findings.appsec.dev":"50"}}}`)
	untilInForce("50")
	summary, err := imports(all[1:]...)
	harness.Must(t, err)
	if missing := len(all) - there; summary.Created != missing || summary.Closed != 1 {
		t.Errorf("%+v, want the %d that were missing created and the first closed", *summary, missing)
	}
}
