package main

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
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

func TestTheNameOfAnIssueInPlaceOfAFinding(t *testing.T) {
	scheme := testenv.NewScheme()
	harness.Must(t, corev1.AddToScheme(scheme))
	sample := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "org-sample"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(sample).Build()
	none := apierrors.NewNotFound(schema.GroupResource{}, "i-abcd")
	for namespace, want := range map[string]string{
		"org-sample": "\ni-abcd looks like the name of an issue of a pull request: see kubectl findings triage-issue",
		"org-simple": "Did you mean --organization sample?",
	} {
		err := (&session{client: c, namespace: namespace}).notFound(t.Context(), none, need{kind: "Finding", name: "i-abcd"})
		harness.ErrorContains(t, namespace, err, want)
	}
	s := &session{client: c, namespace: "org-sample"}
	err := s.notFound(t.Context(), none, need{kind: "Finding", name: "i-abcd", role: roleViewer})
	harness.ErrorContains(t, "its history", err, "with kubectl get reviewissue i-abcd -n org-sample -o yaml")
	err = s.notFound(t.Context(), none, need{kind: kindOperation, name: "mute-x7k2pd"})
	harness.ErrorContains(t, "an operation", err, "\nA finished operation is removed after 30 days, or the time in spec.r")
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
