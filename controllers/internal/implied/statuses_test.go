package implied_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestOnlyWhatWasLeftAndHasNotChangedNeedsNoStatus(t *testing.T) {
	f := builder.Finding("f-1").In("org-a").Build()
	f.UID, f.Generation = "one", 1
	statuses := implied.NewStatuses()
	statuses.Leave(f, false)
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
		harness.Same(t, reason, c.want, statuses.Suffice(c.finding))
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

func TestARequestIsForOneFindingAndRemembersWhatItLost(t *testing.T) {
	f := builder.Finding("f-1").In("org-a").Build()
	f.UID = "one"
	again := f.DeepCopy()
	again.UID = "another"
	statuses := implied.NewStatuses()
	statuses.Request(f) // before anybody listens
	var enqueued []types.NamespacedName
	statuses.OnRequest(func(finding types.NamespacedName) { enqueued = append(enqueued, finding) })
	statuses.Lose(f, "d-1")
	statuses.Request(f)
	harness.Same(t, "enqueued", []types.NamespacedName{client.ObjectKeyFromObject(f)}, enqueued)
	for reason, c := range map[string]struct {
		finding         *v1alpha1.Finding
		delivery        string
		requested, lost bool
	}{
		"lost": {f, "d-1", true, true}, "another delivery": {f, "d-2", true, false},
		"created again by the same name": {again, "d-1", false, false},
	} {
		if requested, lost := statuses.IsRequested(c.finding), statuses.IsLost(c.finding, c.delivery); requested != c.requested || lost != c.lost {
			t.Errorf("%s: requested is %t, lost is %t", reason, requested, lost)
		}
	}
	statuses.Request(again)
	if statuses.IsLost(again, "d-1") || statuses.IsRequested(f) {
		t.Error("a request for a finding is one for another of the same name")
	}
	statuses.Forget(client.ObjectKeyFromObject(f))
	if statuses.IsRequested(again) {
		t.Error("a status that is stored is requested")
	}
	var none *implied.Statuses
	none.OnRequest(nil)
	none.Lose(f, "d-1")
	if !none.IsRequested(f) || none.IsLost(f, "d-1") {
		t.Error("where every status is stored, one is left")
	}
}

func TestWhatIsOwedIsOfOneNamespaceAndUntilItIsMade(t *testing.T) {
	here, there := builder.Finding("f-1").In("org-a").Build(), builder.Finding("f-1").In("org-b").Build()
	here.UID, there.UID = "one", "two"
	statuses := implied.NewStatuses()
	for _, f := range []*v1alpha1.Finding{here, there} {
		statuses.Leave(f, true)
	}
	again := here.DeepCopy()
	again.UID = "another"
	if !statuses.Owes(here) || statuses.Owes(again) {
		t.Error("not exactly the finding that was left owes")
	}
	harness.Same(t, "those in org-a that owe", []string{"f-1"}, statuses.Owing("org-a"))
	statuses.Leave(here, false)
	statuses.Forget(client.ObjectKeyFromObject(there))
	if statuses.Owes(here) || statuses.Owes(there) || len(statuses.Owing("org-a"))+len(statuses.Owing("org-b")) > 0 {
		t.Error("what was made, or is forgotten, is still owed")
	}
	var none *implied.Statuses
	if none.Owes(here) || none.Owing("org-a") != nil {
		t.Error("a finding owes although all statuses are stored")
	}
}
