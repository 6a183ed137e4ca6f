package main

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestNothingIsLookedUpInANamespaceThatDoesNotExist(t *testing.T) {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
			options ...client.GetOption,
		) error {
			if key.Namespace != "" {
				t.Errorf("%s is looked up", key)
			}
			return c.Get(ctx, key, into, options...)
		},
	}).Build()
	s := &session{client: c, namespace: "org-nowhere"}
	err := s.checkAsked(t.Context(), need{kind: "Repository", name: "shop"}, need{kind: "Project", name: "web"})
	harness.ErrorContains(t, "a namespace that does not exist", err, `there is no namespace "org-nowhere"`)
}

func TestAnOrganizationIsSuggestedForTheNameOfItsNamespace(t *testing.T) {
	scheme := runtime.NewScheme()
	harness.Must(t, corev1.AddToScheme(scheme))
	sample := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-sample"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(sample).Build()
	err := (&session{client: c, namespace: "org-org-sample"}).checkPlace(t.Context())
	harness.ErrorContains(t, "--organization org-sample", err, "Did you mean --organization sample?")
}

func TestARefusedImportKeepsItsReasonWhereThereIsNoNamespace(t *testing.T) {
	s := &session{client: fake.NewClientBuilder().Build(), namespace: "org-nowhere"}
	err := s.explainImport(t.Context(), &importer.RefusedError{Reason: "the scan is too old"}, "import scans")
	for _, want := range []string{"the scan is too old", `there is no namespace "org-nowhere"`} {
		harness.ErrorContains(t, "a refused import", err, want)
	}
	if _, refused := errors.AsType[*importer.RefusedError](err); !refused {
		t.Errorf("%v is no refusal", err)
	}
}
