package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// shape holds the members of a shape as the contract's text lists them. They are copied from there
// by hand and not taken from openapi.yaml, so that mistakes in that document are found too. A type
// that ends with "?" may be null: a timestamp or an enumerated value that is unknown.
type shape map[string]string

// members makes a shape from lines of "type: names".
func members(lines ...string) shape {
	s := shape{}
	for _, line := range lines {
		kind, names, _ := strings.Cut(line, ": ")
		for name := range strings.FieldsSeq(names) {
			s[name] = kind
		}
	}
	return s
}

// and returns the shape with additional members.
func (s shape) and(lines ...string) shape {
	more := members(lines...)
	maps.Copy(more, s)
	return more
}

var (
	envelopeShape = members("boolean: has_more", "array: items", "string: next_cursor", "integer: total")
	errorShape    = members("string: error detail code field") // all but error are additions

	findingV2Shape = members("string: id organization_id comments created_at updated_at status user_status",
		"object: agent details project repo scan_details")
	agentShape   = members("string: custom_agent_vector_id description name vector")
	detailsShape = members("string: code description exploit_walkthrough fixed_code remediation severity title",
		"string?: exploit_feasibility remediation_effort",
		"array: endpoint_locations supporting_files validation_evidence", "object: location")
	fileLocationShape   = members("string: class_name file_path function_signature hash method_name url", "integer: line_number")
	findingProjectShape = members("string: id name purpose", "object: context")
	projectContextShape = members("string?: business_criticality exposure", "string: deployment owner", "array: sensitive_data_types")
	findingRepoShape    = members("string: id name provider url")
	scanDetailsShape    = members("string: scan_id", "string?: analyzed_at rejected_at verified_at")

	// Additions: the members of shape v2, and these.
	findingFullShape = findingV2Shape.and("string: closed_scan_id commit_hash decided_by decision_stale", "string?: closed_at expires_at reason", "object: facts verdict", "array: fingerprints")
	verdictShape     = members("string: by comment policy review_issue", "string?: reason since user_status")
	factsShape       = members("string: class rule_id secret_type tool tool_severity", "string?: category confidence", "number?: score",
		"object: package suppression vulnerability")
	suppressionShape   = members("string: justification", "string?: kind")
	packageShape       = members("string: fixed_version name purl version")
	vulnerabilityShape = members("string: id", "array: aliases")
	fingerprintShape   = members("string: name value")
	findingCountsShape = members("integer: total", "array: fields")
	fieldCountsShape   = members("string: field", "integer: distinct", "array: values")
	valueCountShape    = members("string: value", "integer: count")
	trendsShape        = members("array: days groups", "object?: time_to_close")
	trendDayShape      = members("string: day", "integer: closed muted open_muted opened", "object: open", "object?: age time_to_close")
	trendOpenShape     = members("integer: critical high low medium total")
	trendSpreadShape   = members("integer: median p90")
	trendGroupShape    = members("string: since value", "object: after before")
	whoAmIShape        = members("string: organization_id key expires_at", "array: scopes", "integer: requests_per_minute", "boolean: requires_reason")
	historyShape       = members("string: finding_id", "array: transitions")
	issueHistoryShape  = members("string: issue_id", "array: transitions")
	transitionShape    = members("string: at author by comment from imported_by scan_id to type", "string?: expires_at reason", "integer: seq")

	findingV1Shape = members(
		"string: id name description agent_name class attack_walkthrough severity remediation status user_status created_at updated_at",
		"string: endpoint_method endpoint_path handler_class_name handler_method_name vulnerable_code_block fixed_code_block",
		"string: secret_type repo_id repo_url repo_commit_hash project_id",
		"string?: attack_feasibility confidence remediation_effort",
		"object: location project", "array: supporting_files")
	findingV1LocationShape = members("string: file_path hash url", "integer: line")
	findingV1ProjectShape  = members("string?: business_criticality exposure", "string: owner summary", "object: deployments")
)

// wantsShape fails the test unless a record has exactly the members of a shape, of their types.
func wantsShape(t *testing.T, what string, got record, want shape) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is missing", what)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value, there := got[name]
		if !there {
			t.Errorf("%s has no member %s", what, name)
			continue
		}
		kind, nullable := strings.CutSuffix(want[name], "?")
		if value == nil && nullable {
			continue
		}
		if actual := typeOf(value); actual != kind {
			t.Errorf("%s.%s is of type %s, want %s", what, name, actual, want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, documented := want[name]; !documented {
			t.Errorf("%s has the member %s, which is not documented", what, name)
		}
	}
}

// wantsShapes is wantsShape for each item of a list, which must not be empty.
func wantsShapes(t *testing.T, what string, got []record, want shape) {
	t.Helper()
	if len(got) == 0 {
		t.Errorf("%s is empty", what)
	}
	for i, item := range got {
		wantsShape(t, fmt.Sprintf("%s[%d]", what, i), item, want)
	}
}

// typeOf returns the type of a decoded value in the contract's terms.
func typeOf(value any) string {
	switch value := value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if value == float64(int64(value)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	default:
		return "null"
	}
}

