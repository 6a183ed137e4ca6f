package export

import (
	"cmp"
	"io"
	"net/url"
	"strings"
	"unicode"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
)

// maxRules is how many rules of a run are described. The described rules are the only memory that grows with a
// run. Results of further rules only name the rule's id, which SARIF allows.
const maxRules = 10_000

// unknownTool replaces a missing tool name: SARIF requires one for each run.
const unknownTool = "unknown"

// SARIF writes a SARIF 2.1.0 log with one run for each tool that has findings.
func SARIF(w io.Writer, tools []string, findings func(tool string) Findings) error {
	out := &sarifWriter{w: w, rules: map[string]int{}}
	out.put(`{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[`)
	runs := 0
	for _, tool := range tools {
		wrote, err := out.run(cmp.Or(tool, unknownTool), findings(tool), runs > 0)
		if err != nil {
			return err
		}
		if wrote {
			runs++
		}
	}
	out.put("]}\n")
	return out.err
}

// sarifWriter writes JSON and keeps the first error of its writer.
type sarifWriter struct {
	w   io.Writer
	err error
	// rules maps the rules of the run to their indexes.
	rules map[string]int
	order []sarifRule
}

func (s *sarifWriter) put(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, text)
	}
}

func (s *sarifWriter) value(value any) {
	encoded, err := render.JSON(value)
	s.err = cmp.Or(s.err, err)
	s.put(string(encoded))
}

// run writes a run, unless it would have no results. The rules are known only after all results are written, so
// the tool comes last.
func (s *sarifWriter) run(tool string, findings Findings, follows bool) (wrote bool, err error) {
	clear(s.rules)
	s.order = []sarifRule{}
	for f, err := range findings {
		if err != nil {
			return wrote, err
		}
		switch {
		case wrote:
			s.put(",\n")
		case follows:
			s.put(`,{"results":[`)
		default:
			s.put(`{"results":[`)
		}
		wrote = true
		if s.value(s.result(f)); s.err != nil {
			return wrote, s.err
		}
	}
	if wrote {
		s.put(`],"tool":`)
		s.value(sarifTool{sarifDriver{Name: tool, Rules: s.order}})
		s.put("}")
	}
	return wrote, s.err
}

type (
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId,omitempty"`
		RuleIndex    *int               `json:"ruleIndex,omitempty"`
		Level        string             `json:"level"`
		Message      sarifMessage       `json:"message"`
		Locations    []sarifLocation    `json:"locations,omitempty"`
		Fingerprints map[string]string  `json:"fingerprints,omitempty"`
		Suppressions []sarifSuppression `json:"suppressions"`
		Properties   sarifProperties    `json:"properties"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int32 `json:"startLine"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification,omitempty"`
	}
	sarifProperties struct {
		FindingID  string `json:"findingId"`
		Repository string `json:"repository"`
		Project    string `json:"project"`
		Status     string `json:"status"`
		UserStatus string `json:"userStatus"`
		Severity   string `json:"severity"`
		// SecuritySeverity is the score, if it corresponds to the severity.
		SecuritySeverity string   `json:"security-severity,omitempty"`
		Vulnerability    string   `json:"vulnerability,omitempty"`
		Package          string   `json:"package,omitempty"`
		Tags             []string `json:"tags,omitempty"`
	}
)

func (s *sarifWriter) result(f *openapi.FindingFull) sarifResult {
	facts := &f.Facts
	out := sarifResult{
		RuleID: facts.RuleId, RuleIndex: s.ruleIndex(facts.RuleId), Level: levels[f.Details.Severity],
		Message: sarifMessage{message(&f.Details)}, Locations: locations(f.Details.Location),
		Suppressions: suppressions(f),
		Properties: sarifProperties{
			FindingID: f.Id, Repository: f.Repo.Id, Project: f.Project.Id, Status: string(f.Status),
			UserStatus: string(f.UserStatus), Severity: string(f.Details.Severity),
			Vulnerability: facts.Vulnerability.Id, Package: cmp.Or(facts.Package.Purl, facts.Package.Name),
		},
	}
	if given := score(f); sarif.Rates(given, v1alpha1.Level(f.Details.Severity)) {
		out.Properties.SecuritySeverity = given
	}
	if facts.Class != "" {
		out.Properties.Tags = []string{facts.Class}
	}
	if len(f.Fingerprints) > 0 {
		out.Fingerprints = make(map[string]string, len(f.Fingerprints))
		for _, known := range f.Fingerprints {
			out.Fingerprints[known.Name] = known.Value
		}
	}
	return out
}

