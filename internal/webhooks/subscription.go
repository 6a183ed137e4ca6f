package webhooks

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Subscribes reports whether the endpoint gets an event of that type and time.
//
// An endpoint gets no events from before its creation. Both times are in whole seconds, and an event in the
// second of the creation is sent.
func Subscribes(endpoint *v1alpha1.WebhookEndpoint, eventType string, at time.Time) bool {
	return Enabled(endpoint) &&
		!IsOlder(endpoint, at) &&
		asksFor(endpoint.Spec.Events, eventType)
}

// IsOlder reports whether the time is before the endpoint's creation.
func IsOlder(endpoint *v1alpha1.WebhookEndpoint, at time.Time) bool {
	return at.Before(endpoint.CreationTimestamp.Truncate(time.Second))
}

// MaxServed is how many endpoints of a namespace get events. Each makes one more write of every change. The message of
// their condition repeats the number.
const MaxServed = 50

// Served returns the endpoints of a namespace that get events: the oldest, sorted by age and then by name. It does not
// sort its argument, which may hold thousands.
func Served(endpoints []v1alpha1.WebhookEndpoint) []v1alpha1.WebhookEndpoint {
	served := make([]v1alpha1.WebhookEndpoint, 0, min(len(endpoints), MaxServed)+1)
	for i := range endpoints {
		e := &endpoints[i]
		if len(served) == MaxServed && compareAge(&served[MaxServed-1], e) <= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(served, e, func(s v1alpha1.WebhookEndpoint, e *v1alpha1.WebhookEndpoint) int {
			return compareAge(&s, e)
		})
		served = slices.Insert(served, at, *e)
		served = served[:min(len(served), MaxServed)]
	}
	return served
}

// IsServed reports whether the endpoint is among Served of the endpoints of its namespace, whether or not these already
// include it.
func IsServed(endpoint *v1alpha1.WebhookEndpoint, all []v1alpha1.WebhookEndpoint) bool {
	return CountOlder(endpoint, all) < MaxServed
}

// CountOlder returns how many of the namespace's endpoints Served prefers to this one.
func CountOlder(endpoint *v1alpha1.WebhookEndpoint, all []v1alpha1.WebhookEndpoint) (older int) {
	for i := range all {
		if compareAge(&all[i], endpoint) < 0 {
			older++
		}
	}
	return older
}

// compareAge orders the endpoints of a namespace by age and then by name.
func compareAge(a, b *v1alpha1.WebhookEndpoint) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// Enabled reports whether deliveries are made for the endpoint at all. Events that happen while it
// is disabled are not sent later.
func Enabled(endpoint *v1alpha1.WebhookEndpoint) bool {
	return endpoint.DeletionTimestamp.IsZero() && !endpoint.IsDisabled()
}

// Backlogged reports whether too many deliveries for the endpoint are pending. HoldsBack reports which changes become
// no deliveries then.
func Backlogged(endpoint *v1alpha1.WebhookEndpoint) bool {
	return v1alpha1.IsConditionTrue(endpoint.Status.Conditions, v1alpha1.ConditionBacklogged)
}

// HoldsBack reports whether the change becomes no delivery for the endpoint because too many are pending. Single
// decisions are few, and users wait for them: they are held back only once twice as many are pending.
func HoldsBack(endpoint *v1alpha1.WebhookEndpoint, change v1alpha1.TransitionType, by string) bool {
	return Backlogged(endpoint) && (HoldsDecisionsBack(endpoint) || !IsSingleDecision(change, by))
}

// HoldsDecisionsBack reports whether not even single decisions become deliveries for the endpoint.
func HoldsDecisionsBack(endpoint *v1alpha1.WebhookEndpoint) bool {
	backlog := v1alpha1.FindCondition(endpoint.Status.Conditions, v1alpha1.ConditionBacklogged)
	return Backlogged(endpoint) && backlog.Reason != v1alpha1.ReasonTooManyPending
}

// IsSingleDecision reports whether the change is a decision about one object, by a person, a ServiceAccount or an API
// key. Changes by imports, operations and policies come by the thousand.
func IsSingleDecision(change v1alpha1.TransitionType, by string) bool {
	return change == v1alpha1.TransitionTriaged && !strings.HasPrefix(by, v1alpha1.OperationAuthorPrefix)
}

// eventTypes holds the types by which events are selected. It lacks EventFindingBatch, because a page is selected by
// the types of its entries.
var eventTypes = slices.Concat(
	typesOf(FindingEventPrefix, v1alpha1.TransitionCreated, v1alpha1.TransitionUpdated, v1alpha1.TransitionTriaged,
		v1alpha1.TransitionJudged, v1alpha1.TransitionExpired, v1alpha1.TransitionClosed, v1alpha1.TransitionReopened,
		v1alpha1.TransitionSuppressed, v1alpha1.TransitionUnsuppressed, v1alpha1.TransitionStale, v1alpha1.TransitionFresh),
	typesOf(ScanEventPrefix, v1alpha1.TransitionCompleted),
	typesOf(ReviewEventPrefix, v1alpha1.TransitionUpdated),
	typesOf(ReviewIssueEventPrefix, v1alpha1.TransitionOpened, v1alpha1.TransitionResolved, v1alpha1.TransitionTriaged,
		v1alpha1.TransitionExpired, v1alpha1.TransitionJudged),
	[]string{EventPing},
)

// DeliveredTypes returns the types of the events of this version's deliveries.
func DeliveredTypes() []string { return append(slices.Clone(eventTypes), EventFindingBatch) }

func typesOf(prefix string, transitions ...v1alpha1.TransitionType) (out []string) {
	for _, t := range transitions {
		out = append(out, prefix+"."+string(t))
	}
	return out
}

// Unmatched returns the patterns that match no event of this version.
func Unmatched(patterns []v1alpha1.WebhookEventPattern) (out []string) {
	for _, pattern := range patterns {
		if !slices.ContainsFunc(eventTypes, func(t string) bool { return matches(string(pattern), t) }) {
			out = append(out, string(pattern))
		}
	}
	return out
}

// asksFor reports whether one of the patterns matches the type. Without patterns every type matches.
func asksFor(patterns []v1alpha1.WebhookEventPattern, eventType string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern v1alpha1.WebhookEventPattern) bool {
		return matches(string(pattern), eventType)
	})
}

// matches reports whether the pattern ("*", "finding.*" or "finding.created") matches the type.
func matches(pattern, eventType string) bool {
	if group, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(eventType, group)
	}
	return pattern == eventType
}
