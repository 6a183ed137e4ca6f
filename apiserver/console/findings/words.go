package findings

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/client"
)

// reasons of a decision, in the order of how often they are given.
var reasons = []struct{ Value, Word string }{
	{"false-positive", "false positive"},
	{"not-reachable", "not reachable"},
	{"used-in-tests", "used in tests"},
	{"mitigated-elsewhere", "mitigated elsewhere"},
	{"accepted-risk", "accepted risk"},
	{"will-not-fix", "will not fix"},
	{"duplicate", "duplicate"},
}

// choices are what can be decided.
var choices = []struct{ Value, Word string }{{"muted", "Mute"}, {"active", "Confirm"}, {"open", "Open again"}}

// until is the day on which the decision ends, empty without one.
func (d decision) until() string {
	if d.ExpiresAt == nil {
		return ""
	}
	return d.ExpiresAt.UTC().Format(time.DateOnly)
}

// keys that the list listens to.
var keys = []struct{ Key, Does string }{
	{"j", "next finding"},
	{"k", "finding before"},
	{"Enter", "show the finding beside the list"},
	{"Esc", "close what is shown"},
	{"x", "select, or take out of the selection"},
	{"m", "mute"},
	{"c", "confirm"},
	{"o", "open again"},
	{"u", "undo the last decision"},
	{"/", "search"},
	{"?", "show these keys"},
}

// standing is how a finding stands, in a word.
func (r row) standing() string {
	switch {
	case r.Status == "closed":
		return "closed"
	case r.UserStatus == "active", r.UserStatus == "open" && r.Verdict.UserStatus != nil && *r.Verdict.UserStatus == "active":
		return "confirmed"
	case r.Status == "open_muted":
		return "muted"
	}
	return "open"
}

// decider is who decided: a person, else a policy or a decision in a pull request.
func (r row) decider() string {
	switch {
	case r.UserStatus != "open":
		return r.DecidedBy
	case r.Verdict.UserStatus == nil:
		return ""
	case r.Verdict.Policy != "":
		return "policy/" + r.Verdict.Policy
	}
	return "issue/" + r.Verdict.Issue
}

// place is a line of a file.
func place(path string, line int32) string {
	if line == 0 {
		return path
	}
	return path + ":" + strconv.Itoa(int(line))
}

func (v view) orderName() string {
	for _, o := range orders {
		if v.sorted(o.Sort, o.Order) {
			return o.Label
		}
	}
	return "sort"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// thousands writes a number with its thousands apart.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	var out strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(digit)
	}
	return out.String()
}

// word is what a decision is called.
func word(userStatus string) string {
	switch userStatus {
	case "active":
		return "Confirmed"
	case "muted":
		return "Muted"
	}
	return "Open"
}

func reasonWord(reason string) string {
	for _, known := range reasons {
		if known.Value == reason {
			return known.Word
		}
	}
	return reason
}

func score(score float32) string { return strconv.FormatFloat(float64(score), 'f', 1, 32) }

// fact is a line of the finding's facts. Filter is the parameter that lists the findings that share it.
type fact struct{ Name, Value, Filter string }

// facts returns those that the finding has.
func (s shown) facts() []fact {
	f := s.Facts
	lines := []fact{
		{"Tool", f.Tool, "tool"},
		{"Rule", f.RuleId, "rule"},
		{"Severity of the tool", f.ToolSeverity, ""},
		{"Class", f.Class, "class"},
		{"Vulnerability", f.Vulnerability.Id, "vulnerability"},
		{"Also known as", strings.Join(f.Vulnerability.Aliases, ", "), ""},
		{"Package", f.Package.Name, "package"},
		{"Version", f.Package.Version, ""},
		{"Fixed in", f.Package.FixedVersion, ""},
		{"Secret", f.SecretType, ""},
		{"Suppressed in the source", f.Suppression.Justification, ""},
		{"Owner", s.Project.Context.Owner, "owner"},
		{"Deployment", s.Project.Context.Deployment, ""},
		{"Commit", s.CommitHash, ""},
	}
	if f.Category != nil {
		lines = append(lines, fact{"Category", string(*f.Category), "category"})
	}
	if criticality := s.Project.Context.BusinessCriticality; criticality != nil {
		lines = append(lines, fact{"Criticality of the project", string(*criticality), ""})
	}
	if exposure := s.Project.Context.Exposure; exposure != nil {
		lines = append(lines, fact{"Exposure of the project", string(*exposure), ""})
	}
	return slices.DeleteFunc(lines, func(f fact) bool { return f.Value == "" })
}

// row is the finding as the list shows it, as far as its standing goes.
func (s shown) row() row {
	r := row{Status: string(s.Status), DecidedBy: s.DecidedBy}
	r.UserStatus = string(s.UserStatus)
	r.Verdict.UserStatus = (*string)(s.Verdict.UserStatus)
	return r
}

func newestFirst(history []client.Transition) []client.Transition {
	history = slices.Clone(history)
	slices.SortStableFunc(history, func(a, b client.Transition) int { return int(b.Seq - a.Seq) })
	return history
}

// happened says what a transition was.
func happened(t client.Transition) string {
	if t.From == "" || t.To == "" || t.From == t.To {
		return t.Type
	}
	return t.Type + ": " + t.From + " to " + t.To
}
