package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UserStatus is what a person decided about a finding, or about an issue of a review.
//
// +kubebuilder:validation:Enum=open;active;muted
type UserStatus string

// The user statuses; any may follow any.
const (
	// UserStatusOpen means not triaged.
	UserStatusOpen UserStatus = "open"
	// UserStatusActive means confirmed by a person.
	UserStatusActive UserStatus = "active"
	// UserStatusMuted means not to be acted on.
	UserStatusMuted UserStatus = "muted"
)

// DecisionReason is the reason for a person's decision about a finding.
//
// +kubebuilder:validation:Enum={"false-positive","not-reachable","mitigated-elsewhere","accepted-risk","used-in-tests","will-not-fix","duplicate"}
type DecisionReason string

// The reasons of decisions.
const (
	// DecisionFalsePositive means that the scanner is wrong.
	DecisionFalsePositive DecisionReason = "false-positive"
	// DecisionNotReachable means that no attacker can reach the code.
	DecisionNotReachable DecisionReason = "not-reachable"
	// DecisionMitigatedElsewhere means that another measure prevents an attack.
	DecisionMitigatedElsewhere DecisionReason = "mitigated-elsewhere"
	// DecisionAcceptedRisk means that the risk is known and accepted.
	DecisionAcceptedRisk DecisionReason = "accepted-risk"
	// DecisionUsedInTests means that the code runs only in tests.
	DecisionUsedInTests DecisionReason = "used-in-tests"
	// DecisionWillNotFix means that the problem will not be fixed.
	DecisionWillNotFix DecisionReason = "will-not-fix"
	// DecisionDuplicate means that another finding is about the same problem.
	DecisionDuplicate DecisionReason = "duplicate"
)

// DecisionReasons are all reasons.
func DecisionReasons() []DecisionReason {
	return []DecisionReason{
		DecisionFalsePositive, DecisionNotReachable, DecisionMitigatedElsewhere, DecisionAcceptedRisk, DecisionUsedInTests,
		DecisionWillNotFix, DecisionDuplicate,
	}
}

// FindingState combines what the scanner reported and what people and policies decided.
//
// +kubebuilder:validation:Enum=open;open_muted;closed
type FindingState string

// The states, as internal/findingstate derives them from the spec.
const (
	FindingStateOpen      FindingState = "open"
	FindingStateOpenMuted FindingState = "open_muted"
	FindingStateClosed    FindingState = "closed"
)

// ConditionDecisionStale is True while people's decision about a finding is based on facts that no longer hold; its
// reason and message name them. Negative polarity: absent while no decision is stale.
const ConditionDecisionStale = "DecisionStale"

// Reasons of DecisionStale.
const (
	// ReasonSeverityChanged: the scanner changed its rating of the problem.
	ReasonSeverityChanged = "SeverityChanged"
	// ReasonVersionChanged: the version of the package changed.
	ReasonVersionChanged = "VersionChanged"
	// ReasonCodeChanged: the code at the place changed.
	ReasonCodeChanged = "CodeChanged"
	// ReasonInDoubt: it is not certain that the finding is the one that was decided about.
	ReasonInDoubt = "InDoubt"
	// ReasonSeveralChanged: more than one of these.
	ReasonSeveralChanged = "SeveralChanged"
)

