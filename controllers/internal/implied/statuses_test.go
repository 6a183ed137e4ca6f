package implied_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/test/builder"
)

func TestOnlyWhatWasLeftAndHasNotChangedNeedsNoStatus(t *testing.T) {
	f := builder.Finding("f-1").In("org-a").Build()
	f.UID, f.Generation = "one", 1
	statuses := implied.NewStatuses()
	statuses.Leave(f)
	changed, again, other := f.DeepCopy(), f.DeepCopy(), f.DeepCopy()
	changed.Generation = 2
	again.UID = "another"
	other.Name = "f-2"
	for reason, c := range map[string]struct {
		finding *v1alpha1.Finding
		want    bool
	}{
		"left": {f, true}, "changed": {changed, false}, "created again": {again, false}, "not seen yet": {other, false},
	} {
		if got := statuses.Suffice(c.finding); got != c.want {
			t.Errorf("%s: suffices is %t", reason, got)
		}
	}
	statuses.Forget(client.ObjectKeyFromObject(f))
	if statuses.Suffice(f) {
		t.Error("a forgotten finding needs no status")
	}
	var none *implied.Statuses
	none.Forget(client.ObjectKeyFromObject(f))
	if none.Suffice(f) {
		t.Error("a finding needs no status although all are stored")
	}
}
