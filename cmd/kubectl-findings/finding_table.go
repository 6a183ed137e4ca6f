package main

import (
	"strconv"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// findingColumns returns the columns of `kubectl get findings`. The title, which may be long, comes last, so that it
// does not shift the other columns.
func findingColumns(namespaces bool) []column {
	columns := []column{
		{name: "Name"}, {name: "Severity"}, {name: "State"}, {name: "Triage"}, {name: "Stale"}, {name: "Project"}, {name: "Age"},
		{"Repository", true}, {"File", true}, {"Line", true}, {"Score", true}, {"Vulnerability", true}, {"Package", true},
		{"Class", true}, {"Tool", true}, {"Triaged By", true},
		{"Why", true}, {"Until", true}, {"Suppressed", true}, {"Justification", true}, {name: "Title"},
	}
	if namespaces {
		return append([]column{{name: "Namespace"}}, columns...)
	}
	return columns
}

func findingRow(f *v1alpha1.Finding, now time.Time, wide, namespaces bool) row {
	title, line := f.Spec.Details.Title, ""
	if !wide {
		title = shortened(title, titleLength)
	}
	vulnerability, inPackage, suppressed, justification := "", "", "", ""
	if s := f.Spec.Suppression; s != nil {
		suppressed, justification = string(s.Kind), s.Justification
	}
	until := ""
	if end := f.Spec.Triage.ExpiresAt; end != nil {
		until = instant(end)
	}
	if v := f.Spec.Vulnerability; v != nil {
		vulnerability = v.ID
	}
	if p := f.Spec.Package; p != nil {
		inPackage = p.Name
	}
	at := f.Spec.Details.Place()
	if at.LineNumber > 0 {
		line = strconv.Itoa(int(at.LineNumber))
	}
	r := row{
		f.Name, string(f.Spec.Details.Severity), string(findingquery.StateOf(f)), string(findingstate.UserStatus(f)),
		findingstate.StaleReason(f), string(f.Spec.ProjectRef.Name),
		ago(madeAt(f), now), string(f.Spec.RepositoryRef.Name), at.FilePath, line, f.Spec.Details.Score, vulnerability,
		inPackage, f.Spec.Class, f.Spec.Tool, f.Spec.Triage.By, string(f.Spec.Triage.Reason), until,
		suppressed, justification, title,
	}
	if namespaces {
		return append(row{f.Namespace}, r...)
	}
	return r
}
