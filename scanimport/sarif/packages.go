package sarif

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Package describes the package that a result is about.
type Package struct {
	// PURL is the package URL with its version. Empty: the file does not give it, and in this ecosystem it does not follow
	// from name and version.
	PURL string
	// Ecosystem is the package URL's type, for example "npm", or the tool's own word for it in lower case, for example
	// "go-module". Empty: unknown.
	Ecosystem string
	// Name as the tool writes it; never empty.
	Name string
	// Version that is installed or declared; empty if unknown.
	Version string
	// FixedVersion as the tool writes it; empty if none is known.
	FixedVersion string
}

// Logical is a logical location: a function, a resource, a package.
type Logical struct {
	Name, FullyQualifiedName, Kind string
	// Reference is one more than the index in the run's logicalLocations, for a location without a name of its own; else
	// 0. It differs from run to run.
	Reference int
}

var (
	// grypePackage matches grype's message; osvPackage that of osv-scanner.
	grypePackage = regexp.MustCompile(`\bin (\S{1,64}) package: (\S{1,256}), version (\S{1,256}) was found\b`)
	osvPackage   = regexp.MustCompile(`\bPackage '(@?[^'@\s]{1,256})(?:@([^'\s]{1,256}))?' is vulnerable to\b`)
	// nameAtVersion matches Snyk's form of a package in a logical location and a fix.
	nameAtVersion = regexp.MustCompile(`^(@?[^@\s]{1,256})@(\S{1,256})$`)
	upgradeTo     = regexp.MustCompile(`^Upgrade to (@?[^@\s]{1,256})@(\S{1,256})$`)
)

// packageOf returns the package that a result is about, or nil. The result's own facts take precedence over its rule's,
// because tools often describe a rule by its first result.
func packageOf(wire *wireResult, rule *Rule, ruleID, message string) *Package {
	help, facts := rule.labelled(), factsOf(message)
	about := isAboutPackage(rule, ruleID, help)
	for _, read := range []func() *Package{
		func() *Package { return labelledPackage(facts, about || facts["component"] == "") },
		func() *Package { return packageInMessage(message) },
		func() *Package { return packageInLocation(wire, rule, about, help) },
		func() *Package { return labelledPackage(help, about) },
		func() *Package { _, found := PackageOfRule(ruleID); return found },
	} {
		if found := read(); found != nil {
			found.complete(rule, help)
			return found
		}
	}
	return nil
}

// labelledPackage returns the package that labels name, or nil. Unless sure, the name alone is not enough: a component
// of a user interface has one too.
func labelledPackage(labels map[string]string, sure bool) *Package {
	name := FirstOf(labels["package"], labels["package name"], labels["vulnerable module"], labels["component"])
	if name == "" {
		return nil
	}
	found := &Package{
		Ecosystem: strings.ToLower(FirstOf(labels["package manager"], labels["package type"])),
		Name:      name,
		Version:   FirstOf(labels["installed version"], labels["version"], labels["current version"]),
		FixedVersion: FirstOf(labels["fixed version"], labels["fix version"], labels["fixed in"],
			labels["recommended version"]),
	}
	if found.Ecosystem == "" && labels["vulnerability"] != "" {
		found.Ecosystem = strings.ToLower(labels["type"])
	}
	if purl := parsePURL(name); purl != nil {
		purl.FixedVersion = found.FixedVersion
		return purl
	}
	if !sure && found.Ecosystem+found.Version+found.FixedVersion+labels["vulnerability"] == "" {
		return nil
	}
	return found
}

func packageInMessage(message string) *Package {
	if m := grypePackage.FindStringSubmatch(message); m != nil {
		return &Package{Ecosystem: strings.ToLower(m[1]), Name: m[2], Version: m[3]}
	}
	if m := osvPackage.FindStringSubmatch(message); m != nil {
		return &Package{Name: m[1], Version: m[2]}
	}
	return nil
}

// packageInLocation reads a logical location that is a package URL, or a name with a version if the rule is about a
// package.
func packageInLocation(wire *wireResult, rule *Rule, about bool, help map[string]string) *Package {
	for _, location := range wire.Locations {
		for _, logical := range location.LogicalLocations {
			name := FirstOf(string(logical.FullyQualifiedName), string(logical.Name))
			if purl := parsePURL(name); purl != nil {
				return purl
			}
			m := nameAtVersion.FindStringSubmatch(name)
			if m == nil || !about {
				continue
			}
			return &Package{
				Ecosystem: strings.ToLower(help["package manager"]), Name: m[1], Version: m[2], FixedVersion: fixedByUpgrade(wire,
					rule, m[1]),
			}
		}
	}
	return nil
}

// versioned matches the name and the version of a package in a rule's id.
var versioned = regexp.MustCompile(`^(\S{1,256})_(v?[0-9][^\s_]{0,255})$`)

// maxPackageRule bounds an id that names a package, in bytes, since the id is read for each result.
const maxPackageRule = 1 << 10

// PackageOfRule returns the vulnerability and the package in a rule's id of JFrog Xray, or nil:
// "CVE-2020-28500_lodash_4.17.15". Of several vulnerabilities before the package it returns the first. Versions of Xray
// differ: "CVE-2020-28500_CVE-2021-23337_" or "CVE-2020-28500, CVE-2021-23337_".
func PackageOfRule(id string) (vulnerability string, found *Package) {
	if len(id) > maxPackageRule {
		return "", nil
	}
	rest, before := id, ""
	for {
		begin, end := findID(rest)
		if begin > 0 || end == 0 {
			break
		}
		if vulnerability == "" {
			vulnerability = canonicalID(rest[:end])
		}
		before, rest = rest[:end], strings.TrimPrefix(rest[end:], ", ")
	}
	m := versioned.FindStringSubmatch(rest)
	if m == nil || !strings.HasSuffix(before, "_") {
		return "", nil
	}
	return vulnerability, &Package{Name: m[1], Version: m[2]}
}

