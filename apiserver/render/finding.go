package render

import (
	"bytes"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Finding is what a finding itself shows, in both shapes, ready but for what it shows of
// others: that is put in when the shape is written. So a finding is rendered once, however often
// what it is joined with changes, and thousands of them share one project's JSON. It never
// changes.
type Finding struct {
	// content holds the texts, then the parts of formV1 and those of formV2.
	content []byte
	// ends are where each of them ends in the content.
	ends [textCount + partsV1 + partsV2]uint32
}

// Shown is what a finding shows that is not its own. It never changes.
type Shown struct {
	Organization *Organization
	// UpdatedAt is the time to show; it is not taken from the object, because the object
	// alone does not know it before its first reconcile.
	UpdatedAt string
	// Project and Repository may be nil: they may be created after the finding.
	Project    *Project
	Repository *Repository
}

// NewFinding renders a finding. The same finding always gives the same bytes.
func NewFinding(finding *v1alpha1.Finding) (*Finding, error) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	rendered := &Finding{}
	details := &finding.Spec.Details
	own := [textCount]string{
		titleText:       details.Title,
		descriptionText: details.Description,
		codeText:        details.Code,
		fixedCodeText:   details.FixedCode,
		walkthroughText: details.ExploitWalkthrough,
		remediationText: details.Remediation,
	}
	ends := rendered.ends[:0]
	for _, text := range own {
		if err := encodeTo(buffer, text); err != nil {
			return nil, fmt.Errorf("encode a text of finding %s: %w", finding.Name, err)
		}
		ends = append(ends, end(buffer))
	}
	ends, err := formV1.cut(buffer, findingV1(finding), ends)
	if err != nil {
		return nil, fmt.Errorf("encode finding %s in shape v1: %w", finding.Name, err)
	}
	if _, err = formV2.cut(buffer, findingV2(finding), ends); err != nil {
		return nil, fmt.Errorf("encode finding %s in shape v2: %w", finding.Name, err)
	}
	rendered.content = bytes.Clone(buffer.Bytes())
	return rendered, nil
}

// LenV1 is the length of what AppendV1 appends, in bytes.
func (f *Finding) LenV1(shown *Shown) int { return f.length(formV1, shown) }

// AppendV1 appends the JSON of shape v1.
func (f *Finding) AppendV1(to []byte, shown *Shown) []byte { return f.append(formV1, to, shown) }

// LenV2 is the length of what AppendV2 appends, in bytes.
func (f *Finding) LenV2(shown *Shown) int { return f.length(formV2, shown) }

// AppendV2 appends the JSON of shape v2.
func (f *Finding) AppendV2(to []byte, shown *Shown) []byte { return f.append(formV2, to, shown) }

func (f *Finding) length(form *form, shown *Shown) int {
	length := len(f.parts(form.first, len(form.holes)+1))
	for _, h := range form.holes {
		if h.filling < textCount {
			length += len(f.parts(int(h.filling), 1))
		} else {
			length += shown.length(h.filling)
		}
	}
	return length
}

func (f *Finding) append(form *form, to []byte, shown *Shown) []byte {
	for i, h := range form.holes {
		to = append(to, f.parts(form.first+i, 1)...)
		if h.filling < textCount {
			to = append(to, f.parts(int(h.filling), 1)...)
		} else {
			to = shown.append(to, h.filling)
		}
	}
	return append(to, f.parts(form.first+len(form.holes), 1)...)
}

// parts are the bytes of consecutive texts or parts.
func (f *Finding) parts(first, count int) []byte {
	start := uint32(0)
	if first > 0 {
		start = f.ends[first-1]
	}
	return f.content[start:f.ends[first+count-1]]
}

