package sarif

import (
	"regexp"
	"strings"
)

// Package scanners write their facts line by line: "Package: lodash", "* Package Manager: npm", "Severity : HIGH".
const (
	// maxLabel and maxValue bound what counts as a label and its value, in bytes.
	maxLabel = 24
	maxValue = 512
	// maxLines bounds how many lines of a text are read, since labels come first.
	maxLines = 64
)

// labelled returns the labels of the rule's help. They are read once, because a rule may have many results.
func (r *Rule) labelled() map[string]string {
	if r.labels == nil {
		r.labels = labelsOf(withoutExamples(r.Help))
		for label, value := range labelsOf(withoutExamples(r.helpMarkdown)) {
			if _, there := r.labels[label]; !there {
				r.labels[label] = value
			}
		}
		addFixedVersions(r.labels, FirstOf(r.helpMarkdown, r.Help))
	}
	return r.labels
}

var (
	// boldFact matches a line of Markdown with a label in bold, as Scorecard writes: "**Severity**: High".
	boldFact = regexp.MustCompile(`^(?:[-*] )?\*\*[^*]{1,80}(?:\*\*:|:\*\*)`)
	// beforeExample matches a line that an example follows or begins with: a blank, indented or fenced one.
	beforeExample = regexp.MustCompile("^(?:\\s*$|  |\t|```|~~~)")
)

// withoutExamples returns the lines of a rule's help that state facts about the rule: those with which it begins, up to
// a blank, indented or fenced one, and all with a bold label. Others may belong to an example of bad code, which would
// choose the severity and the package.
func withoutExamples(help string) string {
	var kept strings.Builder
	beginning := true
	lines := 0
	for line := range strings.Lines(strings.TrimSpace(help)) {
		if lines++; lines > maxLines {
			break
		}
		beginning = beginning && !beforeExample.MatchString(line)
		if beginning || boldFact.MatchString(line) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// fixedVersionsTable is the header of osv-scanner's table of fixed versions.
const fixedVersionsTable = "| Vulnerability ID | Package Name | Fixed Version |"

// fixedLabel returns the label under which a package's fixed versions are stored. No text can contain it, because
// labels end at the first colon.
func fixedLabel(name string) string { return "fixed:" + name }

// addFixedVersions reads osv-scanner's table. A package may have a fixed version per range.
func addFixedVersions(labels map[string]string, help string) {
	_, table, found := strings.Cut(help, fixedVersionsTable)
	if !found {
		return
	}
	lines := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if lines++; lines > maxLines || len(cells) != 3 {
			if lines > 1 {
				return
			}
			continue // the rest of the header's line
		}
		name, version := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		if strings.Trim(version, "- ") == "" {
			continue
		}
		label := fixedLabel(name)
		if known := labels[label]; known == "" {
			labels[label] = version
		} else if !strings.Contains(", "+known+", ", ", "+version+", ") && len(known) < maxValue {
			labels[label] = known + ", " + version
		}
	}
}

// labelsOf returns the values by lower-case label. The first value of a label counts, and lines without a label are
// ignored.
func labelsOf(text string) map[string]string {
	out := map[string]string{}
	lines := 0
	for line := range strings.Lines(text) {
		if lines++; lines > maxLines {
			break
		}
		label, value, found := strings.Cut(line, ":")
		label = strings.ToLower(strings.Trim(label, " \t*-_"))
		value = strings.Trim(value, " \t\r\n*_")
		if !found || label == "" || value == "" || len(label) > maxLabel || len(value) > maxValue {
			continue
		}
		if _, there := out[label]; !there {
			out[label] = value
		}
	}
	return out
}

// firstLabels holds the labels with which the messages of package scanners begin.
var firstLabels = map[string]bool{
	"artifact": true, "component": true, "package": true, "package name": true, "severity": true, "vulnerability": true,
	"vulnerable module": true,
}

// factsOf returns the labels of a message that begins with one of firstLabels; otherwise none. Other messages quote
// code, whose author could choose the severity and the package by labels.
func factsOf(message string) map[string]string {
	first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	for label := range labelsOf(first) {
		if firstLabels[label] {
			return labelsOf(message)
		}
	}
	return nil
}