// FindingSpec holds the facts of a finding, which its scanner writes, and its triage, which
// people write. No writer may touch the other's part.
//
// +kubebuilder:validation:XValidation:rule="self.repositoryRef == oldSelf.repositoryRef && self.projectRef == oldSelf.projectRef",message="spec.repositoryRef and spec.projectRef are immutable"
// +kubebuilder:validation:XValidation:rule="has(self.detectedAt) == has(oldSelf.detectedAt) && (!has(self.detectedAt) || self.detectedAt == oldSelf.detectedAt || int(timestamp(self.detectedAt.upperAscii())) == int(timestamp(oldSelf.detectedAt.upperAscii())) || !oldSelf.detectedAt.matches('^.{10}[Tt].{8}(\\\\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$'))",message="spec.detectedAt is immutable to the second; only a stored value that is not a valid time can be replaced"
type FindingSpec struct {
	// repositoryRef names the Repository of the finding. Immutable.
	// +structType=atomic
	// +required
	RepositoryRef RepositoryReference `json:"repositoryRef"`
	// projectRef names the Project of the finding. Immutable.
	// +structType=atomic
	// +required
	ProjectRef ProjectReference `json:"projectRef"`
	// detectedAt is when the finding was first seen, in RFC 3339. Immutable to the second:
	// imports drop fractions and write UTC. Absent: the creation time of the resource counts.
	// +optional
	DetectedAt *Time `json:"detectedAt,omitempty"`
	// tool is the name of the scanner, for example "gosec". Written by the scanner's import.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Tool string `json:"tool,omitempty"`
	// analysis whose scans report the finding, for example "/language:ruby": only these scans close it. Written by
	// the scanner's import; at most 256 characters. Absent: scans without an analysis report it, or an earlier
	// version imported it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Analysis string `json:"analysis,omitempty"`
	// category of the finding: Code, Package or Secret. Written by the scanner's import.
	// +optional
	Category FindingCategory `json:"category,omitempty"`
	// ruleID is the scanner's id of the violated rule, for example "G201". Written by the scanner's
	// import.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	RuleID string `json:"ruleID,omitempty"`
	// class of weakness: the CWE if the scanner names one, for example "CWE-89", else the rule's id. Written by
	// the scanner's import; at most 256 characters.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Class string `json:"class,omitempty"`
	// vulnerability that the finding reports, if it has a public or a vendor's id, for example CVE-2019-1549 in
	// openssl. Written by the scanner's import. Absent: the finding is not about a known vulnerability, or the
	// scanner does not name it.
	// +structType=atomic
	// +optional
	Vulnerability *FindingVulnerability `json:"vulnerability,omitempty"`
	// package that the finding is in, for findings about a dependency or an installed package.
	// Written by the scanner's import. Absent: the finding is not about a package.
	// +structType=atomic
	// +optional
	Package *FindingPackage `json:"package,omitempty"`
	// agent that found the problem. Written by the scanner's import, with the tool as its name.
	// +structType=atomic
	// +optional
	Agent *FindingAgent `json:"agent,omitempty"`
	// confidence of the scanner that the finding is real: high, medium or low.
	// +optional
	Confidence Level `json:"confidence,omitempty"`
	// secretType is the type of secret, for findings of category Secret, for example
	// "aws-access-token". Written by the scanner's import.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	SecretType string `json:"secretType,omitempty"`
	// commitHash is the commit of the scan that created or last changed the finding. It does not
	// change while later scans report the same facts.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	CommitHash string `json:"commitHash,omitempty"`
	// fingerprints as the scanner reported them.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Fingerprints []Fingerprint `json:"fingerprints,omitempty"`
	// evidence by which the next import recognises the finding, in addition to the other fields: short digests of
	// message, code and logical location, the column, a digest of the fingerprint that is stored cut, and "masked" if
	// the tool masks a secret in the code. For example "mvmqvbl2.hfn3s5zq..5". Written by the scanner's import; at most
	// 64 characters, for comparison only. Absent: the finding was not imported, or an earlier version imported it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Evidence string `json:"evidence,omitempty"`
	// doubt is set if a scan matched a finding with a decision, or with one that an operation withdrew, by weak evidence:
	// the decision may belong to another problem of the same kind. Written by the scanner's import.
	// +structType=atomic
	// +optional
	Doubt *FindingDoubt `json:"doubt,omitempty"`
	// suppression is set while the source suppresses the finding, by a comment in the code or by a
	// baseline: the scanner still reports it, and its state is open_muted whatever people decided.
	// Written by the scanner's import.
	// +structType=atomic
	// +optional
	Suppression *FindingSuppression `json:"suppression,omitempty"`
	// details describe the problem, its place and its remediation. Written by the scanner's import.
	// +structType=atomic
	// +required
	Details FindingDetails `json:"details"`
	// scan is the scan that created or last changed the finding, not the last one that reported it.
	// +structType=atomic
	// +optional
	Scan *FindingScan `json:"scan,omitempty"`
	// closed is set while the scanner no longer reports the finding. Written by the scanner's
	// import.
	// +structType=atomic
	// +optional
	Closed *FindingClosure `json:"closed,omitempty"`
	// triage is the decision of people. Changing it requires the verb triage on findings; an import
	// never does.
	// +kubebuilder:default={userStatus: "open"}
	// +optional
	Triage FindingTriage `json:"triage,omitzero"`
}

