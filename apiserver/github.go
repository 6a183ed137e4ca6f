package apiserver

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// likeGitHub reports whether the path is one at which GitHub, or GitHub Enterprise Server, has its API. Whoever asks
// there is answered as by GitHub.
func likeGitHub(path string) bool {
	return strings.HasPrefix(path, "/repos/") || strings.HasPrefix(path, "/api/v3/")
}

// tokenScheme is the scheme of Authorization that GitHub's clients use beside Bearer.
const tokenScheme = "token "

// withBearer puts Bearer in the place of the other scheme.
func withBearer(header string) string {
	if len(header) > len(tokenScheme) && strings.EqualFold(header[:len(tokenScheme)], tokenScheme) {
		return "Bearer " + header[len(tokenScheme):]
	}
	return header
}

// asGitHub has the status that GitHub documents for what went wrong.
func asGitHub(p *problem.Problem) *problem.Problem {
	switch {
	case p.Status == http.StatusBadRequest && p.Code == openapi.CodeTooLong:
		return problem.TooLarge(p)
	case p.Status == http.StatusInternalServerError && p.RetryAfter > 0:
		return problem.Unavailable(p)
	}
	return p
}

// rejecting begins what is wrong with an upload: clients tell by it that the file, or its sender, is at fault.
const rejecting = "rejecting SARIF: "

// gitHubMessage is the text that GitHub's clients show.
func gitHubMessage(p *problem.Problem, method string) string {
	switch p.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge:
		if method == http.MethodPost {
			return rejecting + p.Detail
		}
	}
	return p.Message + ": " + p.Detail
}

// host is a name or an address, with a port or without.
var host = regexp.MustCompile(`^(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(:[0-9]{1,5})?$`)

// origin is where the client reached the service, "" where it does not say so. A proxy may say that it was reached by
// HTTPS; a client that says so itself deceives nobody else.
func origin(r *http.Request) string {
	if !host.MatchString(r.Host) {
		return ""
	}
	// The first of several proxies is the one that the client reached.
	proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	if r.TLS != nil || strings.EqualFold(strings.TrimSpace(proto), "https") {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
