package provision

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/internal/truncate"
)

// Bounds of the input: those of the schema, and of what providers allow.
const (
	maxFullName = 512
	maxURL      = 2048
	maxBranch   = 255
	// maxSegments bounds the segments of a full name, since a provider's groups may be nested.
	maxSegments = 20
)

// Claims holds what a request and its files claim about a repository. None of it is trusted.
type Claims struct {
	// FullName is the owner and the name as given; empty: taken from the first URL that has one.
	FullName string
	// URLs of the repository, the most trustworthy first: web pages or clone URLs.
	URLs []string
	// Branch that was scanned, as refs/heads/NAME or NAME, and the commit.
	Branch, Commit string
}

// Facts holds what an import records about a repository that it creates.
type Facts struct {
	// FullName as given, whatever its form; empty if unknown.
	FullName string
	// Provider, URL and CloneURL are empty if no URL yields them.
	Provider, URL, CloneURL string
	// Branch is empty if none was given that an import may record.
	Branch, Commit string
}

var segment = regexp.MustCompile(`^\.?[A-Za-z0-9_~+-][A-Za-z0-9._~+-]{0,99}$`)

// CheckFullName returns an error for users if no import creates a repository with that full name. It refuses characters
// that look like others, or that end a name in some context: users must create such a Repository themselves.
func CheckFullName(name string) error {
	segments := strings.Split(name, "/")
	if len(name) > maxFullName || len(segments) < 2 || len(segments) > maxSegments ||
		slices.ContainsFunc(segments, func(s string) bool { return !segment.MatchString(s) }) {
		return errors.New("imports create only OWNER/NAME with letters, digits and . _ - + ~: " +
			"correct the name, or create the Repository")
	}
	return nil
}

// SameName reports whether two full names denote one repository: providers ignore case.
func SameName(a, b string) bool { return a != "" && Fold(a) == Fold(b) }

// Fold lowers only the letters A to Z: names that differ in the case of other letters stay different.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

// Facts derives the facts from the claims. A URL counts only if it belongs to the full name, so that no page of another
// repository is recorded. Only a name that an import may create is taken from a URL.
func (c Claims) Facts() Facts {
	f := Facts{FullName: strings.TrimSuffix(c.FullName, ".git")}
	for _, text := range c.URLs {
		page, name := parse(text)
		if f.FullName == "" && CheckFullName(name) == nil {
			f.FullName = name
		}
		if page == nil || !SameName(f.FullName, name) {
			continue
		}
		f.Provider, f.URL, f.CloneURL = providerOf(page.Hostname()), page.String(), page.String()+".git"
		break
	}
	f.Branch = recordable(c.Branch)
	if IsCommitHash(c.Commit) {
		f.Commit = c.Commit
	}
	return f
}

// scp matches git's address form without a scheme.
var scp = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+):([^/].*)$`)

// parse returns the web page of a repository and its full name, whatever the form of that name, or nil if the text is
// not such an address. It drops credentials, query and fragment.
func parse(text string) (page *url.URL, fullName string) {
	text = strings.TrimSpace(text)
	if len(text) > maxURL-len(".git") {
		return nil, ""
	}
	if m := scp.FindStringSubmatch(text); m != nil && !strings.Contains(text, "://") {
		text = "ssh://" + m[1] + "/" + m[2]
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || !host.MatchString(u.Hostname()) {
		return nil, ""
	}
	page = &url.URL{Scheme: "https", Host: u.Host}
	switch u.Scheme {
	case "https", "http":
		page.Scheme = u.Scheme
	case "ssh", "git", "git+ssh":
		page.Host = u.Hostname() // drop the port, which is that of git
	default:
		return nil, ""
	}
	fullName = strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
	if !strings.Contains(fullName, "/") {
		return nil, ""
	}
	if pages := pageHosts[Fold(u.Hostname())]; pages != "" {
		page.Host = pages
	}
	page.Path = "/" + fullName
	return page, fullName
}

var host = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// providers by a word in the host's name.
var providers = []struct{ word, provider string }{
	{"github", "github"}, {"gitlab", "gitlab"}, {"bitbucket", "bitbucket"}, {"codeberg", "forgejo"},
	{"forgejo", "forgejo"}, {"gitea", "gitea"}, {"dev.azure.com", "azure"}, {"visualstudio.com", "azure"},
}

func providerOf(host string) string {
	for _, p := range providers {
		if strings.Contains(Fold(host), p.word) {
			return p.provider
		}
	}
	return ""
}

// publicHosts are the hosts that a provider's name implies.
var publicHosts = []string{"github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "dev.azure.com"}

// pageHosts maps the public providers' hosts for SSH over port 443 to the hosts of their pages.
var pageHosts = map[string]string{
	"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com", "altssh.bitbucket.org": "bitbucket.org",
}

// hostOf returns the host of the repository's page without the port; empty if the text is not the address of a
// repository.
func hostOf(address string) string {
	page, _ := parse(address)
	if page == nil {
		return ""
	}
	return Fold(page.Hostname())
}

var overHTTP = regexp.MustCompile(`(?i)^\s*https?://`)

// pageHostOf returns the host of the page of a repository that git clones from the address; empty if it is unknown,
// because a host for SSH need not be that of the page.
func pageHostOf(cloneURL string) string {
	host := hostOf(cloneURL)
	if overHTTP.MatchString(cloneURL) || slices.Contains(publicHosts, host) {
		return host
	}
	return ""
}

// Site identifies the provider's installation: by the host, or by the provider for its public host.
func (f Facts) Site() string {
	if host := hostOf(f.URL); host != "" && !slices.Contains(publicHosts, host) {
		return host
	}
	return f.Provider
}

// isPlain reports whether a text is printable ASCII without blanks.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// quote quotes an untrusted text, shortened for a message.
func quote(text string) string { return fmt.Sprintf("%q", truncate.Marked(text, 80, "…")) }