// FindingVulnerability is a known vulnerability with its ids.
type FindingVulnerability struct {
	// id of the vulnerability: its CVE if the scanner knows one, else the id that the scanner reports, for example
	// "CVE-2019-1549" or "GHSA-2cf5-4w76-r9qv". Written by the scanner's import; 1 to 128 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`
	// aliases are further ids of the same vulnerability, without the id itself, for example
	// "GHSA-29mw-wpgm-hmr9" or "SNYK-JS-LODASH-1018905". Written by the scanner's import; at most 8
	// of 128 characters each.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Aliases []string `json:"aliases,omitempty"`
}

// FindingPackage is a package in the version that a scanner found.
type FindingPackage struct {
	// purl is the package URL, version included, for example "pkg:npm/lodash@4.17.15". Written by
	// the scanner's import; at most 512 characters, a longer one is left out. Absent: the scanner does not give
	// it, nor the package's ecosystem.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	PURL string `json:"purl,omitempty"`
	// name of the package as the scanner writes it, for example "lodash" or "libcrypto1.1". Written
	// by the scanner's import; 1 to 256 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Name string `json:"name"`
	// version that is installed or declared, for example "4.17.15". Written by the scanner's import;
	// at most 128 characters. Absent: the scanner does not name it.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
	// fixedVersion is the version, or the list of versions, that no longer has the vulnerability,
	// as the scanner writes it, for example "4.17.21". Written by the scanner's import; at most 256
	// characters. Absent: no fixed version exists yet, or the scanner does not name it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	FixedVersion string `json:"fixedVersion,omitempty"`
}

// FindingAgent is the program that found the problem.
type FindingAgent struct {
	// name of the agent.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Name string `json:"name,omitempty"`
	// description of the agent.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// vector that the agent tried.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Vector string `json:"vector,omitempty"`
	// customAgentVectorID is the id of a vector that the organization defined.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	CustomAgentVectorID string `json:"customAgentVectorID,omitempty"`
}

// Fingerprint is a value by which a scanner recognises a finding.
type Fingerprint struct {
	// name of the fingerprint's algorithm and version, for example "primaryLocationLineHash/v1".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Name string `json:"name"`
	// value of the fingerprint.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Value string `json:"value"`
}

// FindingDoubt gives the reason why a finding may not be the one that was decided about.
type FindingDoubt struct {
	// reason of the doubt, for example "line moved, and no code to compare". Written by the scanner's
	// import; 1 to 128 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Reason string `json:"reason"`
	// scanID is the name of the Scan that raised the doubt, for example
	// "s-u3k6mzv5xq2d7hq4r6n3yq5t2a". Written by the scanner's import; at most 253 characters.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ScanID string `json:"scanID,omitempty"`
}

// SuppressionKind is where a finding is suppressed.
//
// +kubebuilder:validation:Enum=inSource;external
type SuppressionKind string

// The kinds of suppressions, as SARIF names them.
const (
	// SuppressionInSource is a comment, an annotation or the like in the code.
	SuppressionInSource SuppressionKind = "inSource"
	// SuppressionExternal is a baseline, or a file of exceptions, outside the code.
	SuppressionExternal SuppressionKind = "external"
)

// FindingSuppression describes how and why the source suppresses a finding.
type FindingSuppression struct {
	// kind of suppression: inSource or external. Written by the scanner's import.
	// +required
	Kind SuppressionKind `json:"kind"`
	// justification as the source gives it, for example "the input is a constant". Written by the
	// scanner's import; at most 256 characters. Absent: the source gives none.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Justification string `json:"justification,omitempty"`
}

