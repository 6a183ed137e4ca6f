package importer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// scanContext holds what all findings of a scan have in common.
type scanContext struct {
	repository, project string
	// tool is the scan's; formerly is the name that it had according to the user, empty if none was given.
	tool, formerly string
	// analysis is empty if the scan has none.
	analysis string
	// category is that of the scan; uniform means that all its findings have it.
	category  v1alpha1.FindingCategory
	uniform   bool
	commit    string
	scanID    string
	startedAt v1alpha1.Time
	links     permalinks
	// rules caches the texts of rules.
	rules map[*sarif.Rule]*ruleTexts
}

// contextOf returns what all findings of the batch in a project have in common, except for the scan.
func (b *Batch) contextOf(repository *v1alpha1.Repository, project string) scanContext {
	return scanContext{
		repository: repository.Name, project: project, tool: b.Tool, formerly: b.GivenFormer,
		analysis: b.Analysis, category: b.Category, uniform: b.Uniform, commit: b.Commit,
		links: newPermalinks(&repository.Spec, b.Commit),
	}
}

// renames reports whether the scan gives findings of another tool name the tool's current name. It never gives them an
// older one: two jobs with different names would rename the same findings at every import.
func (c *scanContext) renames(tool string) bool {
	return tool != c.tool && (tool == c.formerly || newestName(tool, c.tool) == c.tool)
}

// categoryOf returns the category of a result's finding.
func (c *scanContext) categoryOf(r *sarif.Result) v1alpha1.FindingCategory {
	if c.uniform {
		return c.category
	}
	return CategoryOfResult(r, c.category)
}

// spec converts a result to the facts of a finding. It leaves the triage empty.
func (c *scanContext) spec(r *sarif.Result) v1alpha1.FindingSpec {
	spec := v1alpha1.FindingSpec{
		RepositoryRef: v1alpha1.RepositoryReference{Name: v1alpha1.ResourceName(c.repository)},
		ProjectRef:    v1alpha1.ProjectReference{Name: v1alpha1.ResourceName(c.project)},
		DetectedAt:    &c.startedAt,
		Tool:          c.tool,
		Analysis:      c.analysis,
		Category:      c.categoryOf(r),
		RuleID:        OneLine(r.RuleID, maxRuleID),
		Class:         cut(class(r), maxClass),
		Vulnerability: vulnerability(r.Vulnerability),
		Package:       packageFact(r.Package),
		Agent:         &v1alpha1.FindingAgent{Name: cut(c.tool, maxAgentName)},
		Confidence:    confidence(r.Rule.Precision),
		CommitHash:    c.commit,
		Fingerprints:  storedFingerprints(r.Fingerprints),
		Evidence:      evidenceText(r, c.categoryOf(r)),
		Suppression:   suppression(r, c.categoryOf(r)),
		Details:       c.details(r),
		Scan:          &v1alpha1.FindingScan{ScanID: c.scanID, AnalyzedAt: &c.startedAt},
	}
	if spec.Category == v1alpha1.CategorySecret {
		spec.SecretType = OneLine(sarif.FirstOf(r.RuleID, r.Rule.Name), maxSecretType)
	}
	return spec
}

func (c *scanContext) details(r *sarif.Result) v1alpha1.FindingDetails {
	message := withoutImage(withoutLinks(r.Message))
	category := c.categoryOf(r)
	secret := showsSecret(r, category)
	switch {
	case category == v1alpha1.CategorySecret:
		// A secret scanner may quote the secret anywhere in its message.
		message = ""
	case secret:
		message = withoutQuotes(message, codeOf(r))
	}
	rule := c.ruleTexts(r.Rule)
	if secret {
		rule = rule.ofSecret
	}
	details := v1alpha1.FindingDetails{
		Title:        cut(title(r, message, rule), maxTitle),
		Description:  cut(description(r, message, rule), maxDescription),
		Severity:     r.Severity,
		Score:        r.Score,
		ToolSeverity: OneLine(r.ToolSeverity, maxToolSeverity),
		Remediation:  cut(remediation(r, message, rule, secret), maxRemediation),
		Location:     c.location(r.Location),
	}
	if !secret {
		details.Code = cut(block(codeOf(r)), maxCode)
		details.FixedCode = cut(block(fixedCode(r.Fixes)), maxCode)
	}
	for _, e := range r.Endpoints {
		if len(details.EndpointLocations) == maxEndpoints {
			break
		}
		details.EndpointLocations = append(details.EndpointLocations, v1alpha1.EndpointLocation{
			Type: v1alpha1.EndpointHTTP, Action: OneLine(e.Method, maxEndpointAction), Path: OneLine(e.Path, maxFilePath),
		})
	}
	for _, place := range r.Related {
		if len(details.SupportingFiles) == maxSupportingFiles {
			break
		}
		if location := c.location(place); location != nil {
			details.SupportingFiles = append(details.SupportingFiles, *location)
		}
	}
	return details
}