func isAboutPackage(rule *Rule, ruleID string, help map[string]string) bool {
	return help["vulnerable module"] != "" || help["package manager"] != "" || len(rule.idsOf(ruleID)) > 0
}

// maxDescribed bounds where a description names the rule's package, in bytes, since it is searched for each fix. Snyk
// begins with it.
const maxDescribed = 1 << 10

// fixedByUpgrade returns the version from a fix that upgrades the package itself, under its name or its name in the
// rule's description. An upgrade of a dependent package does not count.
func fixedByUpgrade(wire *wireResult, rule *Rule, name string) string {
	described := rule.FullDescription[:min(len(rule.FullDescription), maxDescribed)]
	for _, fix := range wire.Fixes {
		m := upgradeTo.FindStringSubmatch(string(fix.Description.Text))
		if m != nil && (m[1] == name || strings.HasPrefix(m[1], name+"/") &&
			strings.Contains(described, m[1]+"@")) {
			return m[2]
		}
	}
	return ""
}

// complete adds the rule's facts about the same package in the same version.
func (p *Package) complete(rule *Rule, help map[string]string) {
	if described := labelledPackage(help, true); described != nil && described.Name == p.Name &&
		(p.Version == "" || described.Version == "" || p.Version == described.Version) {
		p.Version = FirstOf(p.Version, described.Version)
		p.FixedVersion = FirstOf(p.FixedVersion, described.FixedVersion)
		p.Ecosystem = FirstOf(p.Ecosystem, described.Ecosystem)
	}
	p.FixedVersion = FirstOf(p.FixedVersion, help[fixedLabel(p.Name)])
	if p.PURL == "" {
		p.PURL = p.among(rule.packages)
	}
	if p.PURL == "" {
		p.PURL = p.derived()
	}
	if purl := parsePURL(p.PURL); purl != nil {
		p.Ecosystem = purl.Ecosystem
	}
	for _, value := range []*string{&p.Name, &p.Version, &p.FixedVersion} {
		*value = strings.Join(strings.Fields(*value), " ")
	}
}

// among returns the package URL with the same version and name, even if the tool shortens the name.
func (p *Package) among(packages []*Package) string {
	for _, candidate := range packages {
		if p.Version != "" && candidate.Version != p.Version {
			continue
		}
		if candidate.Name == p.Name || strings.HasSuffix(candidate.Name, "/"+p.Name) ||
			strings.HasSuffix(candidate.Name, ":"+p.Name) {
			return candidate.PURL
		}
	}
	return ""
}

// purlTypes holds the ecosystems, in the tools' words, whose package URLs follow from name and version. Those of
// operating systems do not, because they also name the distribution.
var purlTypes = map[string]string{
	"npm": "npm", "yarn": "npm", "pnpm": "npm", "pip": "pypi", "pypi": "pypi", "poetry": "pypi", "nuget": "nuget",
	"maven": "maven", "gradle": "maven", "rubygems": "gem", "gem": "gem", "composer": "composer", "cargo": "cargo",
	"golang": "golang", "gomodules": "golang", "go-module": "golang", "hex": "hex",
}

func (p *Package) derived() string {
	purlType := purlTypes[p.Ecosystem]
	if purlType == "" || p.Name == "" || p.Version == "" {
		return ""
	}
	name := p.Name
	if purlType == "maven" {
		name = strings.Replace(name, ":", "/", 1)
	}
	segments := strings.Split(name, "/")
	for i, segment := range segments {
		segments[i] = purlEscape(segment)
	}
	return "pkg:" + purlType + "/" + strings.Join(segments, "/") + "@" + purlEscape(p.Version)
}

// purlEscape escapes a part of a package URL, including "@", which begins the version.
func purlEscape(s string) string { return strings.ReplaceAll(url.PathEscape(s), "@", "%40") }

// distributions holds the types of package URL whose namespace is the vendor, not part of the name.
var distributions = []string{"alpm", "apk", "deb", "rpm"}

// parsePURL parses a package URL; it returns nil if s is not one.
func parsePURL(s string) *Package {
	rest, is := strings.CutPrefix(s, "pkg:")
	if !is || strings.ContainsAny(s, " \t\n") {
		return nil
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, _ = strings.Cut(rest, "?")
	version := ""
	if at := strings.LastIndexByte(rest, '@'); at > strings.LastIndexByte(rest, '/') {
		rest, version = rest[:at], rest[at+1:]
	}
	purlType, name, _ := strings.Cut(strings.Trim(rest, "/"), "/")
	purlType = strings.ToLower(purlType)
	slash := strings.LastIndexByte(name, '/')
	switch {
	case slash >= 0 && slices.Contains(distributions, purlType):
		name = name[slash+1:]
	case slash >= 0 && purlType == "maven":
		name = name[:slash] + ":" + name[slash+1:]
	}
	if name == "" {
		return nil
	}
	return &Package{PURL: s, Ecosystem: purlType, Name: unescape(name), Version: unescape(version)}
}