// FindingDetails describe the problem, its place and its remediation.
type FindingDetails struct {
	// title of the problem in one line, for example "SQL string formatting". 1 to 512
	// characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Title string `json:"title"`
	// description of the problem. At most 16000 characters.
	// +kubebuilder:validation:MaxLength=16000
	// +optional
	Description string `json:"description,omitempty"`
	// severity as the import derived it from the scanner's rating: high, medium or low. Critical findings are high; score
	// and toolSeverity distinguish them. Written by the scanner's import.
	// +required
	Severity Level `json:"severity"`
	// score from 0.0 to 10.0, a decimal with one digit after the point, for example "9.8": the
	// scanner's security-severity, else the CVSS base score that it reports. Written by the scanner's
	// import. Absent: the scanner gives none.
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(10\.0|[0-9]\.[0-9])$`
	// +optional
	Score string `json:"score,omitempty"`
	// toolSeverity is the scanner's own rating of the severity, for example "CRITICAL" or "moderate"; else its level, for
	// example "error". Written by the scanner's import; at most 64 characters. Absent: the scanner gives neither.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ToolSeverity string `json:"toolSeverity,omitempty"`
	// code is the vulnerable code, written by the scanner's import. Never stored for findings of category Secret.
	// At most 9000 characters.
	// +kubebuilder:validation:MaxLength=9000
	// +optional
	Code string `json:"code,omitempty"`
	// fixedCode is code that could replace it. At most 9000 characters.
	// +kubebuilder:validation:MaxLength=9000
	// +optional
	FixedCode string `json:"fixedCode,omitempty"`
	// exploitFeasibility rates how hard an attack is: easy, medium or hard.
	// +optional
	ExploitFeasibility Effort `json:"exploitFeasibility,omitempty"`
	// exploitWalkthrough describes an attack step by step. At most 9000 characters.
	// +kubebuilder:validation:MaxLength=9000
	// +optional
	ExploitWalkthrough string `json:"exploitWalkthrough,omitempty"`
	// remediation describes how to fix the problem, for example "Upgrade lodash to 4.17.21".
	// +kubebuilder:validation:MaxLength=9000
	// +optional
	Remediation string `json:"remediation,omitempty"`
	// remediationEffort rates how hard the remediation is: easy, medium or hard.
	// +optional
	RemediationEffort Effort `json:"remediationEffort,omitempty"`
	// location of the vulnerable code.
	// +optional
	Location *FileLocation `json:"location,omitempty"`
	// endpointLocations are the endpoints that reach the vulnerable code.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	EndpointLocations []EndpointLocation `json:"endpointLocations,omitempty"`
	// supportingFiles are other places in the code that belong to the finding.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	SupportingFiles []FileLocation `json:"supportingFiles,omitempty"`
	// validationEvidence explains why the finding is considered real.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	ValidationEvidence []ValidationEvidence `json:"validationEvidence,omitempty"`
}

// Place returns the location; all of its members are empty if there is none.
func (d *FindingDetails) Place() FileLocation {
	if d.Location == nil {
		return FileLocation{}
	}
	return *d.Location
}

// FileLocation is a place in a file of the repository.
type FileLocation struct {
	// filePath is relative to the root of the repository, with forward slashes, for example
	// "api/orders.go".
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	FilePath string `json:"filePath,omitempty"`
	// lineNumber counts from 1. 0 if unknown.
	// +kubebuilder:validation:Minimum=0
	// +optional
	LineNumber int32 `json:"lineNumber,omitempty"`
	// url is the web page of the place at the provider.
	// +kubebuilder:validation:MaxLength=1536
	// +optional
	URL string `json:"url,omitempty"`
	// hash of the content at the place.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Hash string `json:"hash,omitempty"`
	// className is the class that contains the place.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	ClassName string `json:"className,omitempty"`
	// methodName is the method that contains the place.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	MethodName string `json:"methodName,omitempty"`
	// functionSignature of the method. At most 128 characters.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	FunctionSignature string `json:"functionSignature,omitempty"`
}

// EndpointType is the protocol of an endpoint.
//
// +kubebuilder:validation:Enum=http;grpc;graphql
type EndpointType string

// The endpoint types.
const (
	EndpointHTTP    EndpointType = "http"
	EndpointGRPC    EndpointType = "grpc"
	EndpointGraphQL EndpointType = "graphql"
)

// EndpointLocation is a way in from outside.
type EndpointLocation struct {
	// type of endpoint: http, grpc or graphql.
	// +required
	Type EndpointType `json:"type"`
	// action is the HTTP verb, gRPC method, or GraphQL operation.field.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Action string `json:"action,omitempty"`
	// path is the URL path, package.service, or GraphQL endpoint.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`
}

