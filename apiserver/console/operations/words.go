package operations

import (
	"maps"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/client"
)

// decision says in words what the operation decides.
func decision(o client.TriageOperation) string {
	if o.Undo != "" {
		return "Undo " + o.Undo
	}
	words := []string{"Comment"}
	if o.Set.UserStatus != nil {
		words[0] = map[string]string{"muted": "Mute", "active": "Confirm", "open": "Open again"}[string(*o.Set.UserStatus)]
	}
	if o.Set.Reason != nil {
		words = append(words, strings.ReplaceAll(string(*o.Set.Reason), "-", " "))
	}
	if o.Set.ExpiresAt != nil {
		words = append(words, "until "+o.Set.ExpiresAt.UTC().Format("2006-01-02"))
	}
	return strings.Join(words, ", ")
}

// phase says in a word how far the operation is.
func phase(o client.TriageOperation) string {
	switch o.Phase {
	case client.TriageOperationPhaseSelecting:
		return "collecting"
	case client.TriageOperationPhaseRunning:
		return "deciding"
	}
	return string(o.Phase)
}

// working reports whether the operation goes on by itself.
func working(o client.TriageOperation) bool {
	return o.Phase == client.TriageOperationPhaseSelecting || o.Phase == client.TriageOperationPhaseRunning
}

func done(o client.TriageOperation) int32 { return o.Changed + o.Unchanged + o.Conflicted + o.Failed }

func sorted(filters map[string]string) []string { return slices.Sorted(maps.Keys(filters)) }
