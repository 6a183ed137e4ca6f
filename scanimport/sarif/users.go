package sarif

import (
	"regexp"
	"strings"
)

var (
	// withUser matches a URI with a user. It also matches one with the digest of an image: see imageDigest.
	withUser = regexp.MustCompile(`(?s)^([A-Za-z][\w+.:-]*://)([^/?#]+)@(.*)$`)
	// withPassword matches what Trivy writes of the source of a Terraform module: the scheme has one slash or is cut off.
	// A host begins with a letter or is an IPv4 address, unlike most versions, which follow an "@" as well.
	withPassword = regexp.MustCompile(`(?s)^([A-Za-z][\w+.:-]+:/|(?:[A-Za-z][\w+.-]+::)?)([^/?#:]+:[^/?#]+)@` +
		`((?:[A-Za-z][^/?#@]*|\d+\.\d+\.\d+\.\d+(?::[^/?#@]*)?)/.*)$`)
	// withToken matches the same with a token alone, which is longer than most names of packages. The last part of a host
	// begins with a letter, unlike that of a version such as v1.2.3.
	withToken = regexp.MustCompile(`(?s)^([A-Za-z][\w+.:-]+:/|)([\w.-]{20,})@` +
		`([A-Za-z][^/?#@]*\.[A-Za-z][\w-]+(?::[^/?#@]*)?/.*)$`)
	hostName = regexp.MustCompile(`^[^/?#:]*`)
	// imageDigest matches the digest of an image, which follows an "@" as a host does.
	imageDigest = regexp.MustCompile(`^sha[0-9]{1,3}:`)
)

// cutUser cuts a URI around its user name and password. Without them, user and rest are "". The user git, which all
// repositories share, is kept.
func cutUser(uri string) (before, user, rest string) {
	for _, pattern := range []*regexp.Regexp{withUser, withPassword, withToken} {
		if m := pattern.FindStringSubmatch(uri); m != nil && m[2] != "git" && !imageDigest.MatchString(m[3]) {
			return m[1], m[2], m[3]
		}
	}
	return uri, "", ""
}

// WithoutUser removes user name and password from a URI.
func WithoutUser(uri string) string {
	before, _, rest := cutUser(uri)
	return before + rest
}

// withoutUsers removes from a message the user names and passwords of the locations' URIs, which Trivy repeats in it.
// The digest of a message leaves out the path. If the message repeats the path that an earlier version stored, its
// digest is the same with and without the user.
func (b *pathBook) withoutUsers(message string, locations []wireLocation) string {
	if !strings.Contains(message, "@") {
		return message
	}
	for _, l := range locations[:min(len(locations), maxPlaces)] {
		for _, u := range b.usersOf(l.PhysicalLocation.ArtifactLocation) {
			message = strings.ReplaceAll(message, u.name+"@"+u.host, u.host)
		}
	}
	return message
}

// uriUser is the user name, with the password, and the host of a URI.
type uriUser struct{ name, host string }

// usersOf returns the user of a location, decoded and as it is in the file, because a message can repeat either. It is
// cached, because a file can refer a million times to a long URI.
func (b *pathBook) usersOf(location wireArtifactLocation) []uriUser {
	key := place{location.URI, location.URIBaseID, location.Index.value(-1)}
	if cached, known := b.users[key]; known {
		return cached
	}
	location, _ = b.located(location)
	uri := strings.TrimSpace(shorten(string(location.URI), maxURI))
	b.expanded.spend(len(uri))
	var users []uriUser
	for _, form := range []string{slashes(unescape(uri)), uri} {
		if _, name, rest := cutUser(form); name != "" {
			users = append(users, uriUser{name, hostName.FindString(rest)})
		}
	}
	if len(b.users) < maxKnown {
		b.users[key] = users
	}
	return users
}
