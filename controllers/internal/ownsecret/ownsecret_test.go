package ownsecret

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// A cache that is behind shows an owner that was deleted and created anew. What the new one's Secret holds is in use.
func TestTheSecretOfALaterOwnerOfTheNameStays(t *testing.T) {
	scheme := testenv.NewScheme()
	earlier, later := builder.APIKey("ci").In("org-acme").Build(), builder.APIKey("ci").In("org-acme").Build()
	earlier.UID, later.UID = "1", "2"
	secret := New(later, kube.SuffixedName(later.Name, "-token"))
	harness.Must(t, controllerutil.SetControllerReference(later, secret, scheme))
	stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(later, secret).Build()
	_, err := (Store{stored, stored}).Get(t.Context(), earlier, secret.Name)
	if !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want that the owner does not exist any more", err)
	}
	harness.ErrorContains(t, "get it", err, `apikeys.appsec.dev "ci" not found`) // as the API server words it
	harness.NoError(t, "get the Secret", stored.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	harness.Must(t, stored.Delete(t.Context(), later))
	if _, err := (Store{stored, stored}).Get(t.Context(), earlier, secret.Name); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want that the owner is not found", err)
	}
}
