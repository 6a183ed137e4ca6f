package main

import (
	"encoding/json"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// sarifOf returns a SARIF file as a scanner writes it, with count findings from the first on.
func sarifOf(count int, finding func(int) *v1alpha1.Finding) ([]byte, error) {
	var rules, results []any
	index := map[string]int{}
	for i := range count {
		spec := &finding(i).Spec
		if _, known := index[spec.RuleID]; !known {
			index[spec.RuleID] = len(rules)
			rules = append(rules, sarifRule(spec))
		}
		results = append(results, sarifResult(spec, index[spec.RuleID]))
	}
	return json.Marshal(map[string]any{"version": "2.1.0", "runs": []any{map[string]any{
		"tool":    map[string]any{"driver": map[string]any{"name": "bench", "rules": rules}},
		"results": results,
	}}})
}

type member = map[string]any

func sarifRule(spec *v1alpha1.FindingSpec) member {
	return member{
		"id": spec.RuleID, "name": spec.RuleID,
		"shortDescription": member{"text": spec.Details.Title},
		"fullDescription":  member{"text": spec.Details.Description},
		"help":             member{"text": spec.Details.Remediation},
		"properties": member{"tags": []string{"security", spec.Class},
			"security-severity": string(spec.Details.Severity)},
	}
}

func sarifResult(spec *v1alpha1.FindingSpec, rule int) member {
	place := spec.Details.Location
	fingerprints := map[string]string{}
	for _, f := range spec.Fingerprints {
		fingerprints[f.Name] = f.Value
	}
	return member{
		"ruleId": spec.RuleID, "ruleIndex": rule, "level": "warning",
		"message": member{"text": spec.Details.Title + " in " + place.FilePath},
		"locations": []any{member{"physicalLocation": member{
			"artifactLocation": member{"uri": place.FilePath},
			"region":           member{"startLine": place.LineNumber, "snippet": member{"text": spec.Details.Code}},
		}}},
		"partialFingerprints": fingerprints,
	}
}