// ruleIndex returns the index of a rule in the run; nil if the run does not describe it.
func (s *sarifWriter) ruleIndex(id string) *int {
	index, known := s.rules[id]
	if !known {
		if id == "" || len(s.order) == maxRules {
			return nil
		}
		index = len(s.order)
		s.rules[id] = index
		s.order = append(s.order, sarifRule{id})
	}
	return &index
}

var levels = map[openapi.Severity]string{"high": "error", "medium": "warning", "low": "note"}

// message returns the title and the description; only the description if its first line or sentence is the title.
func message(d *openapi.Details) string {
	switch {
	case d.Description == "":
		return d.Title
	case repeats(d.Description, d.Title):
		return d.Description
	}
	return d.Title + "\n\n" + d.Description
}

// repeats reports whether the description begins with the title, as a line or a sentence. It compares word by word,
// because the description may break the lines of a sentence that the title has on one.
func repeats(description, title string) bool {
	rest := description
	for i, word := range strings.Fields(title) {
		space, next := cutSpace(rest)
		after, found := strings.CutPrefix(next, word)
		if !found || i > 0 && space == "" {
			return false
		}
		rest = after
	}
	space, rest := cutSpace(rest)
	return rest == "" || strings.ContainsAny(space, "\r\n") || space != "" && isSentence(title)
}

// cutSpace cuts the white space with which the text begins.
func cutSpace(text string) (space, rest string) {
	rest = strings.TrimLeftFunc(text, unicode.IsSpace)
	return text[:len(text)-len(rest)], rest
}

// isSentence reports whether the text ends as a sentence, within quotes or brackets or not.
func isSentence(text string) bool {
	text = strings.TrimRight(text, "\"')]")
	return text != "" && strings.ContainsRune(".!?", rune(text[len(text)-1]))
}

func locations(l openapi.FileLocation) []sarifLocation {
	if l.FilePath == "" {
		return nil
	}
	out := sarifPhysical{Artifact: sarifArtifact{uri(l.FilePath)}}
	if l.LineNumber > 0 {
		out.Region = &sarifRegion{l.LineNumber}
	}
	return []sarifLocation{{out}}
}

// uri returns the URI reference for a source file's path; the address of a served resource stays unchanged.
func uri(path string) string {
	if (&sarif.Location{Path: path}).Served() {
		return path
	}
	return (&url.URL{Path: path}).String()
}

// suppressions returns why a finding needs no action: because its source suppresses it, and because spec.triage mutes
// it, else because a verdict does, which is a policy's or a decision in a pull request. An empty list states that the
// result is not suppressed.
func suppressions(f *openapi.FindingFull) []sarifSuppression {
	out := []sarifSuppression{}
	if own := f.Facts.Suppression; own.Kind != nil {
		out = append(out, accepted(string(*own.Kind), own.Justification))
	}
	verdict := &f.Verdict
	switch {
	case f.UserStatus == openapi.UserStatusMuted:
		out = append(out, accepted(external, why(text(f.Reason), f.Comments, f.DecidedBy)))
	case text(verdict.UserStatus) == string(openapi.UserStatusMuted):
		by := verdict.By
		if verdict.Policy != "" {
			by = "policy/" + verdict.Policy + " of " + by
		}
		out = append(out, accepted(external, why(text(verdict.Reason), verdict.Comment, by)))
	}
	return out
}

// external is the kind of a suppression outside the source.
const external = "external"

func accepted(kind, justification string) sarifSuppression {
	return sarifSuppression{Kind: kind, Status: "accepted", Justification: justification}
}

// why joins the details of a decision: "false-positive: the path is validated (apikey/ci)".
func why(reason, comment, by string) string {
	var parts []string
	for _, part := range []string{reason, comment} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	out := strings.Join(parts, ": ")
	if by != "" {
		out = strings.TrimSpace(out + " (" + by + ")")
	}
	return out
}
