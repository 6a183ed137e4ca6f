package sarif

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// cweInText matches "CWE-79", "cwe-079", "external/cwe/cwe-079", "CWE: 79".
	cweInText = regexp.MustCompile(`(?i)(?:^|[^a-z])cwe[-_: ]{0,2}0*([1-9][0-9]{0,5})(?:$|[^0-9])`)
	cweNumber = regexp.MustCompile(`^0*([1-9][0-9]{0,5})$`)
)

func ruleCWEs(w *wireRule) []string {
	var out []string
	for _, tag := range w.Properties.Tags {
		out = addCWEs(out, string(tag))
	}
	out = addCWEs(out, string(w.Properties.CWE))
	for _, r := range w.Relationships {
		out = addReference(out, r.Target)
	}
	return out
}

func resultCWEs(w *wireResult, rule *Rule) []string {
	var out []string
	for _, taxon := range w.Taxa {
		out = addReference(out, taxon)
	}
	for _, tag := range w.Properties.Tags {
		out = addCWEs(out, string(tag))
	}
	out = addCWEs(out, string(w.Properties.CWE))
	for _, cwe := range rule.CWEs {
		out = addOnce(out, cwe)
	}
	return out
}

func addReference(list []string, ref wireReference) []string {
	if number := cweNumber.FindStringSubmatch(string(ref.ID)); number != nil &&
		strings.EqualFold(string(ref.ToolComponent.Name), "cwe") {
		return addOnce(list, "CWE-"+number[1])
	}
	return addCWEs(list, string(ref.ID))
}

func addCWEs(list []string, s string) []string {
	for range maxPlaces {
		at := cweInText.FindStringSubmatchIndex(s)
		if at == nil {
			break
		}
		list = addOnce(list, "CWE-"+s[at[2]:at[3]])
		s = s[at[3]:] // the byte after the number may be the one before the next CWE
	}
	return list
}

func addOnce(list []string, s string) []string {
	if len(list) == maxPlaces || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
