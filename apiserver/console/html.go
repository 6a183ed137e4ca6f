package console

import (
	"bytes"
	"context"
	"net/http"

	"github.com/a-h/templ"
)

// policy lets a page only load from and connect to this service, without inline scripts and styles, and forbids framing
// it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types console"

// usualBytes is the size that most pages with a list fit in. A buffer that grows with its page is copied several times.
const usualBytes = 96 << 10

// html renders a page as a response.
func html(ctx context.Context, status int, body templ.Component) (Answer, error) {
	content := bytes.NewBuffer(make([]byte, 0, usualBytes))
	if err := body.Render(ctx, content); err != nil {
		return Answer{}, err
	}
	return Answer{Status: status, Header: header("text/html; charset=utf-8"), Body: content.Bytes()}, nil
}

// header returns the headers of all responses of the console. A page shows the data of one key, so nothing may cache
// it.
func header(contentType string) http.Header {
	return http.Header{
		"Content-Type":                 {contentType},
		"Content-Security-Policy":      {policy},
		"Cross-Origin-Opener-Policy":   {"same-origin"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Permissions-Policy":           {"camera=(), microphone=(), geolocation=()"},
		"Referrer-Policy":              {"same-origin"},
		"X-Frame-Options":              {"DENY"},
	}
}