// ValidationEvidence is a test that the finding has passed.
type ValidationEvidence struct {
	// criteria that were checked.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Criteria string `json:"criteria,omitempty"`
	// rationale of the result.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Rationale string `json:"rationale,omitempty"`
}

// FindingScan is the scan that created or last changed a finding.
type FindingScan struct {
	// scanID is the name of the Scan.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ScanID string `json:"scanID,omitempty"`
	// analyzedAt is when the scan analyzed the finding.
	// +optional
	AnalyzedAt *Time `json:"analyzedAt,omitempty"`
	// verifiedAt is when the scanner confirmed the finding.
	// +optional
	VerifiedAt *Time `json:"verifiedAt,omitempty"`
	// rejectedAt is when the scanner rejected the finding as a false positive.
	// +optional
	RejectedAt *Time `json:"rejectedAt,omitempty"`
}

// FindingClosure records when and by which scan a finding was closed.
type FindingClosure struct {
	// at is when the scan that no longer reports the finding started.
	// +required
	At Time `json:"at"`
	// scanID is the name of the Scan.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ScanID string `json:"scanID,omitempty"`
}

// FindingTriage is what people decided about a finding.
//
// +kubebuilder:validation:XValidation:rule="has(self.userStatus) && self.userStatus != 'open' || (!has(self.reason) || oldSelf.?reason.orValue(\"\") == self.reason) && (!has(self.expiresAt) || oldSelf.?expiresAt.orValue(\"\") == self.expiresAt)",message="reason and expiresAt belong to a decision: userStatus must be active or muted",optionalOldSelf=true
type FindingTriage struct {
	// userStatus is the decision: open (nobody has decided), active (confirmed) or muted (not to be
	// acted on).
	// +kubebuilder:default=open
	// +optional
	UserStatus UserStatus `json:"userStatus,omitempty"`
	// reason for the decision: false-positive, not-reachable, mitigated-elsewhere, accepted-risk,
	// used-in-tests, will-not-fix or duplicate. Removed when userStatus becomes open, and with the first new
	// userStatus after the end, unless that request changes it or expiresAt. An Organization may require one to
	// mute (spec.triage.requireReason).
	// +optional
	Reason DecisionReason `json:"reason,omitempty"`
	// expiresAt is when the decision ends, for example "2026-12-31T00:00:00Z": from then on the finding is open again,
	// until somebody decides again. The controllers record the end in status.endedAt; userStatus here stays as it was
	// written. Removed when userStatus becomes open, and with the first new userStatus after the end, unless that request
	// changes it. Absent: the decision does not end.
	// +optional
	ExpiresAt *Time `json:"expiresAt,omitempty"`
	// comments explain the decision. At most 10000 characters.
	// +kubebuilder:validation:MaxLength=10000
	// +optional
	Comments string `json:"comments,omitempty"`
	// by is the name of whoever decided, for example "ann@example.com" or "apikey/dashboard". The API server sets
	// it to the name of the authenticated user; a value that a client sends is overwritten, unless it restores a backup.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	By string `json:"by,omitempty"`
	// basis holds the facts on which the decision is based, for example "severity=high;version=4.17.15". The API
	// server sets it to the current facts when userStatus becomes active or muted, unless the decision contains a
	// basis, and removes it with the decision. If the facts differ from it, the decision is stale. A basis without
	// "doubt=" states that the finding was not in doubt: for a decision about one that is, leave basis out, or write
	// "doubt=" with the value of spec.doubt.scanID, before "version=". The value "now" repeats the decision: the API
	// server replaces it with the current facts and sets by. At most 168 characters.
	// +kubebuilder:validation:MaxLength=168
	// +optional
	Basis string `json:"basis,omitempty"`
}

