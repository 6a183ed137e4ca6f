// Package sealed encrypts texts that a client keeps for the service: nobody else can read, create or change
// them.
package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
)

var encoding = base64.RawURLEncoding.Strict()

// Seal encrypts the content into a text that opens only with the same key, of 32 bytes, and for the same
// purpose.
func Seal(key, content []byte, purpose string) string {
	//nolint:gosec // the cipher makes a nonce of its own and puts it before what it seals
	return encoding.EncodeToString(newCipher(key).Seal(nil, nil, content, []byte(purpose)))
}

// Open decrypts a text that was sealed with one of the keys for the purpose. ok is false for any other text.
func Open(keys [][]byte, text, purpose string) (content []byte, ok bool) {
	sealed, err := encoding.DecodeString(text)
	if err != nil {
		return nil, false
	}
	for _, key := range keys {
		if content, err := newCipher(key).Open(nil, nil, sealed, []byte(purpose)); err == nil {
			return content, true
		}
	}
	return nil, false
}

func newCipher(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the block cipher is AES
	}
	return aead
}
