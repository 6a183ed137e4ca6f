// Package session keeps who a person is in a cookie: the API key that the person pasted once, sealed with a key that
// all replicas share. There is nothing to keep on the server, and the session ends with the API key.
package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"
)

const (
	// CookieName is the session's.
	CookieName = "findings_console"
	// Path is where the browser sends the cookie, and nowhere else.
	Path = "/console/"
	// life is how long a session lasts at most.
	life = 7 * 24 * time.Hour
	// purpose binds what is sealed to this use of the key.
	purpose = "findings-operator console session 1"
	// timeBytes is the length of the time at which a session began.
	timeBytes = 8
	// maxCookieBytes is what browsers keep of a cookie.
	maxCookieBytes = 4096
)

var encoding = base64.RawURLEncoding.Strict()

// Sealer makes and reads sessions. Keys returns keys of 32 bytes for a purpose, the newest first.
type Sealer struct {
	Keys func(purpose string) [][]byte
}

// Cookie returns the cookie of a session that begins now. Secure keeps it from being sent without TLS.
func (s Sealer) Cookie(apiKey string, secure bool, now time.Time) *http.Cookie {
	content := binary.BigEndian.AppendUint64(nil, uint64(now.Unix())) //nolint:gosec // the clock is past 1970
	content = append(content, apiKey...)
	//nolint:gosec // the cipher makes a nonce of its own and puts it before what it seals
	sealed := newCipher(s.Keys(purpose)[0]).Seal(nil, nil, content, []byte(purpose))
	return cookie(encoding.EncodeToString(sealed), secure, int(life/time.Second))
}

// End returns the cookie that ends a session in the browser.
func End() *http.Cookie { return cookie("", false, -1) }

func cookie(value string, secure bool, maxAge int) *http.Cookie {
	// Lax: a link to a finding that somebody shares must not end in the login page.
	//nolint:gosec // not secure where the service itself is not
	return &http.Cookie{Name: CookieName, Value: value, Path: Path, MaxAge: maxAge,
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode}
}

// APIKey returns the key of the request's session, "" if there is none that is valid.
func (s Sealer) APIKey(r *http.Request, now time.Time) string {
	_, key := s.session(r, now)
	return key
}

// session returns the request's session and the key that it holds. Another site may set cookies for a domain that both
// are in: what does not open is not the console's, and of two that do neither is.
func (s Sealer) session(r *http.Request, now time.Time) (value, apiKey string) {
	for _, cookie := range r.CookiesNamed(CookieName) {
		key := s.open(cookie.Value, now)
		switch {
		case key == "":
		case apiKey != "":
			return "", ""
		default:
			value, apiKey = cookie.Value, key
		}
	}
	return value, apiKey
}

// open returns the key that a session holds, "" if it is none or is over.
func (s Sealer) open(value string, now time.Time) string {
	sealed, err := encoding.DecodeString(value)
	if err != nil || len(value) > maxCookieBytes {
		return ""
	}
	for _, key := range s.Keys(purpose) {
		content, err := newCipher(key).Open(nil, nil, sealed, []byte(purpose))
		if err != nil || len(content) < timeBytes {
			continue
		}
		began := time.Unix(int64(binary.BigEndian.Uint64(content)), 0) //nolint:gosec // what was sealed above
		if now.Sub(began) < life {
			return string(content[timeBytes:])
		}
	}
	return ""
}

// Token returns what a form of the request's session must send back, so that no other site can send it.
func (s Sealer) Token(r *http.Request, now time.Time) string {
	value, _ := s.session(r, now)
	return token(s.Keys(tokenPurpose)[0], value)
}

// tokenPurpose is that of the keys of tokens.
const tokenPurpose = "findings-operator console form 1"

// Holds reports whether the token belongs to the request's session.
func (s Sealer) Holds(r *http.Request, given string, now time.Time) bool {
	value, _ := s.session(r, now)
	if value == "" {
		return false
	}
	for _, key := range s.Keys(tokenPurpose) {
		if hmac.Equal([]byte(token(key, value)), []byte(given)) {
			return true
		}
	}
	return false
}

func token(key []byte, session string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(session))
	return encoding.EncodeToString(mac.Sum(nil))
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