// FindingVerdict is a decision about a finding that no person has decided about: a TriagePolicy's, or a
// person's about the same result in a pull request. Either policy or reviewIssue names its origin.
type FindingVerdict struct {
	// policy is the name of the TriagePolicy; absent if the verdict comes from a ReviewIssue.
	// +optional
	Policy ResourceName `json:"policy,omitempty"`
	// reviewIssue is the name of the ReviewIssue that a person decided about before the result reached the base
	// branch. At most 63 characters; absent if a policy decided.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ReviewIssue string `json:"reviewIssue,omitempty"`
	// userStatus is what was decided: active or muted.
	// +required
	UserStatus PolicyStatus `json:"userStatus"`
	// reason that the policy or the person gives.
	// +optional
	Reason DecisionReason `json:"reason,omitempty"`
	// comment that the policy or the person gives, cut to 128 characters.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Comment string `json:"comment,omitempty"`
	// by is the policy's author at the time of the verdict, or the person who decided about the ReviewIssue, for
	// example "ann@example.com"; cut to 60 characters.
	// +kubebuilder:validation:MaxLength=60
	// +optional
	By string `json:"by,omitempty"`
	// since is when the verdict took effect.
	// +required
	Since Time `json:"since"`
}

// Prefixes of the name of a TriagePolicy or ReviewIssue in a transition's by.
const (
	PolicyAuthorPrefix      = "policy/"
	ReviewIssueAuthorPrefix = "review-issue/"
)

// MaxVerdictReviewIssue is the maximum length of a ReviewIssue's name for its decision to be shown as a
// verdict.
const MaxVerdictReviewIssue = 63

