package operations

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/findings"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// titleOf describes what the operation decides, or what it undoes.
func titleOf(o client.TriageOperation, undone operations) string {
	if o.Undo == "" {
		return inTitle(o)
	}
	if before, ok := undone[o.Undo]; ok && before.Undo != "" {
		return "Undo of an undo"
	} else if ok {
		return "Undo: " + inTitle(before)
	}
	return "Undo " + o.Undo
}

// inTitle describes what the operation decides.
func inTitle(o client.TriageOperation) string {
	words := []string{"Comment"}
	switch {
	case o.Set.UserStatus != nil:
		words[0] = decision.Choice(string(*o.Set.UserStatus))
	case o.Set.RemovesComments:
		words[0] = "Remove comments"
	}
	if o.Set.Reason != nil {
		words = append(words, decision.ReasonWord(string(*o.Set.Reason)))
	}
	if o.Set.ExpiresAt != nil {
		words = append(words, "until "+endOf(*o.Set.ExpiresAt))
	}
	return strings.Join(words, ", ")
}

// keepsEnds reports whether findings that are muted or confirmed already keep their end if they are so again.
func keepsEnds(o client.TriageOperation) bool {
	status := ptr.Deref(o.Set.UserStatus, decision.Open)
	return status != decision.Open && o.Set.ExpiresAt == nil
}

// endOf names the end of a decision: by its day if that ends with it.
func endOf(at time.Time) string {
	if at.UTC().Format(time.TimeOnly) == "23:59:59" {
		return at.UTC().Format("2006-01-02 UTC")
	}
	return ui.Instant(at)
}

// phase returns the operation's phase in one word.
func phase(o client.TriageOperation) string {
	switch o.Phase {
	case client.TriageOperationPhaseSelecting:
		return "collecting"
	case client.TriageOperationPhaseRunning:
		return "deciding"
	case client.TriageOperationPhasePreview:
		return "not applied"
	}
	return string(o.Phase)
}

// hasDecided reports whether the operation has ended and may have decided about findings: it may fail after some.
func hasDecided(o client.TriageOperation) bool {
	return o.Phase == client.TriageOperationPhaseCompleted || o.Phase == client.TriageOperationPhaseFailed && o.Changed > 0
}

// working reports whether the operation is in progress.
func working(o client.TriageOperation) bool {
	return o.Phase == client.TriageOperationPhaseSelecting || o.Phase == client.TriageOperationPhaseRunning
}

// undoingOf returns the newest operation that has undone the given one; its id is empty if there is none, or if the
// undo was itself undone.
func undoingOf(id string, all []client.TriageOperation) (undoing client.TriageOperation) {
	for i, o := range all {
		if o.Undo != id || !hasDecided(o) || o.Changed == 0 {
			continue
		}
		// Names may be reused, so two operations may each be the undo of the other.
		others := slices.Delete(slices.Clone(all), i, i+1)
		if undoingOf(o.Id, others).Id == "" {
			return o
		}
	}
	return undoing
}

// whole reports whether the undo is complete: a second undo would change nothing. It might if the first one skipped
// findings: they may have the decision again once a later operation is undone.
func whole(undoing client.TriageOperation) bool {
	skipped := undoing.Failed > 0 || undoing.Conflicted > 0
	return undoing.Id != "" && !skipped && undoing.Phase == client.TriageOperationPhaseCompleted
}

// outcomes maps the REST API's outcomes to words.
var outcomes = map[string]string{
	"changed": "Changed", "unchanged": "Unchanged", "conflicted": "Changed meanwhile", "failed": "Failed",
}

// outcomeFigure returns the count of an outcome, with a link to its findings.
func outcomeFigure(id, outcome string, count int32) ui.Figure {
	return ui.Linked(outcomes[outcome], count, addressOf(id, outcome))
}

func done(o client.TriageOperation) int32 { return o.Changed + o.Unchanged + o.Conflicted + o.Failed }

// total returns the number of findings to decide about, or 0 while it is unknown.
func total(o client.TriageOperation) int32 {
	if o.Phase != client.TriageOperationPhaseRunning {
		return 0
	}
	return o.Matched
}

// tones are the colours for the phases. A preview has none: no action is needed.
var tones = map[client.TriageOperationPhase]ui.Tone{
	client.TriageOperationPhaseCompleted: ui.Good,
	client.TriageOperationPhaseFailed:    ui.Bad,
	client.TriageOperationPhaseSelecting: ui.Going,
	client.TriageOperationPhaseRunning:   ui.Going,
}

// about returns the filters that selected the findings.
func about(filters map[string]string) (facts []ui.Fact) {
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		label, word := findings.Asked(name, filters[name])
		facts = append(facts, ui.Fact{Name: label, Value: cmp.Or(word, "none")}) // findings without a class
	}
	return facts
}

// lists are the filters of an operation that may have several values, separated by commas.
var lists = []string{"status", "user_status", "severity", "category"}

// matching returns the address of the list with the filters, or "" if the console's list does not support them: other
// clients may use selectors, several values of one filter, or empty values.
func matching(filters map[string]string) string {
	values := url.Values{}
	for name, value := range filters {
		several := slices.Contains(lists, name) && strings.Contains(value, ",")
		if !findings.IsFilter(name) || value == "" || several {
			return ""
		}
		values.Set(name, value)
	}
	return page.Address("/console/findings", values)
}

// inWords describes in one line which findings an operation is about.
func inWords(o client.TriageOperation) string {
	var words []string
	for _, f := range about(o.Filters) {
		words = append(words, f.Name+": "+f.Value)
	}
	switch {
	case len(words) > 0:
		return strings.Join(words, ", ")
	case o.Undo != "":
		return "what it has changed"
	}
	return "findings that were selected"
}
