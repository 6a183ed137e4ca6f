package reviews

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// pulls are the providers' paths of pull requests, below the page of the repository.
var pulls = map[string]string{
	"github": "/pull/", "gitlab": "/-/merge_requests/", "bitbucket": "/pull-requests/", "azure": "/pullrequest/",
	"gitea": "/pulls/", "forgejo": "/pulls/",
}

// readLink returns the page of a pull request at the provider, if the key may see the repository. The review is shown
// without it if the service does not return repositories for the moment.
func readLink(ctx context.Context, v *page.Visit, r client.ReviewFull) (string, error) {
	if !v.May("repos:read") {
		return "", nil
	}
	var repository client.Repository
	_, err := v.API.Get(ctx, page.Of("/v2/repos", r.RepoId), nil, &repository)
	if api.Is(err, http.StatusNotFound) || api.IsStale(err) {
		return "", nil
	}
	return linkOf(repository.Url, repository.Provider, r.PrNumber), err
}

// linkOf returns the page of a pull request, given the page of the repository; empty if the provider is unknown or the
// page is not an HTTP URL.
func linkOf(repository, provider string, number int32) string {
	at, err := url.Parse(strings.TrimSuffix(strings.TrimSuffix(repository, "/"), ".git")) // some give the URL to clone
	path, known := pulls[strings.ToLower(provider)]
	if err != nil || !known || at.Host == "" || (at.Scheme != "https" && at.Scheme != "http") {
		return ""
	}
	return at.JoinPath(path, strconv.Itoa(int(number))).String()
}
