package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const (
	// refusalInterval is the minimum time between two announcements of one key's refusals for one reason.
	refusalInterval = 10 * time.Minute
	// maxReceived is how many refusals may wait, for example while an Event is written. More are dropped: a later refusal
	// serves as well.
	maxReceived = 1024
	// refusalsKept bounds the pairs of key and reason whose last announcement is remembered.
	refusalsKept = 16384
	// refusalTimeout bounds one write.
	refusalTimeout = 5 * time.Second
)

// announced holds the reason and the note of the Event for each Reason that the owners of a key can act on. Other
// refusals are about no key, or about a key that no longer exists.
var announced = map[Reason]struct{ reason, note string }{
	ReasonDisabled: {"RefusedDisabled", "A request with this key was refused: spec.disabled is set"},
	ReasonExpired: {"RefusedExpired",
		"A request with this key was refused: the key has expired; its condition Ready says how to get a new token"},
	ReasonRotated: {"RefusedRotated", "A request with an earlier token of this key was refused: read the Secret again"},
	ReasonScope:   {"RefusedScope", "A request with this key was refused: its spec.scopes lack %s"},
}

// refusals announces refused requests as Events on the keys that they were sent with.
//
// A request queues every refusal in the same way, whatever the reason, so that the response time reveals nothing. The
// rest is done in the background.
type refusals struct {
	received chan refused
	// instance identifies this replica, by its hostname.
	instance string

	// due is when a refusal was last announced, or tried to be, per key and reason. Only write uses it.
	due recent[refusedFor]
}

type refusedFor struct {
	key    types.UID
	reason Reason
}

type refused struct {
	refusedFor

	// scope is the missing scope.
	scope v1alpha1.Scope
	at    time.Time
}

func newRefusals() *refusals {
	instance, err := os.Hostname()
	if err != nil {
		instance = v1alpha1.APIFieldManager
	}
	return &refusals{
		received: make(chan refused, maxReceived),
		instance: instance,
		due:      newRecent[refusedFor](refusalInterval),
	}
}

// note queues a refusal for write, or drops it if the queue is full. It never waits.
func (r *refusals) note(what refused) {
	select {
	case r.received <- what:
	default:
	}
}

// write publishes the refusals that are to be announced, until the context ends.
func (r *refusals) write(ctx context.Context, c client.Client, keys *view[*v1alpha1.APIKey], log logr.Logger) {
	each(ctx, r.received, func(next refused) {
		key, ok := keys.get(next.key)
		if !ok || !r.remember(next) {
			return
		}
		// AlreadyExists: another replica has published the same Event. NotFound: the namespace is gone.
		err := r.announce(ctx, c, key, next)
		if err != nil && ctx.Err() == nil && !kube.IsAlreadyExists(err) && !kube.IsNotFound(err) {
			log.Error(err, "Cannot announce that a key was refused", "key", client.ObjectKeyFromObject(key),
				"reason", next.reason)
		}
	})
}

// remember records that a refusal is due, and returns false if it is not to be announced: one with the same key and
// reason was due less than an interval ago, or too many are remembered.
func (r *refusals) remember(next refused) bool {
	if _, ok := announced[next.reason]; !ok || r.due.has(next.refusedFor, next.at) {
		return false
	}
	r.due.sweep(next.at)
	if len(r.due.at) >= refusalsKept {
		return false
	}
	r.due.at[next.refusedFor] = next.at
	return true
}

func (r *refusals) announce(ctx context.Context, c client.Client, key *v1alpha1.APIKey, what refused) error {
	ctx, cancel := context.WithTimeout(ctx, refusalTimeout)
	defer cancel()
	return c.Create(ctx, r.event(key, what))
}

// event contains nothing from the request, so that a sender cannot put text of its own into an Event.
func (r *refusals) event(key *v1alpha1.APIKey, what refused) *eventsv1.Event {
	text := announced[what.reason]
	note := text.note
	if what.reason == ReasonScope {
		note = fmt.Sprintf(note, what.scope)
	}
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: eventName(key, what)},
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "APIKey",
			Namespace: key.Namespace, Name: key.Name, UID: key.UID,
		},
		Type:                corev1.EventTypeWarning,
		Reason:              text.reason,
		Action:              "RefuseRequest",
		Note:                note,
		EventTime:           metav1.NewMicroTime(what.at.UTC()),
		ReportingController: v1alpha1.APIFieldManager,
		ReportingInstance:   r.instance,
	}
}

// eventName is the same in all replicas within one interval, so that together they create one Event.
func eventName(key *v1alpha1.APIKey, what refused) string {
	const hashLength, most = 16, 253
	window := what.at.Unix() / int64(refusalInterval/time.Second)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", key.UID, what.reason, window))
	name := strings.TrimRight(key.Name[:min(len(key.Name), most-hashLength-1)], "-.")
	return name + "." + hex.EncodeToString(sum[:])[:hashLength]
}
