package login

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

func TestALoginLeadsToThePageThatWasAskedForAndNeverToItself(t *testing.T) {
	in := func(context.Context, string) (*http.Cookie, error) { return &http.Cookie{}, nil }
	for next, want := range map[string]string{
		"/console/scans?status=failed": "/console/scans?status=failed", "/console/login?next=x": "/console/", "": "/console/",
	} {
		got, err := logIn(t.Context(), &page.Visit{Form: url.Values{"next": {next}, "key": {"k"}}, LogIn: in})
		if err != nil || got.Location != want {
			t.Errorf("%q leads to %q, %v", next, got.Location, err)
		}
	}
}
