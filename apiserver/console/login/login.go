// Package login creates a session from an API key, and ends it.
package login

import (
	"context"
	"net/http"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/session"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
)

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{
		{Method: http.MethodGet, Path: "login", Serve: show, Public: true},
		{Method: http.MethodPost, Path: "login", Serve: logIn, Public: true},
		// Public, so that it also works with a key that is no longer valid.
		{Method: http.MethodPost, Path: "logout", Serve: logOut, Public: true},
	}
}

const title = "Log in"

func show(_ context.Context, v *page.Visit) (page.Response, error) {
	wrong := ""
	switch {
	case v.Query.Has("unchanged"):
		wrong = "Your session had ended; nothing was changed. Log in and do it again."
	case v.Query.Has("lost"):
		wrong = "You have no session: it has ended, or the browser did not keep its cookie. If you have just logged in, " +
			"allow cookies for this site. If you have opened the console on this host over https before, use https " +
			"again, or delete this host's cookies."
	}
	return page.Response{Title: title, Body: form(v.Query.Get("next"), wrong)}, nil
}

func logIn(ctx context.Context, v *page.Visit) (page.Response, error) {
	next := v.Form.Get("next")
	// Pasted text often has a line end, or the header around the key.
	words := strings.Fields(v.Form.Get("key"))
	key := ""
	if len(words) > 0 {
		key = words[len(words)-1]
	}
	cookie, err := v.LogIn(ctx, key)
	if api.Is(err, http.StatusUnauthorized) {
		return page.Response{Status: http.StatusUnauthorized, Title: title, Body: form(next, "This key is not valid, or has expired. Check that you pasted all of it.")}, nil
	}
	if err != nil {
		return page.Response{}, err
	}
	response := page.SeeOther(next)
	if next == "" || next == session.Path || strings.HasPrefix(next, session.Path+"login") {
		response.Location = ui.Home(v.Who)
	}
	response.Cookie = cookie
	return response, nil
}

func logOut(context.Context, *page.Visit) (page.Response, error) {
	response := page.SeeOther(session.Path + "login")
	response.Cookie = session.End()
	return response, nil
}
