// Package login makes a session of an API key, and ends it.
package login

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/session"
)

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{
		{Method: http.MethodGet, Path: "login", Serve: show, Public: true},
		{Method: http.MethodPost, Path: "login", Serve: logIn, Public: true},
		{Method: http.MethodPost, Path: "logout", Serve: logOut},
	}
}

const title = "Log in"

func show(_ context.Context, v *page.Visit) (page.Response, error) {
	return page.Response{Title: title, Body: form(v.Query.Get("next"), "")}, nil
}

func logIn(ctx context.Context, v *page.Visit) (page.Response, error) {
	next := v.Form.Get("next")
	// What is pasted often has a line end, or the name of the header with it.
	key := strings.TrimSpace(v.Form.Get("key"))
	key = strings.TrimSpace(strings.TrimPrefix(key, "Bearer "))
	cookie, err := v.LogIn(ctx, key)
	var failure *api.Failure
	if errors.As(err, &failure) && failure.Status == http.StatusUnauthorized {
		return page.Response{Status: http.StatusUnauthorized, Title: title, Body: form(next, failure.Said.Detail)}, nil
	}
	if err != nil {
		return page.Response{}, err
	}
	response := page.SeeOther(next)
	if next == "" {
		response.Location = session.Path
	}
	response.Cookie = cookie
	return response, nil
}

func logOut(context.Context, *page.Visit) (page.Response, error) {
	response := page.SeeOther(session.Path + "login")
	response.Cookie = session.End()
	return response, nil
}