func (c *scanContext) location(l sarif.Location) *v1alpha1.FileLocation {
	if l.Path == "" && l.Line == 0 || l.Served() {
		return nil
	}
	return &v1alpha1.FileLocation{
		FilePath:   cut(clean(inUTF8(l.Path)), maxFilePath),
		LineNumber: l.Line,
		URL:        c.links.of(l.Path, l.Line),
	}
}

// class returns the result's CWE, or else the rule's id. Muting a class mutes all findings like it, so the class is
// never a sentence or the name of a matcher, which some tools use as the rule's name.
func class(r *sarif.Result) string {
	if len(r.CWEs) > 0 {
		return r.CWEs[0]
	}
	return line(r.RuleID)
}

// suppression returns the result's suppression in its source. The justification may quote the suppressed code.
func suppression(r *sarif.Result, category v1alpha1.FindingCategory) *v1alpha1.FindingSuppression {
	if r.Suppression == nil {
		return nil
	}
	kind, why := v1alpha1.SuppressionExternal, r.Suppression.Justification
	if r.Suppression.InSource {
		kind = v1alpha1.SuppressionInSource
	}
	if showsSecret(r, category) {
		why = withoutQuotes(why, codeOf(r))
	}
	return &v1alpha1.FindingSuppression{Kind: kind, Justification: cut(paragraph(why), maxJustification)}
}

func vulnerability(v *sarif.Vulnerability) *v1alpha1.FindingVulnerability {
	if v == nil {
		return nil
	}
	out := &v1alpha1.FindingVulnerability{ID: OneLine(v.ID, maxVulnerabilityID)}
	for _, alias := range v.Aliases {
		// Two aliases may become equal when cut, and a set refuses duplicates.
		alias = OneLine(alias, maxVulnerabilityID)
		if alias != "" && alias != out.ID && !slices.Contains(out.Aliases, alias) && len(out.Aliases) < maxAliases {
			out.Aliases = append(out.Aliases, alias)
		}
	}
	return out
}

func packageFact(p *sarif.Package) *v1alpha1.FindingPackage {
	if p == nil {
		return nil
	}
	out := &v1alpha1.FindingPackage{
		Name:         OneLine(p.Name, maxPackageName),
		Version:      OneLine(p.Version, maxPackageVersion),
		FixedVersion: OneLine(p.FixedVersion, maxFixedVersion),
	}
	// A package URL that was cut would name another package.
	if purl := line(p.PURL); len(purl) <= maxPURL {
		out.PURL = purl
	}
	return out
}

func confidence(precision string) v1alpha1.Level {
	switch strings.ToLower(strings.TrimSpace(precision)) {
	case "very-high", "high":
		return v1alpha1.LevelHigh
	case "medium":
		return v1alpha1.LevelMedium
	case "low":
		return v1alpha1.LevelLow
	}
	return ""
}

func description(r *sarif.Result, message string, rule *ruleTexts) string {
	parts := distinct(paragraph(message), rule.description)
	if len(parts) == 0 {
		parts = distinct(paragraph(r.Rule.ShortDescription), paragraph(r.RuleID))
	}
	return strings.Join(parts, "\n\n")
}

// fixedCode returns the fixed code if the tool offers exactly one fix with one replacement.
func fixedCode(fixes []sarif.Fix) string {
	if len(fixes) == 1 && len(fixes[0].Inserted) == 1 {
		return fixes[0].Inserted[0]
	}
	return ""
}

// storedFingerprints returns the fingerprints that identify code. Some tools also report the commit, and its author's
// name and address, as fingerprints.
func storedFingerprints(all map[string]string) []v1alpha1.Fingerprint {
	var out []v1alpha1.Fingerprint
	for name, value := range all {
		if fingerprints.IsContent(name, value) && len(name) <= maxFingerprintName && clean(name) == name {
			out = append(out, v1alpha1.Fingerprint{Name: name, Value: cut(clean(value), maxFingerprint)})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.Fingerprint) int { return strings.Compare(a.Name, b.Name) })
	return out[:min(len(out), maxFingerprints)]
}

// distinct drops empty parts and those contained in an earlier part.
func distinct(parts ...string) []string {
	var out []string
	for _, part := range parts {
		if part != "" && !slices.ContainsFunc(out, func(have string) bool { return strings.Contains(have, part) }) {
			out = append(out, part)
		}
	}
	return out
}

// embeddedLink is SARIF's link to a related location: "[here](1)".
var embeddedLink = regexp.MustCompile(`\[([^\[\]\n]{0,512})\]\([0-9]{1,6}\)`)

func withoutLinks(message string) string { return embeddedLink.ReplaceAllString(message, "$1") }

// inImage matches the image in grype's messages.
var inImage = regexp.MustCompile(`( package: \S{1,256}, version \S{1,256} was found) in image \S{1,512}`)

// withoutImage drops the image from grype's message: its tag differs with every build, which would change all findings.
func withoutImage(message string) string { return inImage.ReplaceAllString(message, "$1") }