// FindingStatus is what the controllers observe of a finding.
type FindingStatus struct {
	// observedGeneration is the metadata.generation that the status describes. If it is smaller than the current one, the
	// status is not up to date yet. Absent: no status is stored, because the finding is unchanged since its creation or
	// has not been reconciled yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state is closed if the scanner closed the finding, else open_muted if a person muted it and the decision
	// has not ended, if nobody has decided and its verdict mutes it, or if the source suppresses it, else open.
	// +optional
	State FindingState `json:"state,omitempty"`
	// userStatus is the decision in force: that of spec.triage, or open if that has ended.
	// +optional
	UserStatus UserStatus `json:"userStatus,omitempty"`
	// endedAt is the spec.triage.expiresAt of a decision that has ended. Absent while the decision is in force.
	// +optional
	EndedAt *Time `json:"endedAt,omitempty"`
	// verdict is the decision of a TriagePolicy, or of a person about the same result in a pull request. Absent if
	// there is none, if the finding is closed, or if a person has decided about it.
	// +optional
	Verdict *FindingVerdict `json:"verdict,omitempty"`
	// triageDigest is a digest of the triage that the last reconcile observed; the next one compares with it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TriageDigest string `json:"triageDigest,omitempty"`
	// factsDigest is a digest of the facts that the last reconcile observed; the next one compares with it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	FactsDigest string `json:"factsDigest,omitempty"`
	// suppressionDigest is a digest of the suppression that the last reconcile observed; absent without one.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	SuppressionDigest string `json:"suppressionDigest,omitempty"`
	// basis holds the facts on which the decision is based, in the form of spec.triage.basis, completed with those
	// that it leaves out, except a doubt: a basis without "doubt=" states that the finding was not in doubt. Absent while
	// userStatus is open.
	// +kubebuilder:validation:MaxLength=168
	// +optional
	Basis string `json:"basis,omitempty"`
	// updatedAt is when the spec last changed, a decision ended or a policy changed its verdict, to the second. It never
	// goes back.
	// +optional
	UpdatedAt *Time `json:"updatedAt,omitempty"`
	// transitions that the controllers observed, ordered by seq: the last 16, and up to 24 if the webhook
	// deliveries of some are not created yet.
	// +listType=map
	// +listMapKey=seq
	// +kubebuilder:validation:MaxItems=24
	// +optional
	Transitions []Transition `json:"transitions,omitempty"`
	// emittedSeq is the seq of the last transition whose webhook deliveries have been created or are not needed.
	// +optional
	EmittedSeq int64 `json:"emittedSeq,omitempty"`
	// conditions of the finding: Ready, Stalled, DecisionStale.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// Finding is a security problem in a project, as a scanner found it and people judged it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=fnd,categories=appsec
// +kubebuilder:printcolumn:name="Severity",type=string,JSONPath=`.spec.details.severity`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Triage",type=string,JSONPath=`.status.userStatus`
// +kubebuilder:printcolumn:name="Stale",type=string,JSONPath=`.status.conditions[?(@.type=="DecisionStale")].reason`
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Repository",type=string,priority=1,JSONPath=`.spec.repositoryRef.name`
// +kubebuilder:printcolumn:name="File",type=string,priority=1,JSONPath=`.spec.details.location.filePath`
// +kubebuilder:printcolumn:name="Line",type=integer,priority=1,JSONPath=`.spec.details.location.lineNumber`
// +kubebuilder:printcolumn:name="Score",type=string,priority=1,JSONPath=`.spec.details.score`
// +kubebuilder:printcolumn:name="Vulnerability",type=string,priority=1,JSONPath=`.spec.vulnerability.id`
// +kubebuilder:printcolumn:name="Package",type=string,priority=1,JSONPath=`.spec.package.name`
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.class`
// +kubebuilder:printcolumn:name="Tool",type=string,priority=1,JSONPath=`.spec.tool`
// +kubebuilder:printcolumn:name="Triaged By",type=string,priority=1,JSONPath=`.spec.triage.by`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.spec.triage.reason`
// +kubebuilder:printcolumn:name="Until",type=string,priority=1,JSONPath=`.spec.triage.expiresAt`
// +kubebuilder:printcolumn:name="Verdict",type=string,priority=1,JSONPath=`.status.verdict.userStatus`
// +kubebuilder:printcolumn:name="Policy",type=string,priority=1,JSONPath=`.status.verdict.policy`
// +kubebuilder:printcolumn:name="Review Issue",type=string,priority=1,JSONPath=`.status.verdict.reviewIssue`
// +kubebuilder:printcolumn:name="Suppressed",type=string,priority=1,JSONPath=`.spec.suppression.kind`
// +kubebuilder:printcolumn:name="Justification",type=string,priority=1,JSONPath=`.spec.suppression.justification`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.details.title`
// +kubebuilder:selectablefield:JSONPath=`.spec.repositoryRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.projectRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.tool`
// +kubebuilder:selectablefield:JSONPath=`.spec.category`
// +kubebuilder:selectablefield:JSONPath=`.spec.class`
// +kubebuilder:selectablefield:JSONPath=`.spec.details.severity`
// +kubebuilder:selectablefield:JSONPath=`.spec.triage.userStatus`
// +kubebuilder:selectablefield:JSONPath=`.status.state`
type Finding struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`
	// spec holds the facts and the triage.
	// +required
	Spec FindingSpec `json:"spec"`
	// status is what the controllers observed. Only they write it. Until they have stored one, which they need not do
	// for a finding that is open and unchanged since its creation, it is this default.
	// +structType=atomic
	// +kubebuilder:default={state: open, userStatus: open}
	// +optional
	Status FindingStatus `json:"status,omitzero"`
}

// FindingList is a list of Findings.
//
// +kubebuilder:object:root=true
type FindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Finding `json:"items"`
}
