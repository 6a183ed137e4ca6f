package importer

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

var commitHash = regexp.MustCompile(`^[0-9a-fA-F]{7,64}$`)

// IsCommitHash reports whether a text is the hash of a commit, in full or shortened, in lower or upper case.
func IsCommitHash(text string) bool { return commitHash.MatchString(text) }

// permalinks makes links to lines of a repository at one commit. Its zero value makes none.
type permalinks struct {
	// before and line surround the path.
	before, line string
	// commit is the commit's own page.
	commit string
}

// newPermalinks returns links in the form of the repository's provider, or none if the provider, URL or commit is
// unknown.
func newPermalinks(repository *v1alpha1.RepositorySpec, commit string) permalinks {
	page, err := url.Parse(strings.TrimSuffix(strings.TrimSuffix(repository.URL, "/"), ".git"))
	if err != nil || page.Scheme != "https" && page.Scheme != "http" || page.Host == "" ||
		!IsCommitHash(commit) {
		return permalinks{}
	}
	// Everyone who sees the finding sees the URL.
	page.User, page.RawQuery, page.Fragment = nil, "", ""
	base := page.String()
	host := page.Hostname()
	is := func(name string) bool {
		if provider := strings.ToLower(repository.Provider); provider != "" {
			return strings.Contains(provider, name)
		}
		return strings.Contains(host, name)
	}
	switch {
	case is("github"):
		return permalinks{base + "/blob/" + commit + "/", "#L", base + "/commit/" + commit}
	case is("gitlab"):
		return permalinks{base + "/-/blob/" + commit + "/", "#L", base + "/-/commit/" + commit}
	case is("gitea"), is("forgejo"), is("codeberg"):
		return permalinks{base + "/src/commit/" + commit + "/", "#L", base + "/commit/" + commit}
	case is("bitbucket"):
		return permalinks{base + "/src/" + commit + "/", "#lines-", base + "/commits/" + commit}
	}
	return permalinks{}
}

// of returns the link to a line of a file, or "".
func (p permalinks) of(path string, number int32) string {
	if p.before == "" || path == "" || strings.Contains(path, "://") {
		return ""
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	link := p.before + strings.Join(segments, "/")
	if number > 0 {
		link += p.line + strconv.Itoa(int(number))
	}
	if len(link) > maxURL {
		return "" // a link that is cut leads nowhere
	}
	return link
}

// CommitPage returns the link to a commit of the repository, or "".
func CommitPage(repository *v1alpha1.RepositorySpec, commit string) string {
	page := newPermalinks(repository, commit).commit
	if len(page) > maxURL {
		return "" // a link that is cut leads nowhere
	}
	return page
}
