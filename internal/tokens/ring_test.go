package tokens

import (
	"fmt"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestRingRoundTripsAtEveryStepOfARotation(t *testing.T) {
	first, second := newKey(t), newKey(t)
	cases := map[string]Ring{
		"at rest":    {Signer: first},
		"prepared":   {Signer: first, Next: second},
		"overlap":    {Signer: second, Previous: first.Public()},
		"unexpected": {Signer: first, Next: second, Previous: newKey(t).Public()},
	}
	for name, ring := range cases {
		data, err := EncodeRing(ring)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back, err := DecodeRing(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if back.Signer.ID() != ring.Signer.ID() || back.Next.ID() != ring.Next.ID() {
			t.Errorf("%s: signs by %s and then %s, want %s and %s", name, back.Signer.ID(), back.Next.ID(), ring.Signer.ID(), ring.Next.ID())
		}
		harness.Same(t, fmt.Sprintf("%s: published", name), ring.Public().IDs(), back.Public().IDs())
	}
}

// Of the previous key only the public half is kept: a later reader of the Secret cannot sign with
// it.
func TestRingKeepsNoPrivateKeyThatSignsNoMore(t *testing.T) {
	first, second := newKey(t), newKey(t)
	data, err := EncodeRing(Ring{Signer: second, Previous: first.Public()})
	harness.Must(t, err)
	private, err := encodeSigningKey(first)
	harness.Must(t, err)
	for name, text := range data {
		if string(text) == string(private) {
			t.Errorf("%s holds the private key of before", name)
		}
	}
	ring, err := DecodeRing(data)
	harness.Must(t, err)
	_, err = ring.Public().VerifySignature(sign(t, first, someClaims()))
	harness.NoError(t, "a token of the key before", err)
}

func TestSpoiltRingIsRefusedAndNotQuoted(t *testing.T) {
	for _, name := range []string{SigningKeyDataKey, NextKeyDataKey, PreviousKeyDataKey} {
		data, err := EncodeRing(Ring{Signer: newKey(t), Next: newKey(t), Previous: newKey(t).Public()})
		harness.Must(t, err)
		data[name] = []byte("hunter2")
		_, err = DecodeRing(data)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s spoilt: error is %v; want one that names it and quotes nothing", name, err)
		}
	}
	if _, err := EncodeRing(Ring{Signer: newKey(t), Previous: (Ring{Signer: newKey(t), Next: newKey(t)}).Public()}); err == nil {
		t.Error("two keys of before: want an error")
	}
}
