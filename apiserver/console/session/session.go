// Package session keeps a user's session in a cookie: the API key that the user entered, sealed with a key that all
// replicas share. The server stores nothing, and the session ends with the API key.
package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/sealed"
)

const (
	// CookieName is the name of the session's cookie.
	CookieName = "findings_console"
	// Path is the only path to which the browser sends the cookie.
	Path = "/console/"
	// life is the maximum duration of a session.
	life = 7 * 24 * time.Hour
	// purpose binds the sealed content to this use of the key.
	purpose = "findings-operator console session 1"
	// timeBytes is the encoded length of the session's start time.
	timeBytes = 8
	// maxCookieBytes is the largest cookie that browsers store.
	maxCookieBytes = 4096
)

var encoding = base64.RawURLEncoding.Strict()

// Sealer creates and reads sessions. Keys returns keys of 32 bytes for a purpose, the newest first.
type Sealer struct {
	Keys func(purpose string) [][]byte
}

// Cookie returns the cookie of a session that begins now. Secure keeps it from being sent without TLS.
func (s Sealer) Cookie(apiKey string, secure bool, now time.Time) *http.Cookie {
	content := binary.BigEndian.AppendUint64(nil, uint64(now.Unix())) //nolint:gosec // the clock is past 1970
	content = append(content, apiKey...)
	return cookie(sealed.Seal(s.Keys(purpose)[0], content, purpose), secure, int(life/time.Second))
}

// End returns the cookie that ends a session in the browser.
func End() *http.Cookie { return cookie("", false, -1) }

func cookie(value string, secure bool, maxAge int) *http.Cookie {
	// Lax: a shared link to a finding must not lead to the login page.
	//nolint:gosec // not secure where the service itself is not
	return &http.Cookie{Name: CookieName, Value: value, Path: Path, MaxAge: maxAge,
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode}
}

// APIKey returns the key of the request's session, or "" if there is no valid session.
func (s Sealer) APIKey(r *http.Request, now time.Time) string {
	return s.session(r, now).apiKey
}

// Ends returns when the request's session ends at the latest, or the zero time without a session.
func (s Sealer) Ends(r *http.Request, now time.Time) time.Time {
	return s.session(r, now).end
}

// held is the content of a session; empty if there is no valid one.
type held struct {
	apiKey string
	end    time.Time
}

// session returns the content of the request's session. Another site of the same domain may set cookies, too: a cookie
// that cannot be opened is ignored, and if two can be opened, neither is used.
func (s Sealer) session(r *http.Request, now time.Time) (its held) {
	for _, cookie := range r.CookiesNamed(CookieName) {
		opened := s.open(cookie.Value, now)
		switch {
		case opened.apiKey == "":
		case its.apiKey != "":
			return held{}
		default:
			its = opened
		}
	}
	return its
}

// open returns the content of a session, or nothing if it is invalid or expired.
func (s Sealer) open(value string, now time.Time) held {
	if len(value) > maxCookieBytes {
		return held{}
	}
	content, ok := sealed.Open(s.Keys(purpose), value, purpose)
	if !ok || len(content) < timeBytes {
		return held{}
	}
	began := time.Unix(int64(binary.BigEndian.Uint64(content)), 0) //nolint:gosec // what was sealed above
	end := began.Add(life)
	if !now.Before(end) {
		return held{}
	}
	return held{string(content[timeBytes:]), end}
}

// Token returns the value that forms of the request's session must send back, so that no other site can submit them. It
// is that of the API key: after a new login with the same key, a page that is still open can be sent.
func (s Sealer) Token(r *http.Request, now time.Time) string {
	return token(s.Keys(tokenPurpose)[0], s.APIKey(r, now))
}

// tokenPurpose is the purpose of the keys for tokens.
const tokenPurpose = "findings-operator console form 2"

// Holds reports whether the token belongs to the API key of the request's session.
func (s Sealer) Holds(r *http.Request, given string, now time.Time) bool {
	apiKey := s.APIKey(r, now)
	if apiKey == "" {
		return false
	}
	for _, key := range s.Keys(tokenPurpose) {
		if hmac.Equal([]byte(token(key, apiKey)), []byte(given)) {
			return true
		}
	}
	return false
}

func token(key []byte, apiKey string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(apiKey))
	return encoding.EncodeToString(mac.Sum(nil))
}
