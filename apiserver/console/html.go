package console

import (
	"bytes"
	"context"
	"net/http"

	"github.com/a-h/templ"
)

// policy lets a page load and call nothing but this service, run no script and use no style of its own text, and nobody
// frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types console"

// usualBytes is what most pages with a list fit in. A buffer that grows with its page is copied several times.
const usualBytes = 96 << 10

// html is an answer with a page.
func html(ctx context.Context, status int, body templ.Component) (Answer, error) {
	content := bytes.NewBuffer(make([]byte, 0, usualBytes))
	if err := body.Render(ctx, content); err != nil {
		return Answer{}, err
	}
	return Answer{Status: status, Header: header("text/html; charset=utf-8"), Body: content.Bytes()}, nil
}

// header is what all that the console sends begins with. What a page shows is one key's: nothing keeps it.
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
