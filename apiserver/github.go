package apiserver

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// likeGitHub reports whether the path belongs to the API of GitHub or GitHub Enterprise Server. Requests there
// get responses in GitHub's format.
func likeGitHub(path string) bool {
	return strings.HasPrefix(path, "/repos/") || strings.HasPrefix(path, "/api/v3/")
}

// tokenScheme is the Authorization scheme that GitHub's clients use besides Bearer.
const tokenScheme = "token "

// withBearer replaces that scheme by Bearer.
func withBearer(header string) string {
	if len(header) > len(tokenScheme) && strings.EqualFold(header[:len(tokenScheme)], tokenScheme) {
		return "Bearer " + header[len(tokenScheme):]
	}
	return header
}

// asGitHub returns the problem with the status that GitHub documents for it.
func asGitHub(p *problem.Problem) *problem.Problem {
	switch {
	case p.Status == http.StatusBadRequest && p.Code == problem.CodeTooLong:
		return problem.TooLarge(p)
	case p.Status == http.StatusInternalServerError && p.RetryAfter > 0:
		return problem.Unavailable(p)
	}
	return p
}

// rejecting is the prefix of an error about an upload, by which clients recognise that the file or its sender is at
// fault.
const rejecting = "rejecting SARIF: "

// gitHubMessage returns the text that GitHub's clients show.
func gitHubMessage(p *problem.Problem, method string) string {
	switch p.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge:
		if method == http.MethodPost {
			return rejecting + p.Detail
		}
	}
	return p.Message + ": " + p.Detail
}

// host matches a name or an address, with or without a port.
var host = regexp.MustCompile(`^(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(:[0-9]{1,5})?$`)

// origin returns scheme and host under which the client reached the service, or "" if the Host header is invalid. A
// proxy may report that it was reached over HTTPS; a client that claims so deceives only itself.
func origin(r *http.Request) string {
	if !host.MatchString(r.Host) {
		return ""
	}
	// With several proxies, the first value is that of the proxy nearest to the client.
	proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	if r.TLS != nil || strings.EqualFold(strings.TrimSpace(proto), "https") {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
