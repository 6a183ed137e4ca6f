package sarif

import (
	"cmp"
	"net/url"
	"strings"
)

// Endpoint is an HTTP endpoint that a dynamic scanner tried.
type Endpoint struct {
	// Method is the HTTP method in capitals; empty if unknown.
	Method string
	// Path of the URL; never empty. Host and query are left out, because they differ between deployments and attempts, and
	// a query may contain a credential.
	Path string
}

// endpoints returns the endpoints of a result: its request, the locations that are URLs, or else the URL that its
// message labels, as in OWASP ZAP reports converted by another tool.
func (n *normaliser) endpoints(wire *wireResult, message string) []Endpoint {
	var out []Endpoint
	add := func(method, target string) {
		u, err := url.Parse(strings.TrimSpace(target))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" && !(u.Scheme == "" && strings.HasPrefix(u.Path, "/")) {
			return
		}
		e := Endpoint{Method: strings.ToUpper(strings.TrimSpace(method)), Path: cmp.Or(u.EscapedPath(), "/")}
		for _, known := range out {
			if known.Path == e.Path && (known.Method == e.Method || e.Method == "") {
				return
			}
		}
		out = append(out, e)
	}
	add(string(wire.WebRequest.Method), string(wire.WebRequest.Target))
	file := false
	for _, l := range wire.Locations {
		path := n.paths.path(l.PhysicalLocation.ArtifactLocation)
		if isURL(path) {
			add(string(wire.WebRequest.Method), path)
		}
		file = file || path != "" && !isURL(path)
	}
	if len(out) == 0 && !file {
		if labels := labelsOf(message); isURL(FirstOf(labels["uri"], labels["url"])) {
			add(labels["method"], FirstOf(labels["uri"], labels["url"]))
		}
	}
	return out
}

// isURL reports whether a path is an HTTP URL.
func isURL(path string) bool {
	return strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://")
}

// Served reports whether the location is an HTTP URL and not a file.
func (l *Location) Served() bool { return isURL(l.Path) }

// File returns the file's path; empty if the location is not in a file.
func (l *Location) File() string {
	if l.Served() {
		return ""
	}
	return l.Path
}
