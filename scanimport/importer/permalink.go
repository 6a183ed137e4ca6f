package importer

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// permalinks builds links to lines of a repository at one commit. The zero value builds none.
type permalinks struct {
	// before and line surround the path.
	before, line string
	// commit is the page of the commit.
	commit string
}

// newPermalinks returns links in the form of the repository's provider, or none if the provider, URL or commit is
// unknown.
func newPermalinks(repository *v1alpha1.RepositorySpec, commit string) permalinks {
	page, err := url.Parse(strings.TrimSuffix(strings.TrimSuffix(repository.URL, "/"), ".git"))
	if err != nil || page.Scheme != "https" && page.Scheme != "http" || page.Host == "" ||
		!provision.IsCommitHash(commit) {
		return permalinks{}
	}
	// Everyone who can read the finding can read the URL, so drop credentials.
	page.User, page.RawQuery, page.Fragment = nil, "", ""
	base := page.String()
	// A host is often named after the provider.
	provider := strings.ToLower(cmp.Or(repository.Provider, page.Hostname()))
	is := func(name string) bool { return strings.Contains(provider, name) }
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
		return "" // a truncated link does not work
	}
	return link
}

// CommitPage returns the link to a commit of the repository, or "".
func CommitPage(repository *v1alpha1.RepositorySpec, commit string) string {
	page := newPermalinks(repository, commit).commit
	if len(page) > maxURL {
		return "" // a truncated link does not work
	}
	return page
}
