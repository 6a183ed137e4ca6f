package provision

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Bounds of what is told: those of the schema, and of what any provider allows.
const (
	maxFullName = 512
	maxURL      = 2048
	maxBranch   = 255
	maxCommit   = 128
	// mostSegments of a full name: a provider's groups may be nested.
	mostSegments = 20
)

// Told is what a request and its files tell of a repository. All of it is hostile.
type Told struct {
	// FullName is the owner and the name, as somebody gave it; empty: that of the first URL that has one.
	FullName string
	// URLs of the repository, the most trustworthy first: web pages, or what git clones.
	URLs []string
	// Branch that was scanned, as refs/heads/NAME or NAME, and the commit.
	Branch, Commit string
}

// Facts are what an import records of a repository that it creates.
type Facts struct {
	// FullName as it was told, empty where nothing tells it.
	FullName string
	// Provider, URL and CloneURL are empty where no URL tells them.
	Provider, URL, CloneURL string
	// Branch is empty where none is told, or where it is no branch.
	Branch, Commit string
}

var (
	segment = regexp.MustCompile(`^[A-Za-z0-9_~+-][A-Za-z0-9._~+-]{0,99}$`)
	commit  = regexp.MustCompile(`^[0-9a-fA-F]{7,64}$`)
)

// CheckFullName returns an error, for people, where the text is not what a provider would call a repository.
// Characters that look like others, or that end a name somewhere, are refused: such a Repository is for people to
// write.
func CheckFullName(name string) error {
	segments := strings.Split(name, "/")
	if len(name) > maxFullName || len(segments) < 2 || len(segments) > mostSegments ||
		slices.ContainsFunc(segments, func(s string) bool { return !segment.MatchString(s) }) {
		return fmt.Errorf("%s is no full name of a repository: it is OWNER/NAME, of letters, digits and . _ - + ~", quote(name))
	}
	return nil
}

// SameName reports whether two full names are of one repository: providers tell no letters apart by their case.
func SameName(a, b string) bool { return a != "" && Fold(a) == Fold(b) }

// Fold lowers the letters from A to Z and no other: other letters that are alike in lower case are not the same name.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

// Facts that follow from what is told. A URL counts only where it is of the full name: nobody else's page is written
// down. The error says, for people, why the full name that was given is none.
func (t Told) Facts() (Facts, error) {
	f := Facts{FullName: strings.TrimSuffix(t.FullName, ".git")}
	if f.FullName != "" {
		if err := CheckFullName(f.FullName); err != nil {
			return Facts{}, err
		}
	}
	for _, text := range t.URLs {
		page, name := parse(text)
		if page == nil || f.FullName != "" && !SameName(f.FullName, name) {
			continue
		}
		if f.FullName == "" {
			f.FullName = name
		}
		f.Provider, f.URL, f.CloneURL = providerOf(page.Hostname()), page.String(), page.String()+".git"
		break
	}
	if branch := strings.TrimPrefix(t.Branch, "refs/heads/"); branch != "" && len(branch) <= maxBranch &&
		!strings.HasPrefix(branch, "refs/") && isPlain(branch) {
		f.Branch = branch
	}
	if commit.MatchString(t.Commit) {
		f.Commit = t.Commit
	}
	return f, nil
}

// scp is how git writes an address without a scheme.
var scp = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+):([^/].*)$`)

// parse returns the web page of a repository and its full name; nil where the text is no such address. What the
// address holds of credentials, queries and fragments is dropped.
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
		page.Host = u.Hostname() // its port is git's
	default:
		return nil, ""
	}
	fullName = strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
	if CheckFullName(fullName) != nil {
		return nil, ""
	}
	page.Path = "/" + fullName
	return page, fullName
}

var host = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// providers by a word of their host's name.
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

// publicHosts are those that a provider's name stands for.
var publicHosts = []string{"github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "dev.azure.com"}

// hostOf is where the repository's page is, without port; empty where the text is no address of a repository.
func hostOf(address string) string {
	page, _ := parse(address)
	if page == nil {
		return ""
	}
	return Fold(page.Hostname())
}

// Site tells the providers' installations apart: by the host, but for those that the provider's name stands for.
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

// quote shows a hostile text, as much of it as a message has room for.
func quote(text string) string {
	if runes := []rune(text); len(runes) > 80 {
		return fmt.Sprintf("%q", string(runes[:80])+"…")
	}
	return fmt.Sprintf("%q", text)
}
