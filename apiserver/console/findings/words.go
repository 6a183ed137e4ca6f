package findings

import (
	"strings"

	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// keys are the list's keyboard shortcuts.
var keys = []struct{ Key, Does string }{
	{"j", "next finding"},
	{"k", "previous finding"},
	{"Enter", "show the finding beside the list"},
	{"Esc", "close what is shown"},
	{"x", "select or deselect"},
	{"m", "mute"},
	{"c", "confirm"},
	{"o", "withdraw the decision"},
	{"u", "undo the last decision"},
	{"/", "search"},
	{"?", "show these keys"},
}

// standing returns the status of a finding in one word.
func (r row) standing() string {
	switch {
	case r.Status == "closed":
		return "closed"
	case r.UserStatus == "active", r.UserStatus == "open" && r.Verdict != nil && *r.Verdict == "active":
		return "confirmed"
	case r.Status == "open_muted":
		return "muted"
	}
	return "open"
}

// standingBadge shows the status of a finding.
var standingBadge = ui.Fixed(badge, "open", "confirmed", "muted", "closed")

// decider returns the author of the finding's own decision in force, else the policy or the review issue of the
// verdict.
func (r row) decider() string {
	switch {
	case r.UserStatus != "open":
		return r.DecidedBy
	case r.Verdict == nil:
		return ""
	case r.Policy != "":
		return "policy/" + r.Policy
	}
	return "issue/" + r.Issue
}

func (v view) orderName() string {
	for _, o := range orders {
		if v.sorted(o.Sort, o.Order) {
			return o.Label
		}
	}
	return "sort"
}

// facts returns the facts of the finding. Shared values link to the list of findings with the same value.
func (s shown) facts() []ui.Fact {
	shared := func(name, value, filter string) ui.Fact {
		return ui.Fact{Name: name, Value: value, Link: newView(nil).with(filter, value)}
	}
	plain := func(name, value string) ui.Fact { return ui.Fact{Name: name, Value: value} }
	f, about := s.Facts, s.Project.Context
	return []ui.Fact{
		shared("Tool", f.Tool, "tool"),
		shared("Rule", f.RuleId, "rule"),
		shared("File", s.Details.Location.FilePath, "file"),
		plain("Severity according to the tool", f.ToolSeverity),
		shared("Class", f.Class, "class"),
		shared("Vulnerability", f.Vulnerability.Id, "vulnerability"),
		plain("Also known as", strings.Join(f.Vulnerability.Aliases, ", ")),
		shared("Package", f.Package.Name, "package"),
		plain("Version", f.Package.Version),
		plain("Fixed in", f.Package.FixedVersion),
		plain("Secret", f.SecretType),
		plain("Suppressed in the source", f.Suppression.Justification),
		shared("Owner", about.Owner, "owner"),
		plain("Deployment", about.Deployment),
		plain("Commit", s.CommitHash),
		shared("Category", string(ptr.Deref(f.Category, "")), "category"),
		plain("Criticality of the project", string(ptr.Deref(about.BusinessCriticality, ""))),
		plain("Exposure of the project", string(ptr.Deref(about.Exposure, ""))),
	}
}

// row returns the part of the finding's row that standing needs.
func (s shown) row() row {
	return row{Standing: s.now(), Status: string(s.Status), Verdict: (*string)(s.Verdict.UserStatus)}
}

// happened describes a transition.
func happened(t client.Transition) string {
	if t.From == "" || t.To == "" || t.From == t.To {
		return t.Type
	}
	word := func(value string) string {
		switch t.Type {
		case "triaged", "expired", "stale", "fresh", "judged":
			return decision.Words[value]
		}
		return filterNamed("status").word(value)
	}
	return t.Type + ": " + word(t.From) + " to " + word(t.To)
}
