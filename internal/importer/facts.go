package importer

import (
	"bytes"
	"encoding/json"

	appsecv1alpha1 "github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// sameFacts says whether two findings say the same. What depends on the scan alone, and
// so changes at every commit, is not compared; nor is what no scanner's file says and
// somebody else may have added, for it would look like a difference that no import settles.
func sameFacts(a, b *appsecv1alpha1.FindingSpec) bool {
	return bytes.Equal(comparedFacts(a), comparedFacts(b))
}

func comparedFacts(spec *appsecv1alpha1.FindingSpec) []byte {
	c := spec.DeepCopy()
	c.DetectedAt, c.CommitHash, c.Scan = nil, "", nil
	c.Closed = nil
	c.Triage = appsecv1alpha1.FindingTriage{}
	if c.Agent != nil {
		c.Agent = &appsecv1alpha1.FindingAgent{Name: c.Agent.Name}
	}
	d := &c.Details
	d.ExploitFeasibility, d.ExploitWalkthrough, d.RemediationEffort = "", "", ""
	d.EndpointLocations, d.ValidationEvidence = nil, nil
	if d.Location != nil {
		d.Location = &appsecv1alpha1.FileLocation{FilePath: d.Location.FilePath, LineNumber: d.Location.LineNumber}
	}
	for i, f := range d.SupportingFiles {
		d.SupportingFiles[i] = appsecv1alpha1.FileLocation{FilePath: f.FilePath, LineNumber: f.LineNumber}
	}
	// JSON leaves out what is empty, so nil and an empty list are the same.
	encoded, err := json.Marshal(c)
	if err != nil {
		panic("a FindingSpec has no member that JSON cannot encode: " + err.Error())
	}
	return encoded
}
