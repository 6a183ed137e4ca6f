package tokens

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Where the keys are kept, both in the operator's own namespace.
const (
	// SigningKeySecret is the name of the Secret that holds the Ring.
	SigningKeySecret = "findings-signing-key"
	// SigningKeyDataKey is the key of that Secret's data for the one that signs: PKCS #8 in PEM.
	SigningKeyDataKey = "ed25519.pem"
	// SigningKeysConfigMap is the name of the ConfigMap that holds the public keys, each as
	// PKIX in PEM under its identifier and publicKeySuffix.
	SigningKeysConfigMap = "findings-signing-keys"

	publicKeySuffix = ".pem"
)

// DefaultKeyStaleness is how old the keys that a replica of the REST API has read may become before it refuses all
// requests; its flag --key-staleness sets another age.
const DefaultKeyStaleness = time.Minute

const (
	privateKeyBlock = "PRIVATE KEY"
	publicKeyBlock  = "PUBLIC KEY"
)

// SigningKey signs tokens. The zero value signs nothing.
type SigningKey struct {
	id      string
	private ed25519.PrivateKey
}

// GenerateSigningKey makes a new key from the system's randomness.
func GenerateSigningKey() SigningKey {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // crypto/rand never returns an error: it ends the program
	return newSigningKey(ed25519.NewKeyFromSeed(seed))
}

func newSigningKey(private ed25519.PrivateKey) SigningKey {
	return SigningKey{id: thumbprint(private.Public().(ed25519.PublicKey)), private: private}
}

// ID is the key's identifier: the kid of the tokens that it signs.
func (k SigningKey) ID() string { return k.id }

// Public returns the set that accepts this key's tokens and no others.
func (k SigningKey) Public() KeySet {
	return KeySet{keys: map[string]ed25519.PublicKey{k.id: k.private.Public().(ed25519.PublicKey)}}
}

// encodeSigningKey returns the key as the Secret holds it.
func encodeSigningKey(key SigningKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key.private)
	if err != nil {
		return nil, fmt.Errorf("encode the signing key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateKeyBlock, Bytes: der}), nil
}

// decodeSigningKey reads a key from the Secret's data. No error text holds any of it.
func decodeSigningKey(data map[string][]byte, name string) (SigningKey, error) {
	der, err := decodePEM(data[name], privateKeyBlock)
	if err != nil {
		return SigningKey{}, fmt.Errorf("data key %q: %w", name, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	private, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return SigningKey{}, fmt.Errorf("data key %q: not an Ed25519 key in PKCS #8", name)
	}
	return newSigningKey(private), nil
}

// KeySet holds the public keys whose tokens are accepted, by identifier. The zero value
// accepts none. It is immutable and safe for concurrent use.
type KeySet struct {
	keys map[string]ed25519.PublicKey
}

// Has reports whether the set holds the key. An identifier is the hash of its key, so the
// same identifier is always the same key.
func (s KeySet) Has(id string) bool {
	_, ok := s.keys[id]
	return ok
}

// IDs returns the identifiers in order.
func (s KeySet) IDs() []string { return slices.Sorted(maps.Keys(s.keys)) }

// EncodeKeySet returns the ConfigMap's data for the set.
func EncodeKeySet(set KeySet) (map[string]string, error) {
	data := make(map[string]string, len(set.keys))
	for id, public := range set.keys {
		text, err := encodePublicKey(public)
		if err != nil {
			return nil, fmt.Errorf("encode public key %s: %w", id, err)
		}
		data[id+publicKeySuffix] = string(text)
	}
	return data, nil
}

func encodePublicKey(public ed25519.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: publicKeyBlock, Bytes: der}), nil
}

// DecodeKeySet reads the set from the ConfigMap's data. It returns every valid key,
// and an error that names the invalid ones: one bad entry must not lock everybody out.
func DecodeKeySet(data map[string]string) (KeySet, error) {
	set := KeySet{keys: make(map[string]ed25519.PublicKey, len(data))}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(data)) {
		id, public, err := decodePublicKey(name, data[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("data key %q: %w", name, err))
			continue
		}
		set.keys[id] = public
	}
	return set, errors.Join(errs...)
}

func decodePublicKey(name, text string) (string, ed25519.PublicKey, error) {
	id, ok := strings.CutSuffix(name, publicKeySuffix)
	if !ok {
		return "", nil, fmt.Errorf("does not end in %q", publicKeySuffix)
	}
	public, err := parsePublicKey([]byte(text))
	if err != nil {
		return "", nil, err
	}
	if thumbprint(public) != id {
		return "", nil, errors.New("the name is not the key's thumbprint")
	}
	return id, public, nil
}

func parsePublicKey(text []byte) (ed25519.PublicKey, error) {
	der, err := decodePEM(text, publicKeyBlock)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	public, ok := parsed.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, errors.New("not an Ed25519 public key in PKIX")
	}
	return public, nil
}

func decodePEM(text []byte, blockType string) ([]byte, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != blockType {
		return nil, fmt.Errorf("no PEM block of type %q", blockType)
	}
	if len(bytes.TrimSpace(rest)) != 0 {
		return nil, errors.New("something follows the PEM block")
	}
	return block.Bytes, nil
}

// thumbprint is the JWK thumbprint of RFC 7638 for an Ed25519 key (RFC 8037, appendix A.3).
func thumbprint(public ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(public)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
