package operations

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Without the zone, a day ends at another time for most readers.
func TestATitleSaysWhoseDayEndsIt(t *testing.T) {
	end := time.Date(2099, 5, 4, 23, 59, 59, 0, time.UTC)
	next := end.Add(time.Second)
	var o client.TriageOperation
	o.Set.ExpiresAt = &end
	harness.Same(t, "title", "Comment, until 2099-05-04 UTC", inTitle(o))
	o.Set.ExpiresAt = &next
	harness.Same(t, "title with an end at midnight", "Comment, until 2099-05-05 00:00 UTC", inTitle(o))
	o.Set.ExpiresAt = &end
	o.Set.RemovesComments = true
	harness.Same(t, "title of a removal", "Remove comments, until 2099-05-04 UTC", inTitle(o))
}

func TestOnlyFiltersOfTheListAreLinked(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"tool", "gosec", "/console/findings?tool=gosec"},
		{"severity", "high,medium", ""},
		{"text", "foo, bar", "/console/findings?text=foo%2C+bar"},
		{"label_selector", "team=x", ""},
		{"class", "", ""},
	} {
		harness.Same(t, c.name, c.want, matching(map[string]string{c.name: c.value}))
	}
}

// The value would otherwise be missing, as if the operation were about all findings.
func TestAnOperationAboutFindingsWithoutAClassSaysSo(t *testing.T) {
	harness.Same(t, "what it is about", []ui.Fact{{Name: "Class", Value: "none"}}, about(map[string]string{"class": ""}))
}

func TestAnOperationIsUndoneByOneThatChangedSomething(t *testing.T) {
	undo := client.TriageOperation{Id: "op-undo", Undo: "op-made", Phase: client.TriageOperationPhaseCompleted, Changed: 3}
	preview, idle := undo, undo
	preview.Phase, idle.Changed = client.TriageOperationPhasePreview, 0
	partly := undo
	partly.Phase = client.TriageOperationPhaseFailed
	for name, c := range map[string]struct {
		of   client.TriageOperation
		want string
	}{"completed": {undo, "op-undo"}, "preview": {preview, ""}, "changed nothing": {idle, ""}, "failed after some": {partly, "op-undo"}} {
		harness.Same(t, name, c.want, undoingOf("op-made", []client.TriageOperation{c.of}).Id)
	}
	again := client.TriageOperation{Id: "op-again", Undo: "op-undo", Phase: client.TriageOperationPhaseCompleted, Changed: 3}
	harness.Same(t, "what undoes it, in force again", "", undoingOf("op-made", []client.TriageOperation{again, undo}).Id)
	mutual := client.TriageOperation{Id: "op-made", Undo: "op-undo", Phase: client.TriageOperationPhaseCompleted, Changed: 3}
	undoingOf("op-made", []client.TriageOperation{mutual, undo}) // must terminate
	failing, skipping := undo, undo
	failing.Failed, skipping.Conflicted = 1, 1
	for name, undoing := range map[string]client.TriageOperation{"failed": failing, "was skipped": skipping, "came later": partly} {
		harness.Same(t, "what "+name+" can be undone once more", false, whole(undoing))
	}
	harness.Same(t, "all is undone", true, whole(undo))
}
