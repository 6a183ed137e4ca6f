package tokens

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
)

// The keys of the Secret's data beside SigningKeyDataKey, while the signing key is rotated.
const (
	// NextKeyDataKey holds the private key that signs next.
	NextKeyDataKey = "next-ed25519.pem"
	// PreviousKeyDataKey holds the public half of the previous signing key.
	PreviousKeyDataKey = "previous-public.pem"
)

// Ring holds every key of the Secret. Outside of a rotation that is only the signing key. A rotation adds
// the next key, later makes it the signing key and keeps the public half of the previous one, and
// finally drops that: there are never more than two keys.
type Ring struct {
	// Signer signs tokens.
	Signer SigningKey
	// Next is published but signs nothing yet; the zero value for none.
	Next SigningKey
	// Previous no longer signs, but its tokens are still accepted; empty for none.
	Previous KeySet
}

// Public returns the set that is to be published.
func (r Ring) Public() KeySet {
	set := KeySet{keys: maps.Clone(r.Signer.Public().keys)}
	if r.HasNext() {
		maps.Copy(set.keys, r.Next.Public().keys)
	}
	maps.Copy(set.keys, r.Previous.keys)
	return set
}

// HasNext reports whether a key waits to sign.
func (r Ring) HasNext() bool { return r.Next.id != "" }

// HasPrevious reports whether tokens of a previous key are still accepted.
func (r Ring) HasPrevious() bool { return len(r.Previous.keys) > 0 }

// EncodeRing returns the Secret's data for the ring.
func EncodeRing(ring Ring) (map[string][]byte, error) {
	if len(ring.Previous.keys) > 1 {
		return nil, errors.New("encode the signing keys: at most one previous key is allowed")
	}
	data := map[string][]byte{}
	var err error
	if data[SigningKeyDataKey], err = encodeSigningKey(ring.Signer); err != nil {
		return nil, err
	}
	if ring.HasNext() {
		if data[NextKeyDataKey], err = encodeSigningKey(ring.Next); err != nil {
			return nil, err
		}
	}
	for _, public := range ring.Previous.keys {
		if data[PreviousKeyDataKey], err = encodePublicKey(public); err != nil {
			return nil, fmt.Errorf("encode the previous signing key: %w", err)
		}
	}
	return data, nil
}

// DecodeRing reads the ring from the Secret's data. No error text holds any of it.
func DecodeRing(data map[string][]byte) (Ring, error) {
	var (
		ring Ring
		err  error
	)
	if ring.Signer, err = decodeSigningKey(data, SigningKeyDataKey); err != nil {
		return Ring{}, err
	}
	if _, found := data[NextKeyDataKey]; found {
		if ring.Next, err = decodeSigningKey(data, NextKeyDataKey); err != nil {
			return Ring{}, err
		}
	}
	if text, found := data[PreviousKeyDataKey]; found {
		public, err := parsePublicKey(text)
		if err != nil {
			return Ring{}, fmt.Errorf("data key %q: %w", PreviousKeyDataKey, err)
		}
		ring.Previous = KeySet{keys: map[string]ed25519.PublicKey{thumbprint(public): public}}
	}
	return ring, nil
}
