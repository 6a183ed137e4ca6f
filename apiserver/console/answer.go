package console

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
)

// Answer is a response that is ready to be sent.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Err is why the page could not be rendered, for the log only; nil if the page itself explains the problem to the
	// reader.
	Err error
}

func (c *Console) render(ctx context.Context, v *page.Visit, response page.Response) (Answer, error) {
	answer, err := c.renderBody(ctx, v, response)
	if err != nil {
		return Answer{}, err
	}
	if response.Cookie != nil {
		answer.Header.Set("Set-Cookie", response.Cookie.String())
	}
	return answer, nil
}

// setDataAge sets the header that holds how old the data behind the answer may be, in seconds, unless it is 0.
func (a *Answer) setDataAge(seconds int) {
	if seconds > 0 {
		a.Header.Set(api.DataAgeHeader, strconv.Itoa(seconds))
	}
}

func (c *Console) renderBody(ctx context.Context, v *page.Visit, response page.Response) (Answer, error) {
	status := response.Status
	if status == 0 {
		status = http.StatusOK
	}
	switch {
	case response.Location != "":
		return redirect(response.Location), nil
	case response.JSON != nil:
		return asJSON(status, response.JSON), nil
	case v.Scripted:
		return html(ctx, status, response.Body)
	case v.Who.Key == "":
		return html(ctx, status, ui.Bare(c.view(response.Title), response.Body))
	}
	view := c.view(response.Title)
	view.Who, view.At, view.Token, view.Place = v.Who, v.URL.Path, v.Token, v.Place
	view.Styles, view.Modules, view.DataAge = response.Styles, response.Modules, v.DataAge()
	return html(ctx, status, ui.Frame(view, response.Body))
}

func (c *Console) view(title string) ui.View { return ui.View{Title: title, Asset: c.assets.address} }

func redirect(location string) Answer {
	// Never redirect outside the console: another site may have supplied the location.
	if !strings.HasPrefix(location, Path) {
		location = Path
	}
	return Answer{Status: http.StatusSeeOther, Header: http.Header{"Location": {location}}}
}

func asJSON(status int, value any) Answer {
	body, err := json.Marshal(value)
	if err != nil {
		return Answer{Status: http.StatusInternalServerError, Header: http.Header{}, Err: err}
	}
	return Answer{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

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
