package handlers

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/changes"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/sealed"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
)

// EventStreams limits open streams of events: a few per key, and an eighth of all per organization. Each takes a
// connection and a goroutine.
type EventStreams struct{ ofKeys, ofOrganizations *slots.Slots }

// NewEventStreams returns the slots of the process.
func NewEventStreams() *EventStreams {
	const total, perOrganization, perKey = 1024, 128, 4
	return &EventStreams{slots.New(total, perKey), slots.New(total, perOrganization)}
}

// InUse returns how many slots are taken.
func (s *EventStreams) InUse() int { return s.ofOrganizations.InUse() }

// Take takes a slot. The caller gives it back by calling free.
func (s *EventStreams) Take(organization, key string) (free func(), err error) {
	freeKey, err := s.ofKeys.Take(key)
	if errors.Is(err, slots.ErrOrganization) { // here the owner is a key
		return nil, problem.Busy("the API key has too many streams open", streamRetryAfter)
	}
	if err != nil {
		return nil, problem.Busy("too many streams are open", streamRetryAfter)
	}
	freeOrganization, err := s.ofOrganizations.Take(organization)
	if err != nil {
		freeKey()
		return nil, problem.Busy("the organization has too many streams open", streamRetryAfter)
	}
	return func() {
		freeOrganization()
		freeKey()
	}, nil
}

// streamRetryAfter is when to try again for a stream. It is a guess, because nobody knows when a stream ends.
const streamRetryAfter = 30 * time.Second

// scopeOf holds the scope that each kind of change requires.
var scopeOf = [changes.Kinds]v1alpha1.Scope{
	changes.Findings: v1alpha1.ScopeFindingsRead, changes.Operations: v1alpha1.ScopeFindingsRead,
	changes.Scans: v1alpha1.ScopeFindingsRead, changes.Reviews: v1alpha1.ScopeReviewsRead,
	changes.Deliveries: v1alpha1.ScopeWebhooksRead,
}

// StreamEvents is an operation of the contract.
func (b *Backend) StreamEvents(_ context.Context, request Request) (Response, error) {
	kinds, err := kindsFor(request)
	if err != nil {
		return Response{}, err
	}
	places := b.places(request.Organization)
	// An invalid position, or one of another organization, is before all remembered changes.
	var after *changes.Position
	if request.LastEventID != "" {
		at, _ := places.read(request.LastEventID)
		after = &at
	}
	once, free := request.Query.Get("follow") == "false", func() {}
	if !once {
		if free, err = b.EventStreams.Take(request.Organization, string(request.KeyUID)); err != nil {
			return Response{}, err
		}
	}
	reader, err := b.Model.Changes(request.Organization, kinds, after)
	if err != nil {
		free()
		return Response{}, Unavailable(err)
	}
	return Response{Events: &Events{
		Reader: reader, Kinds: kinds, ID: places.write, Once: once, Close: free,
	}}, nil
}

// kindsFor returns the requested kinds, by default all that the key may read.
func kindsFor(request Request) (kinds changes.Set, err error) {
	given := request.Query.Get("kinds")
	asked := listed(given)
	unknown := func(name string) bool { return !slices.Contains(kindNames, name) }
	if slices.ContainsFunc(asked, unknown) || len(asked) == 0 && given != "" {
		return 0, problem.InvalidQuery("kinds must be of " + strings.Join(kindNames, ", ") + ", with commas between them").In("kinds")
	}
	for k := range changes.Kinds {
		at := slices.Index(asked, k.String())
		allowed := request.Allows(scopeOf[k])
		switch {
		case at < 0 && len(asked) > 0:
			continue
		case at >= 0 && !allowed:
			return 0, request.Require(scopeOf[k])
		case allowed:
			kinds = kinds.With(k)
		}
	}
	if kinds == 0 {
		return 0, request.Require(v1alpha1.ScopeFindingsRead)
	}
	return kinds, nil
}

var kindNames = func() (names []string) {
	for k := range changes.Kinds {
		names = append(names, k.String())
	}
	return names
}()

// placePurpose is the purpose for which the keys of positions are derived.
const placePurpose = "findings-operator event id 1"

// places encodes positions as event ids for one organization. They are encrypted, because the versions in them would
// reveal how much is written for all organizations together.
type places struct {
	// keys returns the current keys: a stream may be older than the keys, and its ids must outlive it.
	keys  func() [][]byte
	bound string
}

func (b *Backend) places(organization string) places {
	keys := func() [][]byte { return b.Cursors.Derive(placePurpose) }
	return places{keys: keys, bound: placePurpose + " " + organization}
}

func (p places) write(at changes.Position) string {
	var content []byte
	for _, version := range at {
		content = binary.AppendUvarint(content, version)
	}
	return sealed.Seal(p.keys()[0], content, p.bound)
}

// maxPlaceBytes is longer than any encoded position.
const maxPlaceBytes = 256

// read returns false and the zero position for a string that write did not produce.
func (p places) read(id string) (at changes.Position, ok bool) {
	if len(id) > maxPlaceBytes {
		return changes.Position{}, false
	}
	content, ok := sealed.Open(p.keys(), id, p.bound)
	for k := range at {
		version, n := binary.Uvarint(content)
		if !ok || n <= 0 {
			return changes.Position{}, false
		}
		at[k], content = version, content[n:]
	}
	return at, len(content) == 0
}