var (
	repositoryShape = members("boolean: archived cast_scan_enabled private",
		"string: clone_url created_at default_branch_name description full_name id installation_id last_commit_hash last_commit_hash_link",
		"string: name organization_id provider provider_id scan_branch summary updated_at url",
		"string?: last_committed_at last_scanned_at",
		"object: languages", "integer: package_findings secret_findings size", "array: projects")

	// As returned inside a repository.
	repositoryProjectShape = members(
		"string: id organization_id owner provider purpose relative_path summary evidence dependencies_file",
		"string?: business_criticality exposure scanner_business_criticality scanner_exposure user_business_criticality user_exposure",
		"string: scanner_summary user_summary primary_framework primary_language deployment_usage last_scan_id created_at updated_at",
		"string?: last_scan_status last_committed_at last_scanned_at",
		"boolean: cast_scan_enabled enabled has_custom_metadata", "integer: findings_count size", "object: deployments repo",
		"array: file_extensions frameworks languages sensitive_data_types components")
	// As returned by the single-project operation.
	projectShape = members(
		"string: id organization_id owner provider purpose relative_path summary evidence dependencies_file",
		"string?: business_criticality exposure user_business_criticality user_exposure",
		"string: user_summary last_scan_id created_at updated_at",
		"string?: last_scan_status last_committed_at last_scanned_at",
		"boolean: enabled", "integer: findings_count size", "object: deployments repo",
		"array: file_extensions frameworks languages sensitive_data_types components")
	componentShape   = members("integer: criticality", "string: description folder_name type")
	projectRepoShape = members("string: id name url")

	reviewShape = members("string: id created_at updated_at pr_author pr_status pr_title provider repo_id repo_name repo_owner", "string?: last_review_at",
		"integer: pr_number closed_issue_count open_issue_count open_high_count open_medium_count open_low_count")

	reviewIssueShape = members(
		"string: id review_id title description severity status provider repo_id repo_name repo_owner file_path commit_sha commit_link",
		"string: file_location_link resolved_by created_at updated_at", "string?: first_seen_at last_seen_at resolved_at",
		"integer: line_number pr_number", "array: seen_in_commits")

	reviewFullShape      = reviewShape.and("integer: open_confirmed_count open_muted_count")
	reviewIssueFullShape = reviewIssueShape.and("string: comments decided_by package_version tool_severity user_status",
		"string?: expires_at reason", "number?: score", "object: verdict")

	webhookDeliveryShape = members(
		"string: id endpoint_id event_id event_type event_time subject_kind subject_id status created_at",
		"string?: next_attempt_at finished_at redelivered_at", "array: attempts")
	webhookAttemptShape = members("string: at outcome message", "string?: ended_at retry_at", "integer: status_code")

	scanShape = members("string: id repo_id project_id tool tool_version category analysis commit_hash upload_id review_id imported_by message",
		"string?: status started_at completed_at settled_at created_at", "object: progress counts", "array: skipped_because")
	scanProgressShape = members("integer: done total")
	scanCountsShape   = members("integer: created updated closed reopened unchanged skipped")
	scanSkipShape     = members("string: reason", "integer: count")
	uploadShape       = members("string: id repo_id project_id", "string?: status", "boolean: dry_run", "integer: scan_count unlisted_changes",
		"array: scans reviews warnings changes")
	uploadReviewShape = members("string: review_id commit_hash fail_on gate_reason markdown", "string?: gate",
		"integer: pr_number created reopened seen unchanged resolved skipped known in_doubt fixed open open_high open_medium open_low",
		"array: base_never_scanned_with issues")
	uploadReviewIssueShape = members("string: issue_id severity title place", "boolean: new")
	uploadChangeShape      = members("string: tool action finding_id severity title place because")

	triageOperationShape = members("string: id uid phase undo created_by committed_by created_at detail", "string?: completed_at", "boolean: commit",
		"object: set filters", "array: ids decided samples conflicts failures",
		"integer: matched would_change not_undoable changed unchanged conflicted failed")
	triageOperationSetShape     = members("string: comments", "string?: user_status reason expires_at", "boolean: removes_comments")
	triageOperationDeciderShape = members("string: by", "integer: count")
	triageOperationExampleShape = members("string: finding_id message")
	triageOperationFindingShape = members("string: finding_id", "string?: outcome")

	triagePolicyShape = members("string: id match mode author created_at uid", "string?: valid_from valid_until last_matched_at",
		"boolean: observed in_force", "object: set failure compile_error", "array: shadowed_by samples conditions",
		"integer: priority max_findings generation matched applied would_apply shadowed overridden failed")
	triagePolicySetShape = members("string: user_status comment", "string?: reason")
	conditionShape       = members("string: type status reason message changed_at")
	apiKeyShape          = members("string: id description created_at", "string?: issued_at expires_at last_used_at", "boolean: disabled",
		"array: scopes conditions")

	verificationShape = members("string: delivery_id message status", "boolean: valid")
)
