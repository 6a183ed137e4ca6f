package import_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
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
	must := func(err error) {
		t.Helper()
		harness.Must(t, err)
	}
	// A separate organization, because the quota would block all other tests.
	tight, err := env.NewOrganization(t.Context(), "tight")
	must(err)
	config, err := env.Member(t.Context(), tight, "scanner", testenv.Scanner)
	must(err)
	must(env.Client.Create(t.Context(), builder.Repository(repositoryName).In(tight).URL("https://github.com/acme/shop").Build()))
	must(env.Client.Create(t.Context(), builder.Project("app").In(tight).Repository(repositoryName).Build()))
	c, err := importer.NewClient(config)
	must(err)
	imports := func(results ...result) (*importer.Summary, error) {
		im := importer.New(c, importer.Target{Namespace: tight, Repository: repositoryName, Project: "app"}, importer.Options{Force: true})
		summaries, err := im.Import(t.Context(), collect(t, importer.Choices{}, document(results...)))
		return summaries[0], err
	}
	// The first of these findings is not in the second import, which would close it.
	all := numbered(9)
	_, err = imports(all[:3]...)
	must(err)

	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: tight, Name: "findings-quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/findings.appsec.dev": resource.MustParse("5")}},
	}
	must(env.Client.Create(t.Context(), quota))
	untilInForce := func(limit string) {
		t.Helper()
		inForce := func(ctx context.Context) (bool, error) {
			err := env.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota)
			hard, there := quota.Status.Hard["count/findings.appsec.dev"]
			return there && hard.String() == limit, err
		}
		if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, inForce); err != nil {
			t.Fatalf("the quota of %s is not in force: %v: %+v", limit, err, quota.Status)
		}
	}
	untilInForce("5")

	_, err = imports(all[1:]...)
	if err == nil || !strings.Contains(err.Error(), "used up its quota") || !strings.Contains(err.Error(), "spec.quotas") {
		t.Fatalf("error is %v; want one that says that the quota is used up, and where to raise it", err)
	}
	findings := &v1alpha1.FindingList{}
	must(env.Client.List(t.Context(), findings, client.InNamespace(tight)))
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
	scans := &v1alpha1.ScanList{}
	must(env.Client.List(t.Context(), scans, client.InNamespace(tight)))
	failed := 0
	for _, scan := range scans.Items {
		if scan.Spec.Outcome == v1alpha1.ScanFailed && strings.Contains(scan.Spec.Message, "quota") {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d scans have failed for the quota, want 1", failed)
	}

	env.Patch(t, quota, `{"spec":{"hard":{"count/findings.appsec.dev":"50"}}}`)
	untilInForce("50")
	summary, err := imports(all[1:]...)
	must(err)
	if missing := len(all) - there; summary.Created != missing || summary.Closed != 1 {
		t.Errorf("%+v, want the %d that were missing created and the first closed", *summary, missing)
	}
}
