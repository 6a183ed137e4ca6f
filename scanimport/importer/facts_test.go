package importer

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// unequal holds the facts about which comparedFacts and factsDigest of internal/findingstate differ, with the reason. A
// change of any other fact rewrites a finding and is recorded as updated, or does neither.
var unequal = map[string]string{
	"evidence":    "it is kept only for the next import",
	"suppression": "its changes have transitions of their own",
	// No import can remove the difference, because no file has these: other clients add them, which is recorded.
	"agent":                      "a file has only its name",
	"details.exploitFeasibility": "no file has it",
	"details.exploitWalkthrough": "no file has it",
	"details.location":           "a file has only path and line",
	"details.remediationEffort":  "no file has it",
	"details.supportingFiles":    "a file has only path and line",
	"details.validationEvidence": "no file has it",
	"detectedAt":                 "it stays that of the first import",
}

func TestAChangeOfFactsIsRecordedIfItRewritesAFinding(t *testing.T) {
	crd, err := corpus.CRD("Finding")
	harness.Must(t, err)
	schema := corpus.SchemaOf(crd).Properties["spec"]
	full := shortened((&corpus.Generator{Full: true}).Value(&schema, "spec", 0))
	before, _ := decodedSpec(t, full)
	compared, digest := comparedFacts(before, before), recordedFacts(before)
	differ := map[string]bool{}
	corpus.ChangeEach(full, "", func(path string) {
		changed, ok := decodedSpec(t, full)
		if !ok {
			return // a text instead of a time
		}
		rewrites := !bytes.Equal(comparedFacts(changed, before), compared)
		records := recordedFacts(changed) != digest
		if rewrites == records {
			return
		}
		listed := func(fact string) bool {
			return path == "."+fact || strings.HasPrefix(path, "."+fact+".") || strings.HasPrefix(path, "."+fact+"[")
		}
		for fact := range unequal {
			if listed(fact) {
				differ[fact] = true
				return
			}
		}
		if !differ[path] {
			t.Errorf("spec%s: comparedFacts rewrites a finding: %t; factsDigest of internal/findingstate records an update: %t; "+
				"make them agree, or add the reason to unequal", path, rewrites, records)
		}
		differ[path] = true
	})
	for fact := range unequal {
		if !differ[fact] {
			t.Errorf("comparedFacts and factsDigest do not differ about %s: remove it from unequal", fact)
		}
	}
}

// shortened returns generated JSON with short texts and one item per list.
func shortened(value any) any {
	switch value := value.(type) {
	case string:
		return value[:min(len(value), len("2026-01-02T03:04:05Z"))]
	case []any:
		return []any{shortened(value[0])}
	case map[string]any:
		for name := range value {
			value[name] = shortened(value[name])
		}
	case int64:
		return float64(value) // as JSON is decoded
	}
	return value
}

// decodedSpec returns the spec that JSON holds; ok is false if the Go type cannot hold it.
func decodedSpec(t *testing.T, spec any) (decoded *v1alpha1.FindingSpec, ok bool) {
	t.Helper()
	decoded = &v1alpha1.FindingSpec{}
	return decoded, json.Unmarshal(harness.JSON(t, spec), decoded) == nil
}

// recordedFacts returns the digest whose change is recorded as an update.
func recordedFacts(spec *v1alpha1.FindingSpec) string {
	return findingstate.Observe(&v1alpha1.Finding{Spec: *spec}, nil, time.Unix(0, 0)).FactsDigest
}
