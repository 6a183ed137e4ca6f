package sarif

import (
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pathBook turns artifact locations into paths from the root of the source.
//
// A scanner that writes file:// URIs uses paths of the machine that it ran on. Known roots are removed: the folder that
// the user names, a base of originalUriBaseIds with the name of a root, the working directory of the invocation. The
// common folder of all paths is not removed, because it changes when findings come and go, and with it the identity of
// every finding.
type pathBook struct {
	artifacts []wireArtifact
	bases     map[string]wireArtifactLocation
	// roots holds absolute folders on the scanning machine, ending in "/", the most trusted first.
	roots []string
	// folders caches the folders of bases.
	folders map[text]baseFolder
	// known caches the paths of locations, since most occur many times.
	known map[place]string
	// users caches the users of locations.
	users map[place][]uriUser
	// expanded bounds the total size of all paths, before roots are removed from them.
	expanded *budget
}

// place is the part of a location that determines its path.
type place struct {
	uri, base text
	index     int
}

// maxKnown bounds how many paths are remembered.
const maxKnown = 100_000

// rootNames are the tools' names for the root of the source in originalUriBaseIds.
var rootNames = []string{"SRCROOT", "ROOTPATH", "PROJECTROOT", "REPOROOT", "REPO_ROOT", "SOURCEROOT", "ROOT"}

func newPathBook(run *wireRun, sourceRoot string, expanded *budget) *pathBook {
	book := &pathBook{artifacts: run.artifacts, bases: run.baseIDs, folders: map[text]baseFolder{},
		known: map[place]string{}, users: map[place][]uriUser{}, expanded: expanded}
	if sourceRoot != "" {
		book.addRoot(sourceRoot)
	}
	for _, root := range rootNames {
		for _, id := range []string{root, "%" + root + "%"} {
			if base, there := run.baseIDs[id]; there {
				book.addRoot(string(base.URI))
			}
		}
	}
	for _, invocation := range run.invocations {
		if l := invocation.WorkingDirectory; l.URIBaseID == "" {
			book.addRoot(string(l.URI))
		}
	}
	return book
}

// IsRoot reports whether a root is an absolute path or a file:// URI. No other root is removed from paths.
func IsRoot(uri string) bool {
	_, kind := decode(uri)
	return kind == absolutePath
}

// maxRoots bounds how many folders each path is compared with.
const maxRoots = 32

func (b *pathBook) addRoot(uri string) {
	folder, kind := decode(shorten(uri, maxURI))
	if kind != absolutePath || folder == "/" {
		return
	}
	root := strings.TrimSuffix(folder, "/") + "/"
	if len(b.roots) < maxRoots && !slices.Contains(b.roots, root) {
		b.roots = append(b.roots, root)
	}
}

// path returns the normalised path of a location, or "".
func (b *pathBook) path(location wireArtifactLocation) string {
	key := place{location.URI, location.URIBaseID, location.Index.value(-1)}
	if path, known := b.known[key]; known {
		return path
	}
	path := b.find(location)
	if len(b.known) < maxKnown {
		b.known[key] = path
	}
	return path
}

// maxScanned bounds how many folders of scanned files are kept, and maxScannedText their total length.
const (
	maxScanned     = 10_000
	maxScannedText = 1 << 20
)

// folders holds the folders of scanned files.
type folders struct {
	names  map[string]bool
	length int
}

// add adds the folder of a file while there is room.
func (f *folders) add(file string) {
	if file == "" || (&Location{Path: file}).Served() {
		return
	}
	folder := strings.TrimSuffix(path.Dir(file), ".")
	if f.names[folder] || len(f.names) == maxScanned || f.length+len(folder) > maxScannedText {
		return
	}
	f.length += len(folder)
	f.names[strings.Clone(folder)] = true
}

// scanned returns the folders of the files that the tool scanned: artifacts with the role analysisTarget, and those of
// results that passed or are gone.
func (n *normaliser) scanned() []string {
	scanned := folders{names: map[string]bool{}}
	for i := range n.paths.artifacts {
		if !n.expanded.spend(0) {
			return nil // the caller refuses the file
		}
		if n.paths.artifacts[i].Target {
			scanned.add(n.paths.resolve(n.paths.artifacts[i].Location))
		}
	}
	for _, wire := range n.wire.results {
		if !n.expanded.spend(0) {
			return nil
		}
		if reason := notAFinding(wire); reason == SkipPass || reason == SkipAbsentInBaseline {
			for _, l := range wire.Locations[:min(1, len(wire.Locations))] {
				scanned.add(n.paths.path(l.PhysicalLocation.ArtifactLocation))
			}
		}
	}
	return slices.Sorted(maps.Keys(scanned.names))
}

func (b *pathBook) find(location wireArtifactLocation) string {
	location, ok := b.located(location)
	if !ok {
		return ""
	}
	return b.resolve(location)
}

// located returns the artifact's location for one that has only an index. ok is false if that is out of range.
func (b *pathBook) located(location wireArtifactLocation) (_ wireArtifactLocation, ok bool) {
	if location.URI == "" {
		index := location.Index.value(-1)
		if index < 0 || index >= len(b.artifacts) {
			return location, false
		}
		location = b.artifacts[index].Location
	}
	return location, true
}

// maxBases bounds a chain of uriBaseIds, which a file can make endless.
const maxBases = 8

// baseFolder is the folder that a base of originalUriBaseIds stands for.
type baseFolder struct {
	// absolute is the folder on the scanning machine; "" if the chain of bases does not begin with one.
	absolute string
	// relative is the folder without the absolute base that the chain begins with, as a clean path from "/".
	relative string
}

// base returns the folder of a base. It is cached, because a file can refer a million times to a costly one.
func (b *pathBook) base(id text) baseFolder {
	folder, known := b.folders[id]
	next, there := b.bases[string(id)]
	if known || !there {
		return folder
	}
	for range maxBases {
		uri := shorten(string(next.URI), maxURI)
		b.expanded.spend(len(uri) + len(folder.relative))
		decoded, kind := decode(uri)
		if kind == absolutePath {
			folder.absolute = path.Join(decoded, folder.relative)
		}
		if kind != relativePath || uri == "" {
			break
		}
		folder.relative = shorten(path.Join(decoded, folder.relative), maxURI)
		next = b.bases[string(next.URIBaseID)]
	}
	folder.relative = path.Join("/", folder.relative)
	b.folders[id] = folder
	return folder
}

// resolve charges the budget for what it reads and joins, even if little of it remains.
func (b *pathBook) resolve(location wireArtifactLocation) string {
	uri := shorten(string(location.URI), maxURI)
	b.expanded.spend(len(uri))
	decoded, kind := decode(uri)
	switch kind {
	case otherURI:
		return decoded
	case absolutePath:
		if below, is := b.belowRoot(decoded); is {
			return below
		}
		return clean(decoded)
	}
	base := b.base(location.URIBaseID)
	b.expanded.spend(len(base.absolute) + len(base.relative))
	if base.absolute != "" {
		// Below a known root the base stays in the path; otherwise the base counts as the root.
		if below, is := b.belowRoot(path.Join(base.absolute, decoded)); is {
			return below
		}
	}
	return shorten(clean(base.relative+"/"+decoded), maxURI)
}

// belowRoot returns the path below the first root that contains it.
func (b *pathBook) belowRoot(absolute string) (below string, is bool) {
	for _, root := range b.roots {
		if rest, under := cutRoot(absolute, root); under {
			return clean(rest), true
		}
	}
	return "", false
}

// cutRoot returns the path below a root. On a drive of Windows the root may be in either case: some analyzers write
// lower-case URIs.
func cutRoot(absolute, root string) (rest string, under bool) {
	if drive.MatchString(root[1:]) && len(absolute) >= len(root) && strings.EqualFold(absolute[:len(root)], root) {
		return absolute[len(root):], true
	}
	return strings.CutPrefix(absolute, root)
}

type uriKind int

const (
	relativePath uriKind = iota
	absolutePath
	otherURI
)

// decode parses a URI, or what tools write instead: percent-encoding is undone once, backslashes become slashes, a
// Windows drive counts as a root.
func decode(uri string) (string, uriKind) {
	uri = strings.TrimSpace(uri)
	scheme, rest, hasScheme := strings.Cut(uri, ":")
	switch {
	case hasScheme && strings.EqualFold(scheme, "file"):
		after, slashed := strings.CutPrefix(rest, "//")
		if slashed && after != "" && after[0] != '/' && !drive.MatchString(after) {
			_, rest, _ = strings.Cut(after, "/") // file://host/path
		}
		return path.Clean("/" + slashes(unescape(rest))), absolutePath
	case drive.MatchString(uri):
		return path.Clean("/" + slashes(uri)), absolutePath
	case hasScheme && uriScheme.MatchString(scheme):
		return WithoutUser(uri), otherURI
	}
	decoded := slashes(unescape(WithoutUser(uri))) // a password may contain a slash
	if strings.HasPrefix(decoded, "/") {
		return path.Clean(decoded), absolutePath
	}
	return WithoutUser(decoded), relativePath
}

func unescape(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

func slashes(s string) string { return strings.ReplaceAll(s, `\`, "/") }

// clean never leaves the root: "../../etc" becomes "etc".
func clean(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

var (
	drive     = regexp.MustCompile(`^[A-Za-z]:[/\\]`)
	uriScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+$`)
)