// findingV1 is the shape v1, empty where formV1 has a hole.
func findingV1(f *v1alpha1.Finding) *openapi.FindingV1 {
	details := &f.Spec.Details
	location := valueOf(details.Location)
	endpoint := firstHTTPEndpoint(details.EndpointLocations)
	return &openapi.FindingV1{
		Id:                f.Name,
		AgentName:         valueOf(f.Spec.Agent).Name,
		Class:             f.Spec.Class,
		AttackFeasibility: word[openapi.Effort](details.ExploitFeasibility),
		Confidence:        word[openapi.Level](f.Spec.Confidence),
		Severity:          openapi.Severity(details.Severity),
		RemediationEffort: word[openapi.Effort](details.RemediationEffort),
		Status:            openapi.FindingStatus(findingstate.State(&f.Spec)),
		UserStatus:        openapi.UserStatus(findingstate.UserStatus(&f.Spec)),
		CreatedAt:         second(findingstate.CreatedAt(f).Time),
		EndpointMethod:    endpoint.Action,
		EndpointPath:      endpoint.Path,
		HandlerClassName:  location.ClassName,
		HandlerMethodName: location.MethodName,
		SecretType:        f.Spec.SecretType,
		RepoId:            string(f.Spec.RepositoryRef.Name),
		RepoCommitHash:    f.Spec.CommitHash,
		ProjectId:         string(f.Spec.ProjectRef.Name),
		Location:          locationV1(location),
		SupportingFiles:   convert(details.SupportingFiles, locationV1),
	}
}

// findingV2 is the shape v2, empty where formV2 has a hole.
func findingV2(f *v1alpha1.Finding) *openapi.FindingV2 {
	agent := valueOf(f.Spec.Agent)
	scan := valueOf(f.Spec.Scan)
	return &openapi.FindingV2{
		Id:         f.Name,
		Comments:   f.Spec.Triage.Comments,
		CreatedAt:  second(findingstate.CreatedAt(f).Time),
		Status:     openapi.FindingStatus(findingstate.State(&f.Spec)),
		UserStatus: openapi.UserStatus(findingstate.UserStatus(&f.Spec)),
		Agent: openapi.Agent{
			CustomAgentVectorId: agent.CustomAgentVectorID,
			Description:         agent.Description,
			Name:                agent.Name,
			Vector:              agent.Vector,
		},
		Details: detailsV2(&f.Spec.Details),
		Project: openapi.FindingProject{Id: string(f.Spec.ProjectRef.Name)},
		Repo:    openapi.FindingRepo{Id: string(f.Spec.RepositoryRef.Name)},
		ScanDetails: openapi.ScanDetails{
			AnalyzedAt: optionalSecond(scan.AnalyzedAt),
			RejectedAt: optionalSecond(scan.RejectedAt),
			ScanId:     scan.ScanID,
			VerifiedAt: optionalSecond(scan.VerifiedAt),
		},
	}
}

func detailsV2(d *v1alpha1.FindingDetails) openapi.Details {
	return openapi.Details{
		EndpointLocations:  convert(d.EndpointLocations, endpointV2),
		ExploitFeasibility: word[openapi.Effort](d.ExploitFeasibility),
		Location:           locationV2(valueOf(d.Location)),
		RemediationEffort:  word[openapi.Effort](d.RemediationEffort),
		Severity:           openapi.Severity(d.Severity),
		SupportingFiles:    convert(d.SupportingFiles, locationV2),
		ValidationEvidence: convert(d.ValidationEvidence, evidenceV2),
	}
}

func locationV1(l v1alpha1.FileLocation) openapi.FindingV1Location {
	return openapi.FindingV1Location{FilePath: l.FilePath, Hash: l.Hash, Url: l.URL, Line: l.LineNumber}
}

func locationV2(l v1alpha1.FileLocation) openapi.FileLocation {
	return openapi.FileLocation{
		ClassName:         l.ClassName,
		FilePath:          l.FilePath,
		FunctionSignature: l.FunctionSignature,
		Hash:              l.Hash,
		LineNumber:        l.LineNumber,
		MethodName:        l.MethodName,
		Url:               l.URL,
	}
}

func endpointV2(e v1alpha1.EndpointLocation) openapi.EndpointLocation {
	return openapi.EndpointLocation{Action: e.Action, Path: e.Path, Type: openapi.EndpointLocationType(e.Type)}
}

func evidenceV2(e v1alpha1.ValidationEvidence) openapi.ValidationEvidence {
	return openapi.ValidationEvidence{Criteria: e.Criteria, Rationale: e.Rationale}
}

func firstHTTPEndpoint(list []v1alpha1.EndpointLocation) v1alpha1.EndpointLocation {
	for _, endpoint := range list {
		if endpoint.Type == v1alpha1.EndpointHTTP {
			return endpoint
		}
	}
	return v1alpha1.EndpointLocation{}
}
