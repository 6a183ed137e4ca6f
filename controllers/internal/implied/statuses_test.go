package implied_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
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

func TestAFindingIsDueOnceAndOnlyOneThatWasLeftCanBeLost(t *testing.T) {
	f := builder.Finding("f-1").In("org-a").Build()
	key, stranger := client.ObjectKeyFromObject(f), types.NamespacedName{Namespace: "org-a", Name: "f-2"}
	statuses := implied.NewStatuses()
	statuses.Lost(stranger)
	if due, _ := statuses.Due(stranger); due || len(statuses.News()) > 0 {
		t.Error("a finding that has a status is due")
	}
	statuses.Leave(f)
	statuses.Lost(key)
	statuses.Store(key)
	if due, told := statuses.Due(key); !due || !told {
		t.Errorf("lost: due is %t, told is %t", due, told)
	}
	if len(statuses.News()) != 1 {
		t.Errorf("%d events wait", len(statuses.News()))
	}
	if got := statuses.NewlyDue(); !slices.Contains(got, key) {
		t.Errorf("newly due are %v", got)
	}
	if got := statuses.NewlyDue(); len(got) > 0 {
		t.Errorf("newly due again are %v", got)
	}
	statuses.Forget(key)
	if due, _ := statuses.Due(key); due {
		t.Error("a finding that has a status now is due")
	}
	var none *implied.Statuses
	none.Store(key)
	none.Lost(key)
	if due, told := none.Due(key); !due || told {
		t.Errorf("where all statuses are stored: due is %t, told is %t", due, told)
	}
}
