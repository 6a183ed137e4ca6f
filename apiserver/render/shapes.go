package render

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// shapeV1 writes the members of shape v1, in the order of the contract.
func shapeV1(w *writer, f *v1alpha1.Finding) {
	spec, details := &f.Spec, &f.Spec.Details
	location, endpoint := valueOf(details.Location), firstHTTPEndpoint(details.EndpointLocations)
	w.text("id", f.Name)
	w.shared("name", titleText, details.Title)
	w.shared("description", descriptionText, details.Description)
	w.text("agent_name", valueOf(spec.Agent).Name)
	w.text("class", spec.Class)
	w.enum("attack_feasibility", string(details.ExploitFeasibility))
	w.shared("attack_walkthrough", walkthroughText, details.ExploitWalkthrough)
	w.enum("confidence", string(spec.Confidence))
	w.text("severity", string(details.Severity))
	w.sharedByMany("remediation", remediationText, func() { appendText(w.buffer, details.Remediation) })
	w.enum("remediation_effort", string(details.RemediationEffort))
	w.text("status", string(findingstate.State(f)))
	w.text("user_status", string(findingstate.UserStatus(f)))
	w.text("created_at", Timestamp(findingstate.CreatedAt(f).Time))
	w.hole("updated_at", updatedAtTime)
	w.text("endpoint_method", endpoint.Action)
	w.text("endpoint_path", endpoint.Path)
	w.text("handler_class_name", location.ClassName)
	w.text("handler_method_name", location.MethodName)
	w.shared("vulnerable_code_block", codeText, details.Code)
	w.shared("fixed_code_block", fixedCodeText, details.FixedCode)
	w.text("secret_type", spec.SecretType)
	w.text("repo_id", string(spec.RepositoryRef.Name))
	w.hole("repo_url", repositoryURL)
	w.text("repo_commit_hash", spec.CommitHash)
	w.text("project_id", string(spec.ProjectRef.Name))
	w.object("location", func() { w.locationV1(location) })
	objects(w, "supporting_files", details.SupportingFiles, w.locationV1)
	w.hole("project", projectV1)
}

func (w *writer) locationV1(l v1alpha1.FileLocation) {
	w.text("file_path", l.FilePath)
	w.text("hash", l.Hash)
	w.text("url", l.URL)
	w.number("line", l.LineNumber)
}

// shapeV2 writes the members of shape v2, in the order of the contract.
func shapeV2(w *writer, f *v1alpha1.Finding) {
	spec := &f.Spec
	agent, scan := valueOf(spec.Agent), valueOf(spec.Scan)
	w.text("id", f.Name)
	w.hole("organization_id", organizationID)
	w.sharedByMany("comments", commentsText, func() { appendText(w.buffer, spec.Triage.Comments) })
	w.text("created_at", Timestamp(findingstate.CreatedAt(f).Time))
	w.hole("updated_at", updatedAtTime)
	w.text("status", string(findingstate.State(f)))
	w.text("user_status", string(findingstate.UserStatus(f)))
	w.sharedByMany("agent", agentObject, func() { w.write(func() { w.agent(agent) }) })
	w.object("details", func() { w.detailsV2(&spec.Details) })
	w.object("project", func() {
		w.text("id", string(spec.ProjectRef.Name))
		w.members(projectWords)
	})
	w.object("repo", func() {
		w.text("id", string(spec.RepositoryRef.Name))
		w.members(repositoryWords)
	})
	w.sharedByMany("scan_details", scanObject, func() { w.write(func() { w.scan(scan) }) })
}

func (w *writer) agent(a v1alpha1.FindingAgent) {
	w.text("custom_agent_vector_id", a.CustomAgentVectorID)
	w.text("description", a.Description)
	w.text("name", a.Name)
	w.text("vector", a.Vector)
}

func (w *writer) scan(s v1alpha1.FindingScan) {
	w.time("analyzed_at", s.AnalyzedAt)
	w.time("rejected_at", s.RejectedAt)
	w.text("scan_id", s.ScanID)
	w.time("verified_at", s.VerifiedAt)
}

func (w *writer) detailsV2(d *v1alpha1.FindingDetails) {
	w.shared("code", codeText, d.Code)
	w.shared("description", descriptionText, d.Description)
	w.enum("exploit_feasibility", string(d.ExploitFeasibility))
	w.shared("exploit_walkthrough", walkthroughText, d.ExploitWalkthrough)
	w.shared("fixed_code", fixedCodeText, d.FixedCode)
	w.sharedByMany("remediation", remediationText, func() { appendText(w.buffer, d.Remediation) })
	w.enum("remediation_effort", string(d.RemediationEffort))
	w.text("severity", string(d.Severity))
	w.shared("title", titleText, d.Title)
	objects(w, "endpoint_locations", d.EndpointLocations, w.endpoint)
	w.object("location", func() { w.locationV2(valueOf(d.Location)) })
	objects(w, "supporting_files", d.SupportingFiles, w.locationV2)
	objects(w, "validation_evidence", d.ValidationEvidence, w.evidence)
}

func (w *writer) endpoint(e v1alpha1.EndpointLocation) {
	w.text("type", string(e.Type))
	w.text("action", e.Action)
	w.text("path", e.Path)
}

func (w *writer) locationV2(l v1alpha1.FileLocation) {
	w.text("class_name", l.ClassName)
	w.text("file_path", l.FilePath)
	w.text("function_signature", l.FunctionSignature)
	w.text("hash", l.Hash)
	w.text("method_name", l.MethodName)
	w.text("url", l.URL)
	w.number("line_number", l.LineNumber)
}

func (w *writer) evidence(e v1alpha1.ValidationEvidence) {
	w.text("criteria", e.Criteria)
	w.text("rationale", e.Rationale)
}

func firstHTTPEndpoint(list []v1alpha1.EndpointLocation) v1alpha1.EndpointLocation {
	for _, endpoint := range list {
		if endpoint.Type == v1alpha1.EndpointHTTP {
			return endpoint
		}
	}
	return v1alpha1.EndpointLocation{}
}
